"""
What the JSON API answers; docs/api.md describes it.

A number that is unknown or does not apply is null. Lists with names from outside are bounded in characters, so that an
answer stays small whatever names clients choose.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from math import isfinite
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.quotas import IpEntity

from ..diagnosis import Finding, FindingSeverity, diagnose, worst
from ..diagnosis.episodes import Episode, Episodes, entity_matches
from ..diagnosis.explain import as_json
from ..diagnosis.rule_usage import RuleUsage, rule_usage
from ..diagnosis.selection import Selection, in_order
from ..diagnosis.trails import STEP_SECONDS, Trail
from ..exposition import own_version
from ..exposition.rows import rule_labels
from ..limits import LimitsHealth, NodeSettings
from ..limits.model import DEFAULT_IP
from ..mapping import in_base_unit
from ..page.entity import EntityResult
from ..page.query import EntityQuery, EpisodeQuery, PartQuery, QueryResult
from ..page.rules import RulesResult
from ..snapshot import EntityUsage, Floats, Shadow, Snapshot, SourceHealth, place_of
from ..snapshot.entity import finite

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
class EpisodeDocument:
    """A throttle episode; times are Unix times of collections, in seconds."""

    began_at: float
    ended_at: float | None
    """None while it is ongoing."""
    longest_seconds: float
    """The longest throttle time."""


@dataclass(slots=True, kw_only=True)
class ListedEntity(EntityDocument):
    """An entity in a list, with its last five minutes."""

    owner: str | None
    recent: list[float | None]
    """The highest utilization of each step, the latest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryDocument:
    """The last 15 minutes by step, the latest last; null where the entity was not seen."""

    times: list[float]
    """Unix time in seconds at which each step began."""
    utilization: list[float | None]
    """The highest."""
    usage: list[float | None]
    """The highest, in ``unit``."""
    throttle_time_seconds: list[float | None]
    """The longest."""


@dataclass(slots=True, kw_only=True)
class ExplainedEntity(EntityDocument):
    """An entity that is measured under an explanation, with its last 15 minutes."""

    history: HistoryDocument | None
    episodes: list[EpisodeDocument]


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
    value: float | None
    """In Kafka's unit; null when infinite, as the limit."""
    limit: float | None
    """In ``unit``."""
    unit: str
    entities: int | None
    """How many entities or addresses are measured under it."""
    utilization: float | None
    """The highest among these."""
    throttled: int | None
    """How many of these were throttled lately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDocument:
    """Which part of a list an answer has, and the query of the next part."""

    taken_at: float
    """Unix time in seconds of the collection."""
    total: int
    offset: int
    size: int
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitiesDocument(PartDocument):
    """The entities that a query finds."""

    limits_unknown: int
    """How many of all entities may have a limit that is unknown."""
    recent_step_seconds: float
    entities: list[ListedEntity]


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesDocument(PartDocument):
    """The configured quotas, the most urgent first."""

    limits_known: bool
    rules: list[RuleDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainDocument(PartDocument):
    """Which quotas apply to a user and client-id, and what is measured of it."""

    limits_known: bool
    user: str | None
    """Null for any user that no quota names."""
    client_id: str | None
    """Null for any client-id that no quota names, empty for clients that send none."""
    callbacks: dict[str, str]
    """Nodes with a custom quota callback, which decides there instead, with its class."""
    quotas: list[dict[str, Any]]
    """For each quota type the rule that decides, the one that would without it, and all eight levels."""
    entities: list[ExplainedEntity]


@dataclass(slots=True, kw_only=True)
class ListedEpisode(EntityDocument):
    """A throttle episode of an entity, which is shown as it was when its throttle time was longest."""

    began_at: float
    """The first collection that showed a throttle, Unix time in seconds."""
    seen_at: float
    """The last one that did."""
    ongoing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodesDocument(PartDocument):
    """The throttle episodes that a query finds: those that go on first, then the latest."""

    since: float
    """From when on this exporter knows episodes, Unix time in seconds."""
    gaps: list[list[float]]
    """Begin and end of times since then in which throttles may have been missed."""
    episodes: list[ListedEpisode]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunbookDocument:
    """What to do about an alert."""

    alert: str
    path: str
    """Of the page, relative to the exporter's address."""
    text: str
    """Markdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunbooksDocument:
    """The runbooks of the alerts."""

    total: int
    offset: int
    size: int
    next: str | None
    runbooks: list[RunbookDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDocument:
    """Why there is no answer."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDocument:
    """What a node reports of itself."""

    broker: str
    quota_callback: bool | None
    callback_limits: dict[str, float | None]
    """By quota type, of Strimzi's quotas plugin, as configured; null when unlimited."""
    delay_queue_size: dict[str, float | None]
    """By quota type."""
    request_handler_idle: float | None = None
    """Share of the last minute or so, of the busiest pool of request handlers."""


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
class ShadowCount:
    """How many entities of a quota type a shadow has on a broker."""

    quota_type: str
    broker: str
    evaluated: int
    throttled: int
    """Of these, those that it would throttle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowUnknown:
    """Entities of which it is unknown whether a shadow would throttle them."""

    quota_type: str
    broker: str
    reason: str
    entities: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowDocument:
    """What brokers would do under rules that none of them enforces."""

    name: str
    counts: list[ShadowCount]
    unevaluated: list[ShadowUnknown]
    entities: list[EntityDocument]
    """Nearest to their limits, as its rules make them; the throttle time is Kafka's answer at this moment."""


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
    shadows: list[ShadowDocument] = field(default_factory=list)


def health_document(snapshot: Snapshot, findings: Sequence[Finding] | None = None) -> HealthDocument:
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
                callback_limits={kind.label: finite(bound) for kind, bound in node.static_limits.items()},
                delay_queue_size={kind.label: finite(size) for kind, size in node.delay_queue_size.items()},
                request_handler_idle=finite(node.load.idle),
            )
            for node in snapshot.nodes
        ],
        limits_known=snapshot.limits is not None,
        limits=snapshot.limits_health,
        settings=dict(snapshot.limits.nodes) if snapshot.limits else {},
    )


def snapshot_document(snapshot: Snapshot) -> SnapshotDocument:
    """The answer of ``/api/v1/snapshot``."""
    measured = snapshot.measured
    rules = rule_usage(snapshot.limits, snapshot) if snapshot.limits else []
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
            node.broker: {ip: finite(of.rate) for ip, of in ips}
            for node in snapshot.nodes
            if (ips := list(node.connections.ips.items())[:most])
        },
        shadows=list(map(shadow_document, snapshot.shadows)),
    )


def shadow_document(shadow: Shadow) -> ShadowDocument:
    """What a shadow would do."""
    return ShadowDocument(
        name=shadow.name,
        counts=[
            ShadowCount(quota_type=kind.label, broker=broker, evaluated=shadow.evaluated[kind, broker], throttled=throttled)
            for (kind, broker), throttled in shadow.throttled.items()
        ],
        unevaluated=[
            ShadowUnknown(quota_type=kind.label, broker=broker, reason=str(reason), entities=count)
            for (kind, broker, reason), count in shadow.unevaluated.items()
        ],
        entities=list(_bounded(map(entity_document, shadow.entities)))
    )  # fmt: skip


def entities_document(result: QueryResult) -> EntitiesDocument:
    """The answer of ``/api/v1/entities``, with owners and the utilization of the last minutes."""
    entities = list(_bounded(map(entity_document, result.rows)))
    return EntitiesDocument(
        **_part(result.snapshot, result.query, len(entities), result.total),
        limits_unknown=result.limits_unknown,
        recent_step_seconds=STEP_SECONDS,
        entities=[
            ListedEntity(
                **_fields(entity),
                owner=result.owners.of(usage.entity),
                recent=list(map(finite, result.trails.of(usage))),
            )
            for entity, usage in zip(entities, result.rows, strict=False)
        ],
    )


def rules_document(result: RulesResult) -> RulesDocument:
    """The answer of ``/api/v1/rules``."""
    rules = list(_bounded(map(_rule_document, result.rules)))
    return RulesDocument(
        **_part(result.snapshot, result.query, len(rules), result.total),
        limits_known=result.snapshot.limits is not None,
        rules=rules,
    )


def explain_document(result: EntityResult, query: EntityQuery) -> ExplainDocument:
    """The answer of ``/api/v1/explain``: what the command prints as JSON, and the entities that are measured; ``query`` has their part."""
    wanted = result.rows[query.offset : query.offset + query.size]
    entities = list(_bounded(map(entity_document, wanted)))
    words: dict[str, Any] = as_json(result.user, result.client_id, result.explanations or (), result.callbacks)
    names = [(key, text) for key, text in (("user", result.user), ("client_id", result.client_id)) if text is not None]
    part = _part(result.snapshot, query, len(entities), len(result.rows))
    if part["next"]:
        part["next"] = f"?{urlencode(names, errors='replace')}&{part['next'][1:]}"
    return ExplainDocument(
        **part,
        **words,
        limits_known=result.explanations is not None,
        entities=[
            _explained(
                entity,
                result.trails.trail(usage.entity),
                [each for each in result.episodes if place_of(each.usage.entity) == place_of(usage.entity)],
            )
            for entity, usage in zip(entities, wanted, strict=False)
        ],
    )


def _explained(entity: EntityDocument, trail: Trail | None, found: Sequence[Episode]) -> ExplainedEntity:
    history = None
    if trail is not None:
        history = HistoryDocument(
            times=trail.times.tolist(),
            utilization=_series(trail.used),
            usage=_series(trail.usage),
            throttle_time_seconds=_series(trail.throttle_time),
        )
    return ExplainedEntity(
        **_fields(entity),
        history=history,
        episodes=[
            EpisodeDocument(
                began_at=each.began_at,
                ended_at=None if each.ongoing else each.seen_at,
                longest_seconds=each.longest_seconds,
            )
            for each in found
        ],
    )


def episodes_document(snapshot: Snapshot, known: Episodes, query: EpisodeQuery) -> EpisodesDocument:
    """The answer of ``/api/v1/episodes``."""
    found = [
        each
        for each in known
        if entity_matches(each.usage.entity, query.user, query.client_id)
        and query.type in {None, each.usage.entity.quota_type}
        and each.seen_at >= query.since
    ]
    wanted = found[query.offset : query.offset + query.size]
    entities = list(_bounded(entity_document(each.usage) for each in wanted))
    return EpisodesDocument(
        **_part(snapshot, query, len(entities), len(found)),
        since=snapshot.taken_at if known.since is None else known.since,
        gaps=[[begin, end] for begin, end in known.gaps],
        episodes=[
            ListedEpisode(**_fields(entity), began_at=each.began_at, seen_at=each.seen_at, ongoing=each.ongoing)
            for entity, each in zip(entities, wanted, strict=False)
        ],
    )


def runbooks_document(runbooks: Mapping[str, str], query: EntityQuery) -> RunbooksDocument:
    """The answer of ``/api/v1/runbooks``."""
    wanted = list(islice(runbooks.items(), query.offset, query.offset + query.size))
    return RunbooksDocument(
        total=len(runbooks),
        offset=query.offset,
        size=query.size,
        next=query.following(len(runbooks)),
        runbooks=[RunbookDocument(alert=alert, path=f"runbooks/{alert}", text=text) for alert, text in wanted],
    )


def entity_document(usage: EntityUsage) -> EntityDocument:
    """What one entity used, its limit, and the rule that applies."""
    entity, rule = usage.entity, None
    if entity.resolution is not None and entity.resolution.entity is not None:
        labels = rule_labels(entity.resolution.entity)
        rule = dict(zip(("name", "level", "user", "client_id"), labels, strict=True))
    return EntityDocument(
        broker=entity.broker,
        quota_type=entity.quota_type.label,
        user=entity.user,
        client_id=entity.client_id,
        unit=UNITS[entity.quota_type],
        usage=finite(usage.usage),
        limit=finite(entity.limit),
        limit_state=entity.limit_state.value,
        utilization=finite(usage.utilization),
        tokens=finite(usage.tokens),
        burst_tokens=finite(entity.burst_tokens),
        burst_used=finite(usage.burst_used),
        throttle_time_seconds=finite(usage.throttle_time_seconds),
        cause=None if usage.cause is None else usage.cause.value,
        rule=rule,
    )


def encoded(answer: object, indent: int | None = None) -> bytes:
    """JSON in ASCII: other characters are escaped, so that names can hold anything, halves of surrogate pairs included."""
    plain = _ANY.dump_python(answer, mode="json")
    return json.dumps(plain, allow_nan=False, indent=indent).encode("ascii") + b"\n"


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
        value=finite(rule.value),
        limit=finite(rule.value if kind is None else in_base_unit(kind, rule.value)),
        unit="connections_per_second" if kind is None else UNITS[kind],
        entities=None if rule.hits is None else len(rule.hits),
        utilization=finite(rule.fullest),
        throttled=rule.throttled,
    )


def _part(snapshot: Snapshot, query: PartQuery, shown: int, total: int) -> dict[str, Any]:
    """The fields of ``PartDocument``."""
    return {
        "taken_at": snapshot.taken_at,
        "total": total,
        "offset": query.offset,
        "size": query.size,
        "next": query.following(total, shown),
    }


def _fields(entity: EntityDocument) -> dict[str, Any]:
    return {each.name: getattr(entity, each.name) for each in fields(entity)}


def _series(values: Floats) -> list[float | None]:
    """Numbers of 32 bits with no more digits than they hold."""
    return [float(f"{value:.7g}") if isfinite(value) else None for value in values.tolist()]


_Row = TypeVar("_Row", EntityDocument, RuleDocument)


def _bounded(rows: Iterable[_Row]) -> Iterator[_Row]:
    """The first rows that fit into ``MOST_CHARACTERS``; one at least."""
    left = MOST_CHARACTERS
    for row in rows:
        yield row
        left -= _ROW_CHARACTERS + len(row.user) + len(row.client_id)
        if left <= 0:
            return
