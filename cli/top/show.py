"""`quotascope top` at work: it reads, draws, and listens."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

import typer
from rich.console import Console

from quotascope.exporter.diagnosis import Severity, diagnose
from quotascope.exporter.errors import ExporterError
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.trails import Trails

from ..terminal import Draw, full_screen
from .choices import END, Choices
from .keyboard import listening
from .rows import chosen
from .screen import entity_table, screen, summary
from .sources import Read

_NOTHING_PRESSED = ""


async def print_once(
    reading: AbstractAsyncContextManager[Read], console: Console, choices: Choices
) -> None:
    """One plain table. Raises ``ExporterError``, and ``typer.Exit`` with 1 when something could not be read."""
    async with reading as read:
        snapshot = await read()
    rows = chosen(snapshot.measured, choices)
    console.print(summary(snapshot, rows), soft_wrap=True)
    console.print(entity_table(rows, Trails(), console.width))
    failed = [f for f in diagnose(snapshot) if f.severity is Severity.ERROR]
    for finding in failed:
        typer.echo(f"quotascope: {finding.text} {finding.advice}".rstrip(), err=True)
    if failed:
        raise typer.Exit(1)


async def watch(
    reading: AbstractAsyncContextManager[Read],
    console: Console,
    choices: Choices,
    every_seconds: float,
) -> None:
    """
    Draw again and again until a key or a signal ends it.

    Raises ``ExporterError`` when the first look fails; a later one that fails so is told on the screen, and what nobody
    expected of it ends the screen and is raised.
    """
    async with reading as read:
        show = _Show(await read(), choices)
        keys: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, keys.put_nowait, END)
        looks = asyncio.create_task(_look_again(show, read, keys, every_seconds))
        looks.add_done_callback(lambda _: keys.put_nowait(END))
        try:
            with full_screen(console) as draw, listening(keys.put_nowait):
                await _draw_until_over(show, console, draw, keys)
        finally:
            looks.cancel()
            await asyncio.gather(looks, return_exceptions=True)
        if not looks.cancelled():
            looks.result()


class _Show:
    """What is to be seen now."""

    def __init__(self, snapshot: Snapshot, choices: Choices) -> None:
        self.choices = choices
        self.problem = ""
        self.trails = Trails()
        self.saw(snapshot)

    def saw(self, snapshot: Snapshot) -> None:
        """There is something newer."""
        self.snapshot = snapshot
        self.trails.note(snapshot)
        failed = [f for f in diagnose(snapshot) if f.severity is Severity.ERROR]
        self.problem = failed[0].text if failed else ""


async def _look_again(
    show: _Show, read: Read, keys: asyncio.Queue[str], every_seconds: float
) -> None:
    while True:
        await asyncio.sleep(every_seconds)
        try:
            show.saw(await read())
        except ExporterError as error:
            show.problem = f"what is shown is old: {error}"
        keys.put_nowait(_NOTHING_PRESSED)


async def _draw_until_over(
    show: _Show, console: Console, draw: Draw, keys: asyncio.Queue[str]
) -> None:
    while not show.choices.over:
        draw(
            screen(
                show.snapshot,
                show.trails,
                show.choices,
                console.width,
                console.height,
                show.problem,
            )
        )
        show.choices = show.choices.pressed(await keys.get())
