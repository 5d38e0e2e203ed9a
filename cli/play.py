"""The demo: its clients, the exporter in front of its engine, and the terminal with throttled clients and rules."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.alerts.runbook import runbooks, summaries
from quotascope.demo import Simulation, run
from quotascope.exporter.app import Exporter, Parts
from quotascope.exporter.config import Config
from quotascope.exporter.config.load import Loaded
from quotascope.exporter.diagnosis.units import rule_name, seconds, type_name
from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.exporter.snapshot import EntityUsage, LimitState, Snapshot
from quotascope.metrics import catalog
from quotascope.metrics.catalog.thresholds import NEAR_LIMIT
from quotascope.metrics.engine.clock import Clock, SteadyClock

from .terminal import can_redraw, full_screen
from .usage_table import (
    BAR,
    DELAY,
    QUOTA_TYPE,
    QUOTA_TYPE_WHOLE,
    USAGE_OF_LIMIT,
    USED,
    WHO,
    WIDEST,
    UsageColumn,
    usage_table,
)

_NODE_ID = "1"
_CAPACITY_THREADS = 11.0
"""Number of threads by Kafka's defaults: 8 handlers and 3 network threads."""
_REDRAW_SECONDS = 0.5
_PRINT_SECONDS = 5.0
_PLAIN_COLUMNS = 100
_WHAT_TO_LOOK_AT = """\
Simulated clients are throttled by real quotas; no Kafka is needed.
A row is one quota: its usage, its limit, and the rule that applies. A rule's
digit is its level: 1 (user / client-id) wins over 8 (client-id <default>).
Watch etl burst and wait, two dashboards share a limit, deploy be refused, and
orders stay just below. `delay` is the mean of recent throttles."""
_INTRO_COLUMNS = 78
_INTRO_LINES = 7
_SMALLEST_WITH_INTRO = 19
_LINES_AROUND = 4
"""Number of lines beside the rows: the header of the table and its line, an empty line, and the summary."""


async def play(config: Config, duration_seconds: int | None) -> None:
    """
    Run the demo until SIGINT, SIGTERM or the end of its time.

    Raises:
        CannotListen: the port is taken.

    """
    clock = SteadyClock()
    simulation = Simulation(clock())
    source = EmbeddedSource("demo", simulation.registry, _NODE_ID, clock, simulation.broker.beans)
    limits = EmbeddedLimits(simulation.quotas, _NODE_ID, clock, _CAPACITY_THREADS)
    until = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, until.set)
    if duration_seconds is not None:
        loop.call_later(duration_seconds, until.set)
    started = time.monotonic()
    console = Console(highlight=False)
    if not can_redraw(console) and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_PLAIN_COLUMNS)
    parts = Parts(loaded=Loaded(config=config), sources=(source,), limits=limits)
    async with Exporter(parts, runbooks=dict(runbooks()), summaries=summaries()) as exporter:
        async with _run_clients(simulation, clock, until):
            if can_redraw(console):
                await _redraw(exporter, console, until)
            else:
                await _print(exporter, console, until)
        last_snapshot = await exporter.snapshot()
    console.print(farewell(last_snapshot, time.monotonic() - started), soft_wrap=True)


@asynccontextmanager
async def _run_clients(simulation: Simulation, clock: Clock, until: asyncio.Event) -> AsyncIterator[None]:
    """Run the clients until the block ends; an error of theirs ends the demo, and is raised."""
    clients = asyncio.create_task(run(simulation, clock))
    clients.add_done_callback(lambda _task: until.set())
    try:
        yield
    finally:
        clients.cancel()
        with suppress(asyncio.CancelledError):
            await clients


async def _redraw(exporter: Exporter, console: Console, until: asyncio.Event) -> None:
    """Draw the state in place until the end, and leave the last one on the terminal."""
    with full_screen(console) as draw:
        ended = False
        while not ended:
            snapshot = await exporter.snapshot()
            draw(screen(snapshot, exporter.url, console.width, console.height))
            ended = await _ends_within(until, _REDRAW_SECONDS)
    console.print(view(await exporter.snapshot(), console.width, console.height - 2))


async def _print(exporter: Exporter, console: Console, until: asyncio.Event) -> None:
    """Print the state every few seconds until the end."""
    console.print(intro(exporter.url), soft_wrap=True)
    ended = False
    while not ended:
        ended = await _ends_within(until, _PRINT_SECONDS)
        console.print(view(await exporter.snapshot(), console.width), "")


async def _ends_within(until: asyncio.Event, seconds: float) -> bool:
    """Wait for some seconds; return whether the demo is to end, which ends the wait as well."""
    try:
        await asyncio.wait_for(until.wait(), seconds)
    except TimeoutError:
        return False
    return True


def intro(url: str) -> RenderableType:
    """Return a short explanation, and the address for a browser and Prometheus."""
    return Group(Text(_WHAT_TO_LOOK_AT), _address(url), Text())


def screen(snapshot: Snapshot, url: str, width: int, height: int) -> RenderableType:
    """Return the contents of a terminal of `width` columns and `height` lines; a small one has no explanation."""
    if width < _INTRO_COLUMNS or height < _SMALLEST_WITH_INTRO:
        return Group(_address(url), view(snapshot, width, height - 1))
    return Group(intro(url), view(snapshot, width, height - _INTRO_LINES))


def _address(url: str) -> Text:
    """Return the line with the addresses for a browser and for Prometheus."""
    text = Text.assemble("Page: ", (f"{url}/", "bold underline"), "   for Prometheus: /metrics   (Ctrl-C ends)")
    text.no_wrap = True
    return text


def view(snapshot: Snapshot, width: int, height: int | None = None) -> RenderableType:
    """Return the table and a summary, in at most `height` lines, or with all rows for None."""
    ranked = ranking(snapshot.measured)
    rows = len(ranked) if height is None else max(1, height - _LINES_AROUND)
    last_line = Text(summary(snapshot, len(ranked) - rows), style="dim", no_wrap=True, overflow="ellipsis")
    return Group(table(ranked[:rows], width), Text(), last_line)


def ranking(entities: Sequence[EntityUsage]) -> list[EntityUsage]:
    """Return the entities with the longest throttle times first, then by utilization."""
    return sorted(entities, key=lambda usage: (-(usage.throttle_time_seconds or 0.0), -(usage.pressure or 0.0)))


def summary(snapshot: Snapshot, left_out: int) -> str:
    """Return a line of the muted connections, the refused topics, and the number of rows that do not fit."""
    muted = ", ".join(
        f"{type_name(quota_type)} {size:.0f}"
        for node in snapshot.nodes
        for quota_type, size in node.delay_queue_size.items()
    )
    text = f"muted now: {muted}; topics refused with error 89: {_refused(snapshot):.0f}"
    return f"{text}; {left_out} more rows" if left_out > 0 else text


def farewell(snapshot: Snapshot, elapsed_seconds: float) -> str:
    """Return the line at the end of the demo."""
    throttle_time = _total(snapshot, catalog.REQUEST_THROTTLED_SECONDS)
    return (
        f"The demo ended after {elapsed_seconds:.0f} s. Throttle time in responses: {seconds(throttle_time)};"
        f" topics refused: {_refused(snapshot):.0f}."
    )


def _refused(snapshot: Snapshot) -> float:
    """Return the number of refused requests (error 89), which the demo has for topics only."""
    return _total(snapshot, catalog.THROTTLING_ERRORS)


def _total(snapshot: Snapshot, family: catalog.Family) -> float:
    """Return the sum of the numbers of a family over nodes and requests."""
    return sum(sum(node.by_name(family).values()) for node in snapshot.nodes)


def table(entities: Iterable[EntityUsage], width: int) -> Table:
    """Return a table with a row for each entity, and columns for a terminal of this width."""
    width = min(width, WIDEST)
    return usage_table(entities, _LAYOUTS, width, NEAR_LIMIT.value)


_AMOUNT = replace(USAGE_OF_LIMIT, width=19)
_RULE = UsageColumn(
    header="rule",
    cell=lambda usage, _: Text(
        rule_name(usage.entity.resolution), style="" if usage.entity.limit_state is LimitState.LIMITED else "dim"
    ),
    share=23,
)

_WHO = replace(WHO, share=22)
_NARROW = (_WHO, USED, DELAY)
_SMALL = (_WHO, QUOTA_TYPE, _AMOUNT, USED, DELAY)
_USUAL = (_WHO, QUOTA_TYPE, _AMOUNT, USED, _RULE, DELAY)
_REST = (_AMOUNT, replace(BAR, width=3), USED, _RULE, DELAY)
_LARGE = (_WHO, QUOTA_TYPE, *_REST)
_LARGER = (_WHO, QUOTA_TYPE_WHOLE, *_REST)

_LAYOUTS = (
    (112, _LARGER),
    (96, _LARGE),
    (76, _USUAL),
    (56, _SMALL),
    (0, _NARROW),
)
