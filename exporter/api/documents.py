"""
The answers of the JSON API; docs/reference/api.md describes it.

A number that is unknown or does not apply is null. Lists with names from outside are bounded in characters, so that an
answer stays small whatever names clients choose.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter

from quotascope.metrics.catalog.thresholds import DEFAULTS, SharedThresholds
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType, Resolution
from quotascope.quotas import IpEntity

from ..coverage import Coverage, EntityKind, Unplaced
from ..diagnosis import Finding, FindingSeverity, diagnose, worst
from ..diagnosis.cluster_usage import ClusterUsage, cluster_usages
from ..diagnosis.episodes import Episode, Episodes, entity_matches
from ..diagnosis.explain import as_json
from ..diagnosis.misnamed import Misnamed
from ..diagnosis.releases import is_tested
from ..diagnosis.rule_usage import RuleUsage, rule_usage
from ..diagnosis.selection import Selection, in_order
from ..diagnosis.trails import STEP_SECONDS, Trail
from ..exposition import own_version
from ..exposition.rows import rule_labels
from ..limits import LimitChange, LimitsHealth, NodeSettings
from ..limits.model import DEFAULT_IP
from ..names import asked_as
from ..page.query import EntityQuery, EpisodeQuery, PartQuery, QueryResult
from ..snapshot import EntityUsage, Floats, Shadow, ShadowUsage, Snapshot, SourceHealth, Usages, place_of
from ..snapshot.entity import finite

if TYPE_CHECKING:  # the command line reads documents without what makes pages
    from ..page.entity import EntityResult
    from ..page.rules import RulesResult
    from ..page.team_list import TeamsResult

MOST_CHARACTERS: Final = 32 << 20
"""Of one list in an answer: about 80,000 entities with ordinary names."""
_ROW_CHARACTERS: Final = 400
"""Of an entity or a rule without its names."""
_ANY: Final = TypeAdapter(Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderDocument:
    """The entity of controller mutations that a request throttle is of."""

    broker: str | None
    """Null where it is not measured."""
    user: str
    client_id: str
    limit: float | None
    burst_tokens: float | None
    rule: dict[str, str] | None


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
    """
    ``name``, ``level``, ``user`` and ``client_id`` of the rule that applies; the name is as people read it
    (`QuotaEntity.rule`).
    """
    decided_by: DeciderDocument | None = None
    """Null for any throttle that is not known to be of another entity's quota, and in exporters of earlier releases."""


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

    team: str | None
    """The name of its team, `__unowned__` if it has none, `__undecided__` if that is unknown; null without teams."""
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
class MeantDocument:
    """An entity that a misnamed rule may be meant for."""

    rule: str
    """The rule for it, as people read it; there may be none."""
    measured_under: str | None
    """
    The rule that applies now to a client that is measured under its names; null where none does, or it is unknown.
    """
    has_rule: bool
    """Whether it has quotas with the same keys already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MisnamedDocument:
    """Why the name of a rule may be another than was meant."""

    text: str
    meant: list[MeantDocument]
    commands: list[str]
    """
    Commands for bash that set its quotas for the entities that are meant, and remove it; without an address of Kafka.
    """


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
    hidden_on: list[str] = field(default_factory=list)
    """Nodes on which clients may be measured under it that their agents do not show."""
    misnamed: MisnamedDocument | None = None
    """Null for a rule that applies to a client, and for one whose name gives no reason to doubt it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDocument:
    """The part of a list that an answer has, and the query of the next part."""

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
class TeamTypeDocument:
    """The sums of a team over all nodes, of one quota type."""

    quota_type: str
    usage: float | None
    """Null where nothing of it is measured."""
    complete: bool
    """
    False if the usage of an entity or the team of one is unknown, or not all brokers are read: usage and budget_ratio
    are the least that they can be.
    """
    allowed: float | None
    """The limit of each entity times the number of brokers; null when one is unlimited, or no limit is known."""
    allowed_complete: bool
    """False if a limit or the team of an entity is unknown, or not all brokers are read: `allowed` is the least."""
    stranded: float | None
    """
    The limits that hold on brokers without their entities, which no traffic of the last hour could use; null without
    entities under a limit, where it is unknown, and for controller mutations.
    """
    stranded_complete: bool
    """False if that is unknown of some brokers or limits: it is the least that it can be."""
    fairness: float | None
    """
    Jain's index of the usage over all brokers: 1 if all have the same, 1 / brokers if one has all; null for fewer than
    two brokers, without usage, and where some of it is unknown.
    """
    unlimited_entities: int
    budget: float | None
    budget_ratio: float | None
    throttled_entities: int | None
    """Null where that is unknown of all."""
    throttled_complete: bool
    """False where that is unknown of some: the number is the least that it can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDocument:
    """A team; `__unowned__` stands for entities without one, `__undecided__` for those of which it is unknown."""

    team: str
    contact: str | None
    entities: int
    """The number of its users and client-ids."""
    quotas: list[TeamTypeDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoldDocument:
    """The limits of the entities on a broker, against what it can do."""

    broker: str
    quota_type: str
    limits: float
    capacity: float
    origin: str
    """Of the capacity: `configured` or `observed`."""
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsDocument(PartDocument):
    """The teams over the whole cluster, the fullest budgets first, and what is promised of each broker."""

    configured: bool
    """False without a file of teams."""
    complete: bool
    """False if not all brokers are read, so that all sums are the least that they can be."""
    teams: list[TeamDocument]
    sold: list[SoldDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDocument:
    """The usage of an entity on all nodes together."""

    quota_type: str
    user: str
    client_id: str
    usage: float | None
    """Null where no node gave one."""
    complete: bool
    """False if the usage on some node is unknown: the sum is the least that it can be."""
    limit: float | None
    """The sum of its limits on all brokers; null when it is unlimited or unknown."""
    limit_at_least: float | None
    """The sum of those that are known, where the limit on some broker is unknown."""
    limit_state: str
    largest_broker: str | None
    """The broker with most of the usage, null where there is none."""
    largest_share: float | None
    stranded: float | None
    """
    The sum of its limits on brokers that have measured nothing of it for an hour; null when it is unlimited or unknown,
    and for controller mutations.
    """
    stranded_complete: bool
    """False if a broker may have measured it without showing it: it is the least that it can be."""
    stranded_brokers: list[str]
    fairness: float | None
    """Jain's index of the usage over all brokers; null for fewer than two, without usage, or where it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainDocument(PartDocument):
    """The quotas that apply to a user and client-id, and the entities that are measured of it."""

    limits_known: bool
    user: str | None
    """Null for any user that no quota names."""
    client_id: str | None
    """Null for any client-id that no quota names, empty for clients that send none."""
    callbacks: dict[str, str]
    """Nodes with a custom quota callback, which decides there instead, with its class."""
    quotas: list[dict[str, Any]]
    """For each quota type the rule that decides, the one that would without it, and all eight levels."""
    cluster: list[ClusterDocument]
    """For each of the entities its usage and limit on all brokers together."""
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
class ChangesDocument(PartDocument):
    """The quotas that were set, changed or removed lately, newest first; of more than 100 the latest."""

    since: float | None
    """From when on this exporter sees changes, Unix time in seconds."""
    changes: list[LimitChange]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunbookDocument:
    """The advice about an alert."""

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
class CoverageDocument:
    """The quotas that the agent of a node can show, judged by its last answer."""

    kinds: dict[str, list[EntityKind]]
    """The kinds of entities in it, by quota type."""
    tagged: bool
    """Whether there are entities under other names than user and client-id."""
    usages: list[str]
    """Quota types with a usage of an entity."""
    throttle_times: list[str]
    """Quota types with a throttle time of an entity."""
    tokens: bool
    delay_queues: list[str]
    """Quota types with a delay queue."""
    connections: bool
    """Whether there are rates of new connections."""
    complete: bool
    """Whether all entities of a quota type with a delay queue are in it."""
    alike: bool
    """Whether entities of all kinds are in it of a quota type with entities of one."""
    unplaced: Unplaced | None
    """The series that are named like quota metrics and are not understood."""
    labels_of_page: list[str] = field(default_factory=list)
    """Labels that Kafka's own quotas do not have and that have one value on the series of all clients: left out."""
    in_seconds: str = ""
    """A metric of throttle times that is read in seconds because its name says so; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDocument:
    """The report of a node about itself."""

    broker: str
    quota_callback: bool | None
    callback_limits: dict[str, float | None]
    """By quota type, of Strimzi's quotas plugin, as configured; null when unlimited."""
    delay_queue_size: dict[str, float | None]
    """By quota type."""
    request_handler_idle: float | None = None
    """Share of the last minute or so, of the busiest pool of request handlers."""
    overruled: bool = False
    """Whether the configured quotas do not decide on it, or may not."""
    foreign_labels: list[str] = field(default_factory=list)
    """Labels that Kafka's own quotas do not have, where it is unknown whether the node has a custom quota callback."""
    coverage: CoverageDocument | None = None
    """What its agent can show; null in exporters of earlier releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDocument:
    """The releases of Kafka that a broker may be of; both are the same where it is known."""

    oldest: str | None
    """Null for one before all that are known."""
    newest: str | None
    """Null for one that may be newer than all that are known."""
    zookeeper: bool
    """Whether ZooKeeper keeps the metadata."""
    tested: bool
    """Whether quotascope is tested with each of them."""


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
    releases: dict[str, ReleaseDocument] = field(default_factory=dict)
    """By node id of a broker, as far as brokers showed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCount:
    """The number of entities of a quota type that a shadow has on a broker."""

    quota_type: str
    broker: str
    evaluated: int
    changes: dict[str, int]
    """
    Those that it or a quota in force throttles, by change: ``new``, ``longer``, ``shorter``, ``ended`` or
    ``unchanged``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowUnknown:
    """Entities of which it is unknown whether a shadow would throttle them."""

    quota_type: str
    broker: str
    reason: str
    entities: int


@dataclass(slots=True, kw_only=True)
class ShadowEntity(EntityDocument):
    """An entity as the rules of a shadow make it; the throttle time is Kafka's answer at this moment."""

    change: str | None
    """Against the quotas in force; null where neither throttles it."""
    change_seconds: float | None
    """Its throttle time minus that of the quotas in force; null where either is unknown."""
    held_back: bool
    """
    Whether a limit in force throttles a part of it, so that ``usage`` and ``utilization`` are lower bounds of what it
    would use.
    """
    kept: bool
    """Whether the shadow changes neither its limit nor how it is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowDocument:
    """The actions that brokers would take under rules that none of them enforces."""

    name: str
    counts: list[ShadowCount]
    unevaluated: list[ShadowUnknown]
    entities: list[ShadowEntity]
    """Those that it would throttle newly or longer first, then those nearest to their limits."""


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
    thresholds: SharedThresholds = DEFAULTS
    """Those of the alerts: what is near a limit, and what is a finding."""


def health_document(snapshot: Snapshot, findings: Sequence[Finding] | None = None) -> HealthDocument:
    """Return the answer of ``/api/v1/health``; ``findings`` where they are known already."""
    all_findings = list(diagnose(snapshot) if findings is None else findings)
    return HealthDocument(
        version=own_version(),
        taken_at=snapshot.taken_at,
        severity=worst(all_findings),
        findings=all_findings,
        sources=list(snapshot.sources),
        nodes=[
            NodeDocument(
                broker=node.broker,
                quota_callback=node.quota_callback,
                callback_limits={kind.label: finite(bound) for kind, bound in node.static_limits.items()},
                delay_queue_size={kind.label: finite(size) for kind, size in node.delay_queue_size.items()},
                request_handler_idle=finite(node.handlers_idle),
                overruled=node.overruled,
                foreign_labels=list(node.foreign_labels),
                coverage=None if node.coverage is None else coverage_document(node.coverage),
            )
            for node in snapshot.nodes
        ],
        limits_known=snapshot.limits is not None,
        limits=replace(snapshot.limits_health, changes=()),
        settings=dict(snapshot.limits.nodes) if snapshot.limits else {},
        releases={
            node: ReleaseDocument(
                oldest=None if release.oldest is None else release.oldest.version,
                newest=None if release.newest is None else release.newest.version,
                zookeeper=release.zookeeper,
                tested=is_tested(release),
            )
            for node, release in (snapshot.limits.releases if snapshot.limits else {}).items()
        },
    )


def coverage_document(coverage: Coverage) -> CoverageDocument:
    """Return what an agent can show, lists in the order of quota types and of kinds."""

    def labels(quota_types: Container[QuotaType]) -> list[str]:
        return [quota_type.label for quota_type in QuotaType if quota_type in quota_types]

    return CoverageDocument(
        kinds={
            quota_type.label: [kind for kind in EntityKind if kind in coverage.kinds[quota_type]]
            for quota_type in QuotaType
            if quota_type in coverage.kinds
        },
        tagged=coverage.tagged,
        usages=labels(coverage.usages),
        throttle_times=labels(coverage.throttle_times),
        tokens=coverage.tokens,
        delay_queues=labels(coverage.queues),
        connections=coverage.connections,
        complete=coverage.complete,
        alike=coverage.alike,
        unplaced=coverage.unplaced,
        labels_of_page=list(coverage.labels_of_page),
        in_seconds=coverage.in_seconds,
    )


def snapshot_document(snapshot: Snapshot) -> SnapshotDocument:
    """Return the answer of ``/api/v1/snapshot``."""
    measured = snapshot.measured
    rules = rule_usage(snapshot.limits, snapshot) if snapshot.limits else []
    max_rows = MOST_CHARACTERS // _ROW_CHARACTERS
    entities = list(_bounded(map(entity_document, measured)))
    if len(entities) < len(measured):
        measured = in_order(measured, Selection(near_limit=snapshot.thresholds.near_limit), max_rows)
        entities = list(_bounded(map(entity_document, measured)))
    return SnapshotDocument(
        health=health_document(snapshot),
        entities_total=len(snapshot.measured),
        entities=entities,
        rules_total=len(rules),
        rules=list(_bounded(map(_rule_document, rules))),
        connections={
            node.broker: {ip: finite(rate) for ip, rate in ips}
            for node in snapshot.nodes
            if (ips := list(node.connections_by_ip.items())[:max_rows])
        },
        shadows=list(map(shadow_document, snapshot.shadows)),
        thresholds=snapshot.thresholds,
    )


def shadow_document(shadow: Shadow) -> ShadowDocument:
    """Return the effects of a shadow."""
    return ShadowDocument(
        name=shadow.name,
        counts=[
            ShadowCount(
                quota_type=kind.label,
                broker=broker,
                evaluated=shadow.evaluated[kind, broker],
                changes={change.value: count for change, count in changes.items()},
            )
            for (kind, broker), changes in shadow.changes.items()
        ],
        unevaluated=[
            ShadowUnknown(quota_type=kind.label, broker=broker, reason=str(reason), entities=count)
            for (kind, broker, reason), count in shadow.unevaluated.items()
        ],
        entities=list(_bounded(map(_shadow_entity, shadow.entities)))
    )  # fmt: skip


def _shadow_entity(usage: ShadowUsage) -> ShadowEntity:
    return ShadowEntity(
        **_fields(entity_document(usage)),
        change=None if usage.change is None else usage.change.value,
        change_seconds=finite(usage.change_seconds),
        held_back=usage.held_back,
        kept=usage.unchanged,
    )


def entities_document(result: QueryResult) -> EntitiesDocument:
    """Return the answer of ``/api/v1/entities``, with teams and the utilization of the last minutes."""
    entities = list(_bounded(map(entity_document, result.rows)))
    return EntitiesDocument(
        **_part(result.snapshot, result.query, len(entities), result.total),
        limits_unknown=result.limits_unknown,
        recent_step_seconds=STEP_SECONDS,
        entities=[
            ListedEntity(
                **_fields(entity),
                team=result.teams.of(usage.entity),
                recent=list(map(finite, result.trails.of(usage))),
            )
            for entity, usage in zip(entities, result.rows, strict=False)
        ],
    )


def rules_document(result: RulesResult) -> RulesDocument:
    """Return the answer of ``/api/v1/rules``."""
    rules = list(_bounded(map(_rule_document, result.rules)))
    return RulesDocument(
        **_part(result.snapshot, result.query, len(rules), result.total),
        limits_known=result.snapshot.limits is not None,
        rules=rules,
    )


def teams_document(result: TeamsResult) -> TeamsDocument:
    """Return the answer of ``/api/v1/teams``."""
    snapshot = result.snapshot
    return TeamsDocument(
        **_part(snapshot, result.query, len(result.teams), result.total),
        configured=snapshot.teams is not None,
        complete=not snapshot.incomplete,
        teams=[
            TeamDocument(
                team=team.name,
                contact=None if team.team is None else team.team.contact,
                entities=team.entities,
                quotas=[
                    TeamTypeDocument(
                        quota_type=row.quota_type.label,
                        usage=row.usage,
                        complete=row.complete,
                        allowed=row.allowed,
                        allowed_complete=row.allowed_complete,
                        stranded=row.stranded,
                        stranded_complete=row.stranded_complete,
                        fairness=row.fairness,
                        unlimited_entities=row.unlimited,
                        budget=row.budget,
                        budget_ratio=row.budget_ratio,
                        throttled_entities=row.throttled,
                        throttled_complete=row.throttled_complete,
                    )
                    for row in team.rows
                ],
            )
            for team in result.teams
        ],
        sold=[
            SoldDocument(
                broker=broker,
                quota_type=kind.label,
                limits=sold.limits,
                capacity=sold.capacity,
                origin=sold.origin.value,
                ratio=sold.ratio,
            )
            for (kind, broker), sold in snapshot.sold.items()
            if isfinite(sold.ratio)
        ],
    )


def explain_document(result: EntityResult, query: EntityQuery) -> ExplainDocument:
    """
    Return the answer of ``/api/v1/explain``.

    What the command prints as JSON, and the entities that are measured; ``query`` has their part.
    """
    part_of_rows = result.rows[query.offset : query.offset + query.size]
    entities = list(_bounded(map(entity_document, part_of_rows)))
    shown_rows = Usages(result.rows.columns, result.rows.rows[query.offset : query.offset + len(entities)])
    words: dict[str, Any] = as_json(result.user, result.client_id, result.explanations or (), result.callbacks)
    names = [(key, text) for key, text in (("user", result.user), ("client_id", result.client_id)) if text is not None]
    part = _part(result.snapshot, query, len(entities), len(result.rows))
    if part["next"]:
        part["next"] = f"?{urlencode(names, errors='replace')}&{part['next'][1:]}"
    return ExplainDocument(
        **part,
        **words,
        limits_known=result.explanations is not None,
        cluster=[_cluster_document(usage) for usage in cluster_usages(result.snapshot, shown_rows)],
        entities=[
            _explained(
                entity,
                result.trails.trail(usage.entity),
                [episode for episode in result.episodes if place_of(episode.usage.entity) == place_of(usage.entity)],
            )
            for entity, usage in zip(entities, part_of_rows, strict=False)
        ],
    )


def _cluster_document(usage: ClusterUsage) -> ClusterDocument:
    return ClusterDocument(
        quota_type=usage.quota_type.label,
        user=usage.user,
        client_id=usage.client_id,
        usage=finite(usage.usage),
        complete=usage.complete,
        limit=finite(usage.limit),
        limit_at_least=finite(usage.limit_at_least),
        limit_state=usage.limit_state.value,
        largest_broker=usage.largest_broker,
        largest_share=finite(usage.largest_share),
        stranded=finite(usage.stranded),
        stranded_complete=usage.stranded_complete,
        stranded_brokers=list(usage.stranded_brokers),
        fairness=usage.fairness,
    )


def _explained(entity: EntityDocument, trail: Trail | None, episodes: Sequence[Episode]) -> ExplainedEntity:
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
                began_at=episode.began_at,
                ended_at=None if episode.ongoing else episode.seen_at,
                longest_seconds=episode.longest_seconds,
            )
            for episode in episodes
        ],
    )


def episodes_document(snapshot: Snapshot, episodes: Episodes, query: EpisodeQuery) -> EpisodesDocument:
    """Return the answer of ``/api/v1/episodes``."""
    user, client_id = (None if name is None else asked_as(name) for name in (query.user, query.client_id))
    matching = [
        episode
        for episode in episodes
        if entity_matches(episode.usage.entity, user, client_id)
        and query.type in {None, episode.usage.entity.quota_type}
        and episode.seen_at >= query.since
    ]
    part_of_episodes = matching[query.offset : query.offset + query.size]
    entities = list(_bounded(entity_document(episode.usage) for episode in part_of_episodes))
    return EpisodesDocument(
        **_part(snapshot, query, len(entities), len(matching)),
        since=snapshot.taken_at if episodes.since is None else episodes.since,
        gaps=[[begin, end] for begin, end in episodes.gaps],
        episodes=[
            ListedEpisode(
                **_fields(entity), began_at=episode.began_at, seen_at=episode.seen_at, ongoing=episode.ongoing
            )
            for entity, episode in zip(entities, part_of_episodes, strict=False)
        ],
    )


def changes_document(snapshot: Snapshot, query: PartQuery) -> ChangesDocument:
    """Return the answer of ``/api/v1/changes``."""
    health = snapshot.limits_health
    part_of_changes = health.changes[query.offset : query.offset + query.size]
    return ChangesDocument(
        **_part(snapshot, query, len(part_of_changes), len(health.changes)),
        since=health.changes_since,
        changes=[replace(change, old=finite(change.old), new=finite(change.new)) for change in part_of_changes],
    )


def runbooks_document(runbooks: Mapping[str, str], query: EntityQuery) -> RunbooksDocument:
    """Return the answer of ``/api/v1/runbooks``."""
    part_of_runbooks = list(islice(runbooks.items(), query.offset, query.offset + query.size))
    return RunbooksDocument(
        total=len(runbooks),
        offset=query.offset,
        size=query.size,
        next=query.following(len(runbooks)),
        runbooks=[
            RunbookDocument(alert=alert, path=f"runbooks/{alert}", text=text) for alert, text in part_of_runbooks
        ],
    )


def entity_document(usage: EntityUsage) -> EntityDocument:
    """Return the usage of one entity, its limit, and the rule that applies."""
    entity, decider, decided_by = usage.entity, usage.decided_by, None
    if decider is not None:
        decided_by = DeciderDocument(
            broker=decider.broker or None,
            user=decider.user,
            client_id=decider.client_id,
            limit=finite(decider.limit),
            burst_tokens=finite(decider.burst_tokens),
            rule=_rule(decider.resolution),
        )
    return EntityDocument(
        broker=entity.broker,
        quota_type=entity.quota_type.label,
        user=entity.user,
        client_id=entity.client_id,
        unit=entity.quota_type.unit.name,
        usage=finite(usage.usage),
        limit=finite(entity.limit),
        limit_state=entity.limit_state.value,
        utilization=finite(usage.utilization),
        tokens=finite(usage.tokens),
        burst_tokens=finite(entity.burst_tokens),
        burst_used=finite(usage.burst_used),
        throttle_time_seconds=finite(usage.throttle_time_seconds),
        cause=None if usage.cause is None else usage.cause.value,
        decided_by=decided_by,
        rule=_rule(entity.resolution),
    )


def _rule(resolution: Resolution | None) -> dict[str, str] | None:
    if resolution is None or resolution.entity is None:
        return None
    return dict(zip(("name", "level", "user", "client_id"), rule_labels(resolution.entity), strict=True))


def encoded(answer: object, indent: int | None = None) -> bytes:
    """
    Return JSON in ASCII.

    Other characters are escaped, so that names can hold anything, halves of surrogate pairs included.
    """
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
        limit=finite(rule.value if kind is None else kind.in_base_unit(rule.value)),
        unit="connections_per_second" if kind is None else kind.unit.name,
        entities=None if rule.hits is None else len(rule.hits),
        utilization=finite(rule.fullest),
        throttled=rule.throttled,
        hidden_on=list(rule.hidden_on),
        misnamed=None if rule.misnamed is None else _misnamed_document(rule.misnamed),
    )


def _misnamed_document(rule: Misnamed) -> MisnamedDocument:
    return MisnamedDocument(
        text=rule.text,
        meant=[
            MeantDocument(
                rule=candidate.entity.rule,
                measured_under=None if candidate.under is None else candidate.under.rule,
                has_rule=candidate.has_rule,
            )
            for candidate in rule.meant
        ],
        commands=list(rule.commands),
    )


def _part(snapshot: Snapshot, query: PartQuery, count: int, total: int) -> dict[str, Any]:
    """Return the fields of ``PartDocument``."""
    return {
        "taken_at": snapshot.taken_at,
        "total": total,
        "offset": query.offset,
        "size": query.size,
        "next": query.following(total, count),
    }


def _fields(entity: EntityDocument) -> dict[str, Any]:
    return {field.name: getattr(entity, field.name) for field in fields(entity)}


def _series(values: Floats) -> list[float | None]:
    """Return numbers of 32 bits with no more digits than they hold."""
    return [float(f"{value:.7g}") if isfinite(value) else None for value in values.tolist()]


_Row = TypeVar("_Row", EntityDocument, ShadowEntity, RuleDocument)


def _bounded(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yield the first rows that fit into ``MOST_CHARACTERS``; one at least."""
    room = MOST_CHARACTERS
    for row in rows:
        yield row
        room -= _ROW_CHARACTERS + len(row.user) + len(row.client_id)
        if room <= 0:
            return
