"""The demo at work: its clients, the exporter in front of its engine, and the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from rich.console import Console

from quotascope.alerts.runbook import runbooks
from quotascope.demo import Simulation, run
from quotascope.exporter.app import Exporter, Parts
from quotascope.exporter.config import Config
from quotascope.exporter.config.load import Loaded
from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.metrics import Clock, SteadyClock

from .demo_view import farewell, intro, screen, view
from .terminal import can_redraw, full_screen

_NODE_ID = "1"
_CAPACITY_THREADS = 11.0
"""As in Kafka's default: 8 handlers and 3 network threads."""
_REDRAW_SECONDS = 0.5
_PRINT_SECONDS = 5.0
_PLAIN_COLUMNS = 100


async def play(config: Config, duration_seconds: int | None) -> None:
    """
    Run the demo until SIGINT, SIGTERM or the end of its time.

    Raises:
        CannotListen: the port is taken.

    """
    clock = SteadyClock()
    simulation = Simulation(clock())
    source = EmbeddedSource("demo", simulation.registry, _NODE_ID, clock)
    limits = EmbeddedLimits(simulation.quotas, _NODE_ID, clock, _CAPACITY_THREADS)
    until = _end(duration_seconds)
    started = time.monotonic()
    console = Console(highlight=False)
    if not can_redraw(console) and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_PLAIN_COLUMNS)
    parts = Parts(loaded=Loaded(config=config), sources=(source,), limits=limits)
    async with Exporter(parts, runbooks=dict(runbooks())) as exporter:
        async with _at_work(simulation, clock, until):
            if can_redraw(console):
                await _redraw(exporter, console, until)
            else:
                await _print(exporter, console, until)
        last = await exporter.snapshot()
    console.print(farewell(last, time.monotonic() - started), soft_wrap=True)


@asynccontextmanager
async def _at_work(
    simulation: Simulation, clock: Clock, until: asyncio.Event
) -> AsyncIterator[None]:
    """Runs the clients meanwhile; a failure of theirs is a defect, and ends the demo."""
    clients = asyncio.create_task(run(simulation, clock))
    clients.add_done_callback(lambda _task: until.set())
    try:
        yield
    finally:
        clients.cancel()
        with suppress(asyncio.CancelledError):
            await clients


def _end(duration_seconds: int | None) -> asyncio.Event:
    loop = asyncio.get_running_loop()
    until = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, until.set)
    if duration_seconds is not None:
        loop.call_later(duration_seconds, until.set)
    return until


async def _redraw(exporter: Exporter, console: Console, until: asyncio.Event) -> None:
    with full_screen(console) as draw:
        ended = False
        while not ended:
            snapshot = await exporter.snapshot()
            draw(screen(snapshot, exporter.url, console.width, console.height))
            ended = await _ends_within(until, _REDRAW_SECONDS)
    console.print(view(await exporter.snapshot(), console.width, console.height - 2))


async def _print(exporter: Exporter, console: Console, until: asyncio.Event) -> None:
    console.print(intro(exporter.url), soft_wrap=True)
    ended = False
    while not ended:
        ended = await _ends_within(until, _PRINT_SECONDS)
        console.print(view(await exporter.snapshot(), console.width), "")


async def _ends_within(until: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(until.wait(), seconds)
    except TimeoutError:
        return False
    return True
