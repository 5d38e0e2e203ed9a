"""A screen that is drawn again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live

Draw = Callable[[RenderableType], None]


@contextmanager
def full_screen(console: Console) -> Iterator[Draw]:
    """
    Give the whole terminal to what is drawn, and the old contents back at the end.

    Each drawing overwrites the last one in place: nothing is erased, so nothing flickers, and a terminal that changed
    its size is right again with the next one.
    """
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda renderable: live.update(renderable, refresh=True)


def can_redraw(console: Console) -> bool:
    """Whether the output is a terminal that understands cursor movements, and no file, pipe or log of a CI."""
    return console.file.isatty() and not console.is_dumb_terminal
