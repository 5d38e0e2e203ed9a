"""
The forms of the JSON API's answers; docs/reference/api.md describes it.

A number that is unknown or does not apply is null.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter

from quotascope.metrics.catalog.thresholds import DEFAULTS, SharedThresholds

from ..coverage import EntityKind, Unplaced
from ..diagnosis.catalog import Finding, FindingSeverity
from ..limits import LimitChange, LimitsHealth, NodeSettings
from ..snapshot import SourceHealth

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
    """The rule as people read it (`QuotaEntity.rule`)."""
    level: str | None
    user: str
    client_id: str
    ip: str
    value: float | None
    """Configured value in Kafka's unit; null when infinite, as for the limit."""
    limit: float | None
    """The limit in ``unit``."""
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
    """Origin of the capacity: `configured` or `observed`."""
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
    """Usage and limit of each of the entities, on all brokers together."""
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
    """Unix time in seconds from which on this exporter knows episodes."""
    gaps: list[list[float]]
    """Begin and end of times since then in which throttles may have been missed."""
    episodes: list[ListedEpisode]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesDocument(PartDocument):
    """The quotas that were set, changed or removed lately, newest first; of more than 100 the latest."""

    since: float | None
    """Unix time in seconds from which on this exporter sees changes."""
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
    """Configured limits of Strimzi's quotas plugin, by quota type; null when unlimited."""
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
    started_at: float | None = None
    """When it was started, Unix time in seconds; null where its agent does not report it."""


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
    """Settings by node id, as far as they are known."""
    releases: dict[str, ReleaseDocument] = field(default_factory=dict)
    """Releases by node id of a broker, as far as brokers showed them."""


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


def encoded(answer: object, indent: int | None = None) -> bytes:
    """
    Return JSON in ASCII.

    Other characters are escaped, so that names can hold anything, halves of surrogate pairs included.
    """
    plain = _ANY.dump_python(answer, mode="json")
    return json.dumps(plain, allow_nan=False, indent=indent).encode("ascii") + b"\n"
