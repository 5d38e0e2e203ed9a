"""A cluster whose clients come, go and change what they use, as snapshots of the exporter."""

import random
from collections.abc import Iterator
from typing import Final

from quotascope.exporter.snapshot import (
    Columns,
    Entity,
    EntityUsage,
    NodeUsage,
    Snapshot,
    SourceHealth,
)
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType

SERIES_PER_ENTITY: Final = 5
"""Usage, throttle time, utilisation, limit and rule."""
TYPES: Final = (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST)
LIMITS: Final = {
    QuotaType.PRODUCE: 5_000_000.0,
    QuotaType.FETCH: 20_000_000.0,
    QuotaType.REQUEST: 0.5,
}
USERS: Final = 997
_RULES: Final = {
    kind: QuotaRules({QuotaEntity(DEFAULT, DEFAULT): LIMITS[kind]}).snapshot()
    for kind in TYPES
}


class Cluster:
    """
    One broker whose clients each have a user, a client id and three quotas.

    Args:
        series: About how many series its exposition has.
        seed: Of what is random about it.

    """

    def __init__(self, series: int, seed: int = 7) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secrets here
        self._names = 0
        count = series // (SERIES_PER_ENTITY * len(TYPES))
        names = [self._name() for _ in range(count)]
        self._usages = [
            self._usage(_entity(kind, *name))
            for kind in TYPES
            for name in sorted(names)
        ]

    def snapshot(self) -> Snapshot:
        """The cluster as it is: as the join leaves it, a usage is another object where something of it changed."""
        return Snapshot(
            taken_at=1_795_251_780.0,
            shown=Columns.of(self._usages),
            nodes=(NodeUsage(broker="1", delay_queue_size=dict.fromkeys(TYPES, 3.0)),),
            sources=(
                SourceHealth(
                    name="broker-1", dialect="jolokia", up=True, duration_seconds=0.1
                ),
            ),
        )

    def step(self, values: float, entities: float) -> None:
        """Let shares of the values change, and of the entities give way to others."""
        self._usages = [self._next(usage, values) for usage in self._usages]
        if entities:
            self._usages = list(self._renewed(entities))

    def _next(self, usage: EntityUsage, share: float) -> EntityUsage:
        if self._random.random() < share:
            return self._usage(usage.entity)
        return usage

    def _renewed(self, share: float) -> Iterator[EntityUsage]:
        kept = [each for each in self._usages if self._random.random() >= share]
        fresh = [
            self._usage(_entity(self._random.choice(TYPES), *self._name()))
            for _ in range(len(self._usages) - len(kept))
        ]
        # sorted as the join leaves them
        order = {kind: place for place, kind in enumerate(TYPES)}
        yield from sorted(
            kept + fresh,
            key=lambda usage: (
                order[usage.entity.quota_type],
                usage.entity.user,
                usage.entity.client_id,
            ),
        )

    def _name(self) -> tuple[str, str]:
        self._names += 1
        return f"user-{self._names % USERS}", f"client-{self._names:07d}"

    def _usage(self, entity: Entity) -> EntityUsage:
        limit = entity.limit or 0.0
        throttled = self._random.random() < 0.02  # noqa: PLR2004 - a few always are
        return EntityUsage(
            entity=entity,
            usage=limit * self._random.random() ** 4,
            throttle_time_seconds=self._random.random() if throttled else 0.0,
        )


def _entity(kind: QuotaType, user: str, client_id: str) -> Entity:
    return Entity(
        broker="1",
        quota_type=kind,
        user=user,
        client_id=client_id,
        resolution=_RULES[kind].limit(user, client_id),
        limit=LIMITS[kind],
    )
