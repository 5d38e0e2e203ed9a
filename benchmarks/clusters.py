"""
A cluster whose clients come, go and change what they use.

As tables of an agent's numbers, and as snapshots of the exporter.
"""

from typing import Final

import numpy as np

from quotascope.exporter.coverage import Coverage, EntityKind
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import Bean, BeanColumn, BeanTable
from quotascope.exporter.snapshot import Columns, Entity, Floats, Layout, NodeUsage, Snapshot, SourceHealth, SourceRead
from quotascope.exporter.snapshot.layout import order
from quotascope.exporter.sources.source import LayoutTracker as TableColumns
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules

SERIES_PER_ENTITY: Final = 5
"""Usage, throttle time, utilization, limit and rule."""
TYPES: Final = (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST)
LIMITS: Final = {
    QuotaType.PRODUCE: 5_000_000.0,
    QuotaType.FETCH: 20_000_000.0,
    QuotaType.REQUEST: 50.0,
}
"""Configured limits: bytes/s, bytes/s, percent."""
USERS: Final = 997
RULES: Final = {kind: QuotaRules({QuotaEntity(DEFAULT, DEFAULT): LIMITS[kind]}) for kind in TYPES}
CONFIGURED: Final = Limits(rules=RULES, nodes={"1": NodeSettings()}, active_controller="1", read_at=0.0)
TAKEN_AT: Final = 1_795_251_780.0
_HEALTH: Final = SourceHealth(name="broker-1", dialect="jolokia", up=True, duration_seconds=0.1)
_COVERAGE: Final = Coverage(kinds=dict.fromkeys(TYPES, frozenset({EntityKind.PAIR})))
_ATTRIBUTES: Final = dict.fromkeys(TYPES, "byte-rate") | {QuotaType.REQUEST: "request-time"}
Key = tuple[QuotaType, str, str, str]
"""Quota type, user, client id, attribute."""


class Cluster:
    """
    One broker whose clients each have a user, a client id and three quotas.

    Args:
        series: About how many series its exposition has.
        seed: Of what is random about it.

    """

    def __init__(self, series: int, seed: int = 7) -> None:
        self._random = np.random.default_rng(seed)
        self._names = 0
        self._rules = {kind: rules.snapshot() for kind, rules in RULES.items()}
        self._tables: TableColumns[Key] = TableColumns(lambda key: [_column(key)])
        self._keys: list[Key] = []
        count = series // (SERIES_PER_ENTITY * len(TYPES))
        entities = (self._entity(kind) for kind in TYPES for _ in range(count))
        self.layout = Layout(sorted(entities, key=order))
        self._usage, self._throttle = self._numbers()

    def step(self, values: float, entities: float) -> None:
        """Let shares of the values change, and of the entities give way to others."""
        if entities:
            (removed,) = (self._random.random(len(self.layout)) < entities).nonzero()
            previous, kinds = (
                self.layout,
                self._random.integers(len(TYPES), size=len(removed)),
            )
            self.layout = previous.changed(removed, [self._entity(TYPES[n]) for n in kinds])
            self._usage = self.layout.carry(self._usage, previous)
            self._throttle = self.layout.carry(self._throttle, previous)
            self._keys = []
        usage, throttle = self._numbers()
        changed = self._random.random(len(self.layout)) < values
        changed |= np.isnan(self._usage)
        self._usage = np.where(changed, usage, self._usage)
        self._throttle = np.where(changed, throttle, self._throttle)

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is, as the join leaves it."""
        absent = self.layout.absent
        return Snapshot(
            taken_at=TAKEN_AT,
            columns=Columns(
                layout=self.layout,
                usage=self._usage,
                throttle_time=self._throttle,
                tokens=absent,
                reported_utilization=absent,
                causes=np.where(self._throttle > 0, 1, 0).astype(np.int8),
            ),
            nodes=(NodeUsage(broker="1", delay_queue_size=dict.fromkeys(TYPES, 3.0)),),
            sources=(_HEALTH,),
        )

    def reads(self) -> list[SourceRead]:
        """Return the same as its agent answers it."""
        if not self._keys:
            self._keys = [
                (entity.quota_type, entity.user, entity.client_id, attribute)
                for entity in self.layout.entities
                for attribute in (_ATTRIBUTES[entity.quota_type], "throttle-time")
            ]
        share = np.where(self.layout.limits < 1, 100.0, 1.0)  # percent of a thread
        numbers = np.column_stack([self._usage * share, self._throttle * 1_000])
        layout, values = self._tables.place(self._keys, numbers.ravel().tolist())
        table = BeanTable(node_id="1", layout=layout, values=values, coverage=_COVERAGE)
        return [SourceRead(health=_HEALTH, table=table)]

    def _entity(self, kind: QuotaType) -> Entity:
        self._names += 1
        user, client_id = f"user-{self._names % USERS}", f"client-{self._names:07d}"
        return Entity(
            broker="1",
            quota_type=kind,
            user=user,
            client_id=client_id,
            resolution=self._rules[kind].limit(user, client_id),
            limit=kind.in_base_unit(LIMITS[kind]),
        )

    def _numbers(self) -> tuple[Floats, Floats]:
        """Return usage and throttle times that clients might have; a few always have some."""
        draw, count = self._random.random, len(self.layout)
        usage = self.layout.limits * draw(count) ** 4
        return usage, np.where(draw(count) < 0.02, draw(count), 0.0)  # noqa: PLR2004 - one in fifty


def _column(key: Key) -> BeanColumn:
    kind, user, client_id, attribute = key
    tags = {"type": kind.group, "user": user, "client-id": client_id}
    return BeanColumn(Bean.of("kafka.server", tags), attribute)
