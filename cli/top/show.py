"""`quotascope top` at work: it reads the brokers or an exporter, draws, and waits for keys."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import typer
from rich.console import Console

from quotascope.exporter.api.client import Observed, read_exporter, read_recent
from quotascope.exporter.api.documents import encoded, entity_document, health_document
from quotascope.exporter.config import Config
from quotascope.exporter.diagnosis import FindingSeverity, diagnose
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.errors import ExporterError
from quotascope.exporter.sources.fetch import HttpTarget

from ..cluster import report_errors
from ..compose import build_collection
from ..terminal import full_screen
from .choices import END, Choices
from .keyboard import listening
from .screen import chosen, entity_table, screen, summary

Read: TypeAlias = Callable[[], Awaitable[Observed]]
"""The state of the cluster now. Raises ``ExporterError``."""
_NOTHING_PRESSED = ""


@asynccontextmanager
async def reading(config: Config, exporter: HttpTarget | None) -> AsyncIterator[Read]:
    """What reads again and again. Raises ``ConfigError`` and ``ClientError``."""
    if exporter is not None:
        yield lambda: read_exporter(exporter)
        return
    async with build_collection(config, watch=True) as collection:

        async def read() -> Observed:
            snapshot = await collection.snapshot(config.collection.timeout_seconds)
            return snapshot, diagnose(snapshot)

        yield read


async def print_once(
    reading: AbstractAsyncContextManager[Read],
    console: Console,
    choices: Choices,
    exporter: HttpTarget | None = None,
    *,
    as_json: bool = False,
) -> None:
    """One plain table, or JSON. Raises ``ExporterError``, and ``typer.Exit`` with 1 when something could not be read."""
    async with reading as read:
        snapshot, findings = await read()
    rows = chosen(snapshot.measured, choices)
    if as_json:
        health = health_document(snapshot, findings)
        entities = [entity_document(usage) for usage in rows]
        answer = {"health": health, "entities": entities}
        typer.echo(encoded(answer, indent=2), nl=False)
    else:
        console.print(summary(snapshot, rows), soft_wrap=True)
        show = _Show((snapshot, findings), choices)
        if exporter is not None:
            show.recall(await read_recent(exporter))
        console.print(entity_table(rows, show.trails, console.width, snapshot))
    if report_errors(findings):
        raise typer.Exit(1)


async def watch(
    reading: AbstractAsyncContextManager[Read],
    console: Console,
    choices: Choices,
    every_seconds: float,
    exporter: HttpTarget | None = None,
) -> None:
    """
    Draw again and again until a key or a signal ends it.

    Raises ``ExporterError`` when the first read fails. The screen shows why a later one fails; any other error ends the
    screen and is raised.
    """
    async with reading as read:
        show = _Show(await read(), choices)
        if exporter is not None:
            show.recall(await read_recent(exporter))
        keys: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, keys.put_nowait, END)
        looks = asyncio.create_task(_look_again(show, read, keys, every_seconds))
        looks.add_done_callback(lambda _: keys.put_nowait(END))
        try:
            with full_screen(console) as draw, listening(keys.put_nowait):
                while not show.choices.over:
                    size = console.width, console.height
                    draw(screen(show.snapshot, show.trails, show.choices, *size, show.problem))
                    show.choices = show.choices.pressed(await keys.get())
        finally:
            looks.cancel()
            await asyncio.gather(looks, return_exceptions=True)
        if not looks.cancelled():
            looks.result()


class _Show:
    """What the screen shows now."""

    def __init__(self, observed: Observed, choices: Choices) -> None:
        self.choices = choices
        self.problem = ""
        self.trails = Trails()
        self.update(observed)

    def recall(self, recent: Mapping[tuple[str, str, str, str], Sequence[float | None]]) -> None:
        """Begin with the minutes that an exporter remembers."""
        for usage in self.snapshot.measured:
            of = usage.entity
            key = (of.quota_type.label, of.broker, of.user, of.client_id)
            self.trails.recall(of, recent.get(key, ()))

    def update(self, observed: Observed) -> None:
        """Show a newer snapshot."""
        self.snapshot, findings = observed
        self.trails.note(self.snapshot)
        failed = [each for each in findings if each.severity is FindingSeverity.ERROR]
        self.problem = failed[0].text if failed else ""


async def _look_again(show: _Show, read: Read, keys: asyncio.Queue[str], every_seconds: float) -> None:
    while True:
        await asyncio.sleep(every_seconds)
        try:
            show.update(await read())
        except ExporterError as error:
            show.problem = f"the figures are old: {error}"
        keys.put_nowait(_NOTHING_PRESSED)
