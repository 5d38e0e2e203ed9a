"""A large cluster as snapshots of the exporter: 10,000 quota entities, most of them on each of ten brokers."""

import random
from collections.abc import Iterator
from typing import Final

from quotascope.exporter.limits.model import Limits
from quotascope.exporter.snapshot import (
    Columns,
    Entity,
    EntityUsage,
    LimitsHealth,
    NodeUsage,
    Snapshot,
    SourceHealth,
    ThrottleCause,
)
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

MIX: Final = {
    QuotaType.PRODUCE: 4_500,
    QuotaType.FETCH: 4_500,
    QuotaType.REQUEST: 900,
    QuotaType.CONTROLLER_MUTATION: 100,
}
"""Entities by quota; those of controller mutations are on the active controller only."""
USERS: Final = 1_000
UNLIMITED: Final = 0.1
THROTTLED: Final = 0.02
_LIMITS: Final = {
    QuotaType.PRODUCE: 5_000_000.0,
    QuotaType.FETCH: 20_000_000.0,
    QuotaType.REQUEST: 0.5,
    QuotaType.CONTROLLER_MUTATION: 10.0,
}
_BURST: Final = 110.0
_RULES: Final = {kind: QuotaRules({QuotaEntity(DEFAULT, DEFAULT): limit}).snapshot() for kind, limit in _LIMITS.items()}
_REQUESTS: Final = ("Produce", "Fetch", "CreateTopics", "DeleteTopics", "Metadata")


class Fleet:
    """
    The cluster; its entities stay, what they use changes.

    Args:
        scale: Share of the full number of entities.
        brokers: How many there are.

    """

    def __init__(self, scale: float = 1.0, brokers: int = 10) -> None:
        self._random = random.Random(7)  # noqa: S311 - no secrets here
        self.brokers = [str(number) for number in range(1, brokers + 1)]
        self._entities = [
            entity for kind, count in MIX.items() for entity in self._of(kind, max(int(count * scale), 1))
        ]
        self._throttled = {id(entity) for entity in self._entities if self._random.random() < THROTTLED}

    def snapshot(self, taken_at: float) -> Snapshot:
        """Return the cluster at a Unix time in seconds."""
        return Snapshot(
            taken_at=taken_at,
            columns=Columns.of(self._usage(entity) for entity in self._entities),
            nodes=tuple(self._node(broker, taken_at) for broker in self.brokers),
            sources=tuple(
                SourceHealth(name=f"broker-{broker}", dialect="jolokia", up=True, duration_seconds=0.1, readings=5_000)
                for broker in self.brokers
            ),
            limits=Limits(read_at=taken_at, active_controller="1"),
            limits_health=LimitsHealth(read_at=taken_at, changes_total={"producer_byte_rate": 7}),
        )

    def _of(self, kind: QuotaType, count: int) -> Iterator[Entity]:
        """Yield the entities of a quota type on the brokers that measure them."""
        for number in range(count):
            user = f"user-{number % USERS:04d}"
            client_id = f"{kind.value}-client-{number:05d}"
            limited = self._random.random() >= UNLIMITED
            on_brokers = self.brokers[:1]
            if kind is not QuotaType.CONTROLLER_MUTATION:
                on_brokers = self.brokers
            for broker in on_brokers:
                yield Entity(
                    broker=broker,
                    quota_type=kind,
                    user=user,
                    client_id=client_id,
                    resolution=_RULES[kind].limit(user, client_id) if limited else None,
                    limit=_LIMITS[kind] if limited else None,
                    burst_tokens=_BURST if limited and kind is QuotaType.CONTROLLER_MUTATION else None,
                )

    def _usage(self, entity: Entity) -> EntityUsage:
        throttled = id(entity) in self._throttled
        share = self._random.uniform(0.9, 1.1) if throttled else self._random.random()
        tokens = None if entity.burst_tokens is None else _BURST * (1 - share)
        return EntityUsage(
            entity=entity,
            usage=_LIMITS[entity.quota_type] * share,
            throttle_time_seconds=self._random.uniform(0.1, 3) if throttled else 0.0,
            tokens=tokens,
            cause=ThrottleCause.OWN if throttled else None,
        )

    def _node(self, broker: str, taken_at: float) -> NodeUsage:
        total = taken_at % 1_000_000
        return NodeUsage(
            broker=broker,
            delay_queue_size={kind: self._random.randrange(20) for kind in QuotaType},
            numbers={
                catalog.EXEMPT_REQUEST_THREADS: {(): self._random.random()},
                catalog.REQUEST_CAPACITY_THREADS: {(): 11.0},
                catalog.REQUEST_THROTTLED_SECONDS: {(request,): total for request in _REQUESTS},
                catalog.THROTTLING_ERRORS: {(request,): total / 10 for request in _REQUESTS[2:4]},
                catalog.CONTROLLER_EVENTS: {(): total if broker == "1" else None},
                catalog.CONTROLLER_EVENT_QUEUE_SECONDS: {(): total / 50 if broker == "1" else None},
            },
            active_controller=broker == "1",
        )
