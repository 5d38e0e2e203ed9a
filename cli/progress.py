"""A bar on the terminal while something takes its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with the part that is done, and the whole."""


@contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A bar on standard error until the block ends; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:  # fmt: skip
        task = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def waiting() -> Iterator[Callable[[Sequence[str]], None]]:
    """The names of what is waited for, on standard error until the block ends; nothing where that is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("waiting") as status:
        yield lambda names: status.update(
            f"waiting for {', '.join(names) or 'nothing'}"
        )
