"""A screen that is redrawn in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live

Draw = Callable[[RenderableType], None]


@contextmanager
def full_screen(console: Console) -> Iterator[Draw]:
    """
    Yield a function that draws on the full terminal, and restore the old contents at the end.

    Each drawing overwrites the last one in place: nothing is erased, so nothing flickers, and the next drawing fits a
    terminal that changed its size.
    """
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda renderable: live.update(renderable, refresh=True)


def can_redraw(console: Console) -> bool:
    """Decide whether the output is a terminal that understands cursor movements, and no file, pipe or log of a CI."""
    return console.file.isatty() and not console.is_dumb_terminal
