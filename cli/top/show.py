"""The loop of `quotascope top`: read the brokers or an exporter, draw, and wait for keys."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from typing import TypeAlias

import typer
from rich.console import Console

from quotascope.exporter.api.answers import entity_document, health_document
from quotascope.exporter.api.client import Observed, read_exporter, read_recent
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.config import Config
from quotascope.exporter.diagnosis.catalog import FindingSeverity
from quotascope.exporter.diagnosis.findings import diagnose
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.errors import ExporterError
from quotascope.exporter.sources.peer import HttpTarget

from ..cluster import report_errors
from ..terminal import full_screen
from .choices import END, Choices
from .keyboard import listening
from .screen import chosen, entity_table, hint_of_teams, screen, summary

Read: TypeAlias = Callable[[], Awaitable[Observed]]
"""A function that reads the current state of the cluster. Raises ``ExporterError``."""
_NOTHING_PRESSED = ""


@asynccontextmanager
async def open_reader(config: Config, exporter: HttpTarget | None) -> AsyncIterator[Read]:
    """Yield a function that reads the current state. Raises ``ConfigError`` and ``ClientError``."""
    if exporter is not None:
        yield lambda: read_exporter(exporter)
        return

    from ..compose import build_collection

    async with build_collection(config, watch=True) as collection:

        async def read() -> Observed:
            snapshot = await collection.snapshot(config.collection.timeout_seconds)
            return snapshot, diagnose(snapshot)

        yield read


async def print_once(
    reader: AbstractAsyncContextManager[Read],
    console: Console,
    choices: Choices,
    exporter: HttpTarget | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Print a table, or JSON. Raises ``ExporterError``, and ``typer.Exit`` with 1 if a source could not be read."""
    async with reader as read_state:
        snapshot, findings = await read_state()
    rows = chosen(snapshot, choices)
    if as_json:
        health = health_document(snapshot, findings)
        entities: list[object] = [entity_document(usage) for usage in rows]
        if choices.teams is not None:
            labels = (choices.teams.label(usage.entity.user, usage.entity.client_id) for usage in rows)
            entities = [
                {**asdict(entity_document(usage)), "team": label} for usage, label in zip(rows, labels, strict=True)
            ]
        answer = {"health": health, "entities": entities}
        typer.echo(encoded(answer, indent=2), nl=False)
    else:
        console.print(summary(snapshot, rows), soft_wrap=True)
        show = _Show((snapshot, findings), choices)
        if exporter is not None:
            show.recall(await read_recent(exporter))
        console.print(entity_table(rows, show.trails, console.width, snapshot, choices.teams))
        if hint := hint_of_teams(console.width, choices):
            console.print(hint)
    if report_errors(findings):
        raise typer.Exit(1)


async def watch(
    reader: AbstractAsyncContextManager[Read],
    console: Console,
    choices: Choices,
    every_seconds: float,
    exporter: HttpTarget | None = None,
) -> None:
    """
    Draw repeatedly until a key or a signal ends it.

    Raises ``ExporterError`` if the first read fails. The screen shows the error of a later read; any other error ends
    the screen and is raised.
    """
    async with reader as read_state:
        show = _Show(await read_state(), choices)
        if exporter is not None:
            show.recall(await read_recent(exporter))
        keys: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, keys.put_nowait, END)
        reads = asyncio.create_task(_refresh(show, read_state, keys, every_seconds))
        reads.add_done_callback(lambda _: keys.put_nowait(END))
        try:
            with full_screen(console) as draw, listening(keys.put_nowait):
                while not show.choices.over:
                    size = console.width, console.height
                    draw(screen(show.snapshot, show.trails, show.choices, *size, show.problem))
                    show.choices = show.choices.pressed(await keys.get())
        finally:
            reads.cancel()
            await asyncio.gather(reads, return_exceptions=True)
        if not reads.cancelled():
            reads.result()


class _Show:
    """State of the screen."""

    def __init__(self, observed: Observed, choices: Choices) -> None:
        self.choices = choices
        self.problem = ""
        self.trails = Trails()
        self.update(observed)

    def recall(self, recent: Mapping[tuple[str, str, str, str], Sequence[float | None]]) -> None:
        """Begin the trails with the recent utilizations that an exporter remembers."""
        for usage in self.snapshot.measured:
            entity = usage.entity
            key = (entity.quota_type.label, entity.broker, entity.user, entity.client_id)
            self.trails.recall(entity, recent.get(key, ()))

    def update(self, observed: Observed) -> None:
        """Show a newer snapshot."""
        self.snapshot, findings = observed
        self.trails.note(self.snapshot)
        errors = [finding for finding in findings if finding.severity is FindingSeverity.ERROR]
        self.problem = errors[0].text if errors else ""


async def _refresh(show: _Show, read_state: Read, keys: asyncio.Queue[str], every_seconds: float) -> None:
    """Read the state again and again until canceled; a key that changes nothing has it drawn."""
    while True:
        await asyncio.sleep(every_seconds)
        try:
            show.update(await read_state())
        except ExporterError as error:
            show.problem = f"the figures are old: {error}"
        keys.put_nowait(_NOTHING_PRESSED)
