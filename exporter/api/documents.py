"""
What the JSON API answers; docs/api.md describes it.

A number that is unknown or does not apply is null. Lists with names from outside are bounded in characters, so that an
answer stays small whatever names clients choose.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.quotas import IpEntity

from ..diagnosis import Finding, FindingSeverity, diagnose, worst
from ..diagnosis.rule_usage import RuleUsage, rule_usage
from ..diagnosis.selection import Selection, in_order
from ..diagnosis.trails import STEP_SECONDS
from ..exposition import own_version
from ..exposition.rows import rule_labels
from ..limits import LimitsHealth, NodeSettings
from ..limits.model import DEFAULT_IP
from ..mapping import in_base_unit
from ..page.query import EntityQuery, QueryResult, address_of
from ..snapshot import EntityUsage, Snapshot, SourceHealth

MOST_CHARACTERS: Final = 32 << 20
"""Of one list in an answer: about 80,000 entities with ordinary names."""
_ROW_CHARACTERS: Final = 400
"""Of an entity or a rule without its names."""
UNITS: Final = {
    QuotaType.PRODUCE: "bytes_per_second",
    QuotaType.FETCH: "bytes_per_second",
    QuotaType.REQUEST: "threads",
    QuotaType.CONTROLLER_MUTATION: "mutations_per_second",
}
"""The unit of usage and limit."""
_ANY: Final = TypeAdapter(Any)


@dataclass(slots=True, kw_only=True)
class EntityDocument:
    """One quota entity on one node. Not frozen, because many of them are made; never changed once made."""

    broker: str
    quota_type: str
    user: str
    client_id: str
    unit: str
    usage: float | None
    limit: float | None
    limit_state: str
    utilization: float | None
    tokens: float | None
    burst_tokens: float | None
    burst_used: float | None
    throttle_time_seconds: float | None
    cause: str | None
    rule: dict[str, str] | None
    """``name``, ``level``, ``user`` and ``client_id`` of the rule that applies; the name is as people read it (`QuotaEntity.rule`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDocument:
    """One configured quota: of a user, a client-id or both, or of an address."""

    key: str
    rule: str
    """As people read it (`QuotaEntity.rule`)."""
    level: str | None
    user: str
    client_id: str
    ip: str
    value: float
    """In Kafka's unit."""
    limit: float
    """In ``unit``."""
    unit: str
    entities: int | None
    """How many entities or addresses are measured under it."""
    utilization: float | None
    """The highest among these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDocument:
    """What a node reports of itself."""

    broker: str
    quota_callback: bool | None
    delay_queue_size: dict[str, float | None]
    """By quota type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthDocument:
    """The state of sources, nodes and limits, and what is wrong."""

    version: str
    taken_at: float
    severity: FindingSeverity
    findings: list[Finding]
    sources: list[SourceHealth]
    nodes: list[NodeDocument]
    limits_known: bool
    limits: LimitsHealth
    settings: dict[str, NodeSettings]
    """By node id, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDocument:
    """All that the command line shows."""

    health: HealthDocument
    entities_total: int
    entities: list[EntityDocument]
    """Those with the highest utilization, where not all fit."""
    rules_total: int
    rules: list[RuleDocument]
    connections: dict[str, dict[str, float | None]]
    """New connections/s by node and address, where that has a limit."""


def health_document(
    snapshot: Snapshot, findings: Sequence[Finding] | None = None
) -> HealthDocument:
    """The answer of ``/api/v1/health``; ``findings`` where they are known already."""
    found = list(diagnose(snapshot) if findings is None else findings)
    return HealthDocument(
        version=own_version(),
        taken_at=snapshot.taken_at,
        severity=worst(found),
        findings=found,
        sources=list(snapshot.sources),
        nodes=[
            NodeDocument(
                broker=node.broker,
                quota_callback=node.quota_callback,
                delay_queue_size={
                    kind.label: _number(size)
                    for kind, size in node.delay_queue_size.items()
                },
            )
            for node in snapshot.nodes
        ],
        limits_known=snapshot.limits is not None,
        limits=snapshot.limits_health,
        settings=dict(snapshot.limits.nodes) if snapshot.limits else {},
    )


def snapshot_document(snapshot: Snapshot) -> SnapshotDocument:
    """The answer of ``/api/v1/snapshot``."""
    measured, rules = snapshot.measured, _rules(snapshot)
    most = MOST_CHARACTERS // _ROW_CHARACTERS
    entities = list(_bounded(map(entity_document, measured)))
    if len(entities) < len(measured):
        measured = in_order(measured, Selection(), most)
        entities = list(_bounded(map(entity_document, measured)))
    return SnapshotDocument(
        health=health_document(snapshot),
        entities_total=len(snapshot.measured),
        entities=entities,
        rules_total=len(rules),
        rules=list(_bounded(map(_rule_document, rules))),
        connections={
            node.broker: {ip: _number(of.rate) for ip, of in ips}
            for node in snapshot.nodes
            if (ips := list(node.connections.ips.items())[:most])
        },
    )


def entities_answer(result: QueryResult) -> dict[str, Any]:
    """The answer of ``/api/v1/entities``, with owners and the utilization of the last minutes."""
    entities = list(_bounded(map(entity_document, result.rows)))
    rows = [
        {
            **_ANY.dump_python(entity),
            "owner": result.owners.of(usage.entity),
            "recent": list(map(_number, result.trails.of(usage))),
        }
        for entity, usage in zip(entities, result.rows, strict=False)
    ]
    return {
        **_part(result.snapshot, result.query, len(rows), result.total),
        "limits_unknown": result.limits_unknown,
        "recent_step_seconds": STEP_SECONDS,
        "entities": rows,
    }


def rules_answer(snapshot: Snapshot, query: EntityQuery) -> dict[str, Any]:
    """The answer of ``/api/v1/rules``, by quota type."""
    rules = _rules(snapshot)
    wanted = rules[query.offset : query.offset + query.size]
    rows = list(_bounded(map(_rule_document, wanted)))
    return {
        **_part(snapshot, query, len(rows), len(rules)),
        "limits_known": snapshot.limits is not None,
        "rules": rows,
    }


def entity_document(usage: EntityUsage) -> EntityDocument:
    """What one entity used, its limit, and the rule that applies."""
    entity, rule = usage.entity, None
    if entity.resolution is not None and entity.resolution.entity is not None:
        labels = rule_labels(entity.resolution.entity)
        rule = dict(zip(("name", "level", "user", "client_id"), labels, strict=True))
    known = usage.throttle_known
    return EntityDocument(
        broker=entity.broker,
        quota_type=entity.quota_type.label,
        user=entity.user,
        client_id=entity.client_id,
        unit=UNITS[entity.quota_type],
        usage=_number(usage.usage),
        limit=_number(entity.limit),
        limit_state=entity.limit_state.value,
        utilization=_number(usage.utilization),
        tokens=_number(usage.tokens),
        burst_tokens=_number(entity.burst_tokens),
        burst_used=_number(usage.burst_used),
        throttle_time_seconds=_number(usage.throttle_time_seconds) if known else None,
        cause=None if usage.cause is None else usage.cause.value,
        rule=rule,
    )


def encoded(answer: object, indent: int | None = None) -> bytes:
    """JSON in ASCII: other characters are escaped, so that names can hold anything, halves of surrogate pairs included."""
    plain = _ANY.dump_python(answer, mode="json")
    return json.dumps(plain, allow_nan=False, indent=indent).encode("ascii") + b"\n"


def _rules(snapshot: Snapshot) -> list[RuleUsage]:
    return rule_usage(snapshot.limits, snapshot) if snapshot.limits else []


def _rule_document(rule: RuleUsage) -> RuleDocument:
    entity, kind = rule.entity, QuotaType.of_quota_key(rule.key)
    level, user, client_id, ip = None, "", "", ""
    if isinstance(entity, QuotaEntity):
        _, level, user, client_id = rule_labels(entity)
    elif isinstance(entity, IpEntity):
        ip = entity.ip if isinstance(entity.ip, str) else DEFAULT_IP
    return RuleDocument(
        key=rule.key,
        rule=entity.rule,
        level=level,
        user=user,
        client_id=client_id,
        ip=ip,
        value=rule.value,
        limit=rule.value if kind is None else in_base_unit(kind, rule.value),
        unit="connections_per_second" if kind is None else UNITS[kind],
        entities=None if rule.hits is None else len(rule.hits),
        utilization=_number(rule.fullest),
    )


def _part(
    snapshot: Snapshot, query: EntityQuery, shown: int, total: int
) -> dict[str, Any]:
    """Which part of a list an answer has, and the query of the next part."""
    end = query.offset + shown
    following = (
        address_of(replace(query, offset=end)) if shown and end < total else None
    )
    return {
        "taken_at": snapshot.taken_at,
        "total": total,
        "offset": query.offset,
        "size": query.size,
        "next": following,
    }


_Row = TypeVar("_Row", EntityDocument, RuleDocument)


def _bounded(rows: Iterable[_Row]) -> Iterator[_Row]:
    """The first rows that fit into ``MOST_CHARACTERS``; one at least."""
    left = MOST_CHARACTERS
    for row in rows:
        yield row
        left -= _ROW_CHARACTERS + len(row.user) + len(row.client_id)
        if left <= 0:
            return


def _number(value: float | None) -> float | None:
    """JSON has neither infinity nor NaN."""
    return value if value is not None and math.isfinite(value) else None
