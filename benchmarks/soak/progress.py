"""Progress of a run."""

import asyncio
from collections.abc import Callable
from typing import Final

from benchmarks.soak.records import Book, Scrape, Usage
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

_LINE_SECONDS: Final = 60.0
"""Seconds between lines where there is no terminal."""


class Progress:
    """
    A bar on standard error, or a line a minute where that is no terminal.

    Args:
        book: The records so far.
        clock: Seconds since the run began.
        seconds: How long it takes.

    """

    def __init__(self, book: Book, clock: Callable[[], float], seconds: float) -> None:
        self._book = book
        self._clock = clock
        self._seconds = seconds
        self._console = Console(stderr=True)
        self._read = self._scrapes = self._lost = self._wrong = 0
        self._usage: Usage | None = None

    async def run(self) -> None:
        """Show it until canceled."""
        began = self._clock()
        columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        with Bar(*columns, console=self._console) as bar:
            task = bar.add_task("soaking", total=self._seconds)
            while True:
                text = self._text()
                bar.update(task, completed=self._clock() - began, description=text)
                if not self._console.is_terminal:
                    self._console.print(text)
                await asyncio.sleep(1 if self._console.is_terminal else _LINE_SECONDS)

    def _text(self) -> str:
        for record in self._book.records[self._read :]:
            if isinstance(record, Scrape):
                self._scrapes += 1
                self._lost += bool(record.lost)
                self._wrong += bool(record.faults)
            elif isinstance(record, Usage):
                self._usage = record
        self._read = len(self._book.records)
        memory = "" if self._usage is None else f", {self._usage.rss_mib:.0f} MiB"
        minutes = self._clock() / 60
        return f"{minutes:.0f} min: {self._scrapes} scrapes, {self._lost} lost, {self._wrong} wrong{memory}"
