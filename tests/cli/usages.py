"""Entities and snapshots for tests of what the terminal shows."""

from io import StringIO
from typing import Any

from rich.console import Console, RenderableType

from quotascope.demo import Simulation
from quotascope.exporter.collection import Collection
from quotascope.exporter.embedded import EmbeddedLimits, EmbeddedSource
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import Entity, EntityUsage, Snapshot
from quotascope.metrics import NO_RULE, QuotaEntity, QuotaType, Resolution

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
    """The produce quota of a user and client-id, and what was used of it; whether a missing limit is known to be none."""
    resolution = NO_RULE if known else None
    if limit is not None:
        rule = QuotaEntity(user, client_id)
        resolution = Resolution(level=rule.level, entity=rule, bound=limit)
    entity = Entity(
        broker="1", quota_type=QuotaType.PRODUCE, user=user, client_id=client_id, resolution=resolution, limit=limit
    )
    throttles = {"throttle_time_seconds": 0.0, "throttled_seconds_total": 0.0}
    return EntityUsage(entity=entity, usage=usage, **{**throttles, **numbers})


async def demo_after(seconds: int) -> Snapshot:
    """What the exporter says of the demo when so much time has passed for it."""
    simulation = Simulation(START_MS)
    end_ms = START_MS + seconds * 1_000
    for now_ms in range(START_MS, end_ms + 1, 20):
        simulation.advance(now_ms)
    limits = LimitsRefresh(EmbeddedLimits(simulation.quotas, "1", lambda: end_ms), 5.0)
    await limits.refresh()
    source = EmbeddedSource("demo", simulation.registry, "1", lambda: end_ms)
    collection = Collection([source], limits, clock=lambda: end_ms / 1_000)
    return await collection.snapshot(5.0)


def rendered(renderable: RenderableType, width: int, encoding: str = "utf-8") -> str:
    """The text that a terminal of so many columns would show, without colors."""
    file = _Encoded()
    file.encoding = encoding
    console = Console(file=file, width=width, height=200, force_terminal=True, color_system=None)
    console.print(renderable)
    return file.getvalue()


class _Encoded(StringIO):
    encoding = "utf-8"
