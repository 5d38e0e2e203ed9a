"""The terminal: a bar while something takes its time, and a screen that is drawn again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

Draw = Callable[[RenderableType], None]
Progress = Callable[[int, int], None]
"""Called with the part that is done, and the whole."""


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


@contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A bar on standard error until the block ends; nothing where that is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def waiting() -> Iterator[Callable[[Sequence[str]], None]]:
    """The names of what is waited for, on standard error until the block ends; nothing where that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("waiting") as status:
        yield lambda names: status.update(f"waiting for {', '.join(names) or 'nothing'}")
