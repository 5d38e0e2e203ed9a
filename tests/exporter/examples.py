"""Small snapshots, limits and sources made by hand."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quotascope.exporter.alert_terms import DEFAULT_TERMS
from quotascope.exporter.app import Exporter, Parts
from quotascope.exporter.config import Config
from quotascope.exporter.config.load import Loaded
from quotascope.exporter.coverage import Coverage
from quotascope.exporter.errors import SourceError, SourceUnreachable
from quotascope.exporter.limits import Limits, LimitsSource, NodeSettings
from quotascope.exporter.mapping import Bean, BeanColumn, BeanLayout, BeanTable
from quotascope.exporter.snapshot import (
    Columns,
    Entity,
    EntityUsage,
    LimitsHealth,
    NodeUsage,
    ShadowUsage,
    Snapshot,
    SourceHealth,
)
from quotascope.exporter.sources.source import Source
from quotascope.metrics.catalog.teams import Clients, Team
from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.pages.baseline import ThrottleChange

COMPLETE = Coverage(complete=True, queues=frozenset(QuotaType), connections=True)
"""Of a source that leaves no client out."""
ALICE = QuotaEntity("alice", None)
NOW = 1_795_251_780.0
"""Unix time in seconds."""


def exporter_of(
    config: Config,
    sources: Sequence[Source],
    source_of_limits: LimitsSource | None = None,
    teams: Sequence[Team] = (),
    **options: Any,
) -> Exporter:
    terms = replace(DEFAULT_TERMS, teams=tuple(teams))
    parts = Parts(loaded=Loaded(config=config), sources=tuple(sources), limits=source_of_limits, alert_terms=terms)
    return Exporter(parts, **options)


def limits(**changes: Any) -> Limits:
    """Return limits: two produce rules, a request rule in percent, a rule for addresses, node 1 as the leader."""
    rules = {
        QuotaType.PRODUCE: QuotaRules({ALICE: 1000.0, QuotaEntity(DEFAULT, None): 500.0}),
        QuotaType.REQUEST: QuotaRules({QuotaEntity("alice", "app"): 50.0}),
    }
    fields: dict[str, Any] = {
        "rules": rules,
        "connection_limits": {"<default>": 7.0},
        "nodes": {"1": NodeSettings(request_capacity_threads=11.0)},
        "active_controller": "1",
        "read_at": NOW - 5,
    }
    return Limits(**{**fields, **changes})


def usage(  # noqa: PLR0913 - every test names the two that it is about
    quota_type: QuotaType = QuotaType.PRODUCE,
    user: str = "alice",
    client_id: str = "",
    *,
    broker: str = "1",
    configured: Limits | None = None,
    limit: float | None = None,
    burst_tokens: float | None = None,
    tags: tuple[str, ...] | None = None,
    stands_in: bool = False,
    **numbers: Any,
) -> EntityUsage:
    """Return the usage of an entity, whose rule ``configured`` decides; without it the rule is unknown."""
    resolution = None
    if configured is not None:
        rules = configured.rules.get(quota_type, QuotaRules())
        resolution = rules.limit(user, client_id) or NO_RULE
    entity = Entity(
        broker=broker,
        quota_type=quota_type,
        user=user,
        client_id=client_id,
        resolution=resolution,
        limit=limit,
        burst_tokens=burst_tokens,
        tags=tags,
        stands_in=stands_in,
    )
    return EntityUsage(entity=entity, **numbers)


def in_shadow(entity_usage: EntityUsage, change: ThrottleChange | None = None, **changes: Any) -> ShadowUsage:
    """Return the usage of an entity under a shadow."""
    throttle_s = entity_usage.throttle_time_seconds
    return ShadowUsage(
        entity=entity_usage.entity,
        usage=entity_usage.usage,
        throttle_time_seconds=throttle_s,
        change=change,
        **{"change_seconds": throttle_s, **changes},
    )


def changes(**counts: int) -> Mapping[ThrottleChange, int]:
    """Counts by change, 0 where none is given."""
    return {change: counts.get(change, 0) for change in ThrottleChange}


def health(name: str = "broker-1", **changes: Any) -> SourceHealth:
    fields: dict[str, Any] = {"name": name, "dialect": "jolokia", "up": True, "duration_seconds": 0.25, "readings": 12}
    return SourceHealth(**{**fields, **changes})


def team(name: str, **clients: str) -> Team:
    """Return a team and its entities."""
    return Team(name=name, clients=(Clients(**clients),))


def snapshot(*entities: EntityUsage, left_out: Sequence[EntityUsage] = (), **changes: Any) -> Snapshot:
    """Return a snapshot of one node and one source under ``limits()``; ``left_out`` are measured, but not shown."""
    fields: dict[str, Any] = {
        "taken_at": NOW,
        "columns": Columns.of(entities),
        "joined": Columns.of([*entities, *left_out]) if left_out else None,
        "nodes": (NodeUsage(broker="1", coverage=COMPLETE),),
        "sources": (health(node_id="1"),),
        "limits": limits(),
        "limits_health": LimitsHealth(read_at=NOW - 5),
    }
    return Snapshot(**{**fields, **changes})


def table(node_id: str = "1", **produced: float) -> BeanTable:
    """Return a read of one node: the produce rate of some users."""
    return rates(node_id, produced)


def rates(node_id: str, produced: Mapping[str, float]) -> BeanTable:
    """Return a read of one node with produce rates of users whose names are no Python names."""
    columns = (
        BeanColumn(Bean("kafka.server", (("type", "Produce"), ("user", user))), "byte-rate") for user in produced
    )
    layout = BeanLayout(tuple(columns))
    return BeanTable(node_id=node_id, layout=layout, values=array("d", produced.values()))


class Scripted:
    """Reads that end as the test says."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.answers = asyncio.Event()
        """A read waits until this is set."""
        self.answers.set()
        self.asked = asyncio.Event()
        """Set by each read."""
        self.reads = 0
        self.canceled = 0
        self.closed = 0

    async def ended(self) -> None:
        """Return when a read is to end, or raise its error."""
        self.reads += 1
        self.asked.set()
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.canceled += 1
            raise
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        self.closed += 1


class ScriptedSource(Scripted):
    node_id: str | None = None

    def __init__(self, name: str = "broker-1", node_id: str = "1", dialect: str = "scripted") -> None:
        super().__init__()
        self.name = name
        self.dialect = dialect
        self.table = table(node_id, alice=1.0)

    async def read(self) -> BeanTable:
        await self.ended()
        return self.table

    def fail(self, text: str = "no connection") -> SourceError:
        self.error = SourceUnreachable(text)
        return self.error


class ScriptedLimits(Scripted):
    def __init__(self, value: Limits | None = None) -> None:
        super().__init__()
        self.value = value or limits()

    async def read(self) -> Limits:
        await self.ended()
        return self.value
