"""Snapshots to push."""

from __future__ import annotations

from typing import Final

from tests.exporter.examples import limits, snapshot, usage

from quotascope.exporter.snapshot import NodeUsage, PushHealth, Snapshot, ThrottleCause
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import QuotaType

HOSTILE: Final = ('"\\\n\r\t\x00{}=,', "\ud800\u202e\U0001f600", "x" * 10_000, "<script>", "__overflow__")


def hostile() -> Snapshot:
    entities = [usage(user=name, client_id=name, usage=1.5, limit=3.0) for name in HOSTILE]
    return snapshot(*entities)


def varied(requests: float = 7.0) -> Snapshot:
    """Counters, gauges, shared limits, zeros, -0, and values that are not shown."""
    configured = limits()
    entities = (
        usage(configured=configured, usage=-0.0, limit=1000.0, throttle_time_seconds=0.25),
        usage(broker="2", configured=configured, usage=250.5, limit=1000.0, cause=ThrottleCause.OWN),
        usage(client_id="app", usage=float("inf")),
        usage(QuotaType.FETCH, user="", client_id="app", usage=float("nan")),
        usage(
            QuotaType.CONTROLLER_MUTATION,
            usage=0.5,
            tokens=-3.0,
            limit=2.0,
            burst_tokens=22.0,
        ),
    )
    node = NodeUsage(
        broker="1",
        delay_queue_size={QuotaType.PRODUCE: 2.0},
        numbers={catalog.THROTTLING_ERRORS: {("CreateTopics",): requests}},
    )
    health = PushHealth(exports_total={"success": 1}, points_total={"accepted": 5})
    return snapshot(*entities, limits=configured, nodes=(node,), push=health)


def many(entities: int, first_number: int = 0, brokers: int = 30) -> Snapshot:
    """Produce entities with a limit; four gauges each."""
    return snapshot(
        *(
            usage(
                user=f"user-{place % 997}",
                client_id=f"client-{place:06d}",
                broker=str(place % brokers),
                usage=place * 1.5,
                limit=1e6 + place,
            )
            for place in range(first_number, first_number + entities)
        )
    )
