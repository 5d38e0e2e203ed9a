"""Entities and snapshots for tests of what the terminal shows."""

from io import StringIO
from typing import Any

from rich.console import Console, RenderableType

from quotascope.cli.report import show
from quotascope.demo import Simulation
from quotascope.exporter.collection import Collection
from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import Entity, EntityUsage, Snapshot
from quotascope.metrics.kafka.entities import NO_RULE, QuotaEntity, QuotaType, Resolution
from quotascope.pages.report import Report

START_MS = 1_700_000_000_000


def usage_of(
    user: str = "alice",
    client_id: str = "app",
    *,
    usage: float | None = 500.0,
    limit: float | None = 1_000.0,
    known: bool = True,
    **numbers: Any,
) -> EntityUsage:
    """Return the usage of the produce quota of a user and client-id; a missing limit is none, or unknown."""
    resolution = NO_RULE if known else None
    if limit is not None:
        rule = QuotaEntity(user, client_id)
        resolution = Resolution(level=rule.level, entity=rule, bound=limit)
    entity = Entity(
        broker="1", quota_type=QuotaType.PRODUCE, user=user, client_id=client_id, resolution=resolution, limit=limit
    )
    return EntityUsage(entity=entity, usage=usage, **numbers)


async def demo_after(seconds: int) -> Snapshot:
    """Return the exporter's snapshot of the demo after some time."""
    simulation = Simulation(START_MS)
    end_ms = START_MS + seconds * 1_000
    for now_ms in range(START_MS, end_ms + 1, 20):
        simulation.advance(now_ms)
    limits = LimitsRefresh(EmbeddedLimits(simulation.quotas, "1", lambda: end_ms), 5.0)
    await limits.refresh()
    source = EmbeddedSource("demo", simulation.registry, "1", lambda: end_ms, simulation.broker.beans)
    collection = Collection([source], limits, clock=lambda: end_ms / 1_000)
    return await collection.snapshot(5.0)


class _Encoded(StringIO):
    encoding = "utf-8"


def rendered(renderable: RenderableType, width: int, encoding: str = "utf-8") -> str:
    """Return the text that a terminal of so many columns would show, without colors."""
    file = _Encoded()
    file.encoding = encoding
    _terminal(file, width).print(renderable)
    return file.getvalue()


def reported(report: Report, width: int) -> str:
    """Return a report as it is printed in a terminal of this width."""
    file = _Encoded()
    show(_terminal(file, width), report)
    return file.getvalue()


def _terminal(file: StringIO, width: int) -> Console:
    return Console(file=file, width=width, height=200, force_terminal=True, color_system=None)
