"""One moment of a cluster's quotas: what every view of the exporter reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from quotascope.metrics import QuotaType, Resolution

from .beans import BeanTable
from .limits import Limits


class Cause(StrEnum):
    """Which quota a throttle comes from, as far as the evidence goes."""

    OWN = "own"
    CONTROLLER_MUTATION = "controller_mutation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """
    A quota entity as one node sees it, and the limit it is under.

    The same object from one snapshot to the next, as long as neither the beans
    nor the limits change: whatever was derived from it may be kept under its
    identity.
    """

    broker: str
    """Node id of the broker or controller."""
    quota_type: QuotaType
    user: str
    """Decoded user name; empty when the quota does not tell users apart."""
    client_id: str
    """Client id; empty when the quota does not tell clients apart."""
    resolution: Resolution | None = None
    """The configured rule that decides, or None when the entity is unlimited."""
    limit: float | None = None
    """bytes/s, threads or mutations/s by quota type; None when unlimited."""
    burst_tokens: float | None = None
    """Controller mutations under a limit only: size of the bucket."""


@dataclass(slots=True, kw_only=True)
class EntityUsage:
    """
    What one quota entity used on one node.

    Not frozen, because a snapshot makes many of them; nobody changes one.
    """

    entity: Entity
    usage: float | None = None
    """In the unit of ``entity.limit``; None when the node gave none."""
    throttle_time_seconds: float = 0.0
    """Average throttle of the last 30 to 60 s, 0 when there was none."""
    tokens: float | None = None
    """Controller mutations only, and only under a limit; negative is debt."""
    cause: Cause | None = None
    """None when the entity was not throttled."""
    throttled_seconds_total: float | None = None
    """Embedded engines only."""
    throttled_requests_total: float | None = None
    """Embedded engines only."""
    rejected_mutations_total: float | None = None
    """Embedded engines only, controller mutations only."""
    told_utilization: float | None = None
    """Usage divided by limit as the node itself tells it, NaN when it knows no limit; None when it does not tell."""
    detailed: bool = True
    """False where utilisation, burst, rule and cause series are left out for the sake of their number."""

    @property
    def utilization(self) -> float | None:
        """Usage divided by limit, None without either; negative when an unrecorded fetch made the usage so."""
        limit = self.entity.limit
        if self.usage is None or limit is None or limit <= 0:
            return None
        return self.usage / limit

    @property
    def burst_used(self) -> float | None:
        """1 - tokens / burst: 1 is an empty bucket, above 1 is debt. None without tokens."""
        burst = self.entity.burst_tokens
        if self.tokens is None or burst is None or burst <= 0:
            return None
        return 1 - self.tokens / burst


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackUsage:
    """What was used on one node under tags that a custom quota callback chose."""

    broker: str
    quota_type: QuotaType
    tags: tuple[str, ...]
    """Values in the order of ``Callbacks.labels``; empty where the bean has no such tag."""
    usage: float | None = None
    """bytes/s, threads or mutations/s by quota type; None when the node gave none."""
    throttle_time_seconds: float = 0.0
    """Average throttle of the last 30 to 60 s, 0 when there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """The entities of custom quota callbacks on all nodes."""

    labels: tuple[str, ...] = ()
    """The labels that stand for tags, the same for every entity."""
    usages: tuple[CallbackUsage, ...] = ()
    left_out: tuple[str, ...] = ()
    """Tags that are not shown because there are too many."""
    stand_ins: int = 0
    """How many of the usages, the last ones, stand for those that are folded."""
    folded: int = 0
    """Entities folded because there are too many, counted by node."""
    series_dropped: int = 0
    """Series that those would have."""
    crowded: Mapping[QuotaType, int] = field(default_factory=dict)
    """How many entities there are, where there are more than may be shown; the same one on two nodes is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedRate:
    """What one of the quotas beside the client quotas measures, and what it allows."""

    rate: float | None = None
    """bytes/s or connections/s; None when the node gave none."""
    limit: float | None = None
    """In the unit of ``rate``; None when unlimited or unknown."""
    throttle_time_seconds: float | None = None
    """Average throttle of the last 30 to 60 s, 0 when there was none; None where Kafka keeps no such average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionUsage:
    """New connections of one node (KIP-612)."""

    broker: LimitedRate = field(default_factory=LimitedRate)
    listeners: Mapping[str, LimitedRate] = field(default_factory=dict)
    ips: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By IP address as Java writes it, those under a limit only."""
    ip_throttle_time_seconds: Mapping[str, float] = field(default_factory=dict)
    """Average delay of connections refused for the sake of their address, by listener; 0 when there were none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """What a broker or controller says of itself, apart from its entities."""

    broker: str
    delay_queue_size: Mapping[QuotaType, float] = field(default_factory=dict)
    exempt_request_threads: float | None = None
    request_capacity_threads: float | None = None
    request_throttled_seconds: Mapping[str, float] = field(default_factory=dict)
    """Total since the node started, by request."""
    throttling_errors: Mapping[str, float] = field(default_factory=dict)
    """Total since the node started, by request."""
    stale_entities: Mapping[QuotaType, int] = field(default_factory=dict)
    quota_callback: bool = False
    """Whether the node leaves quotas to a custom callback."""
    utilization_disagreements: int | None = None
    """Entities whose utilisation the node tells otherwise than it is computed; None when it tells none, or limits are unknown."""
    active_controller: bool | None = None
    """None when the node did not tell."""
    controller_events: float | None = None
    """Events handled since the node started; the active controller only."""
    controller_event_queue_seconds: float | None = None
    """Total wait of these events; the active controller only."""
    connections: ConnectionUsage = field(default_factory=ConnectionUsage)
    replication: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By direction: ``leader``, ``follower``, ``alter_log_dirs``."""
    remote_storage: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By direction: ``copy``, ``fetch``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """How the last read of one source went."""

    name: str
    dialect: str
    up: bool
    duration_seconds: float
    readings: int = 0
    """Numbers given by the last successful read."""
    error: str | None = None
    """What was wrong and what to do, when it failed."""
    remark: str | None = None
    """What was wrong and what to do, although it could be read."""
    hint: str | None = None
    """What to check if there are quotas, because it told of no entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryHealth:
    """How finding nodes in one way goes."""

    name: str
    """The label ``discovery``."""
    targets: int = 0
    """How many nodes the last look that succeeded gave."""
    found_at: float | None = None
    """Unix time in seconds of that look."""
    error: str | None = None
    """What was wrong with the last look, wholly or in part."""
    errors_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """What one collection got from one source: the input of the join."""

    health: SourceHealth
    table: BeanTable | None
    """None when the read failed; ``health`` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsHealth:
    """How reading the configured limits goes."""

    configured: bool = True
    """False when nobody said where the limits are to be read."""
    read_at: float | None = None
    """Unix time of the last success in seconds."""
    error: str | None = None
    """Why the last read failed; None when it succeeded."""
    denied: bool = False
    """Whether it failed for a missing permission or wrong credentials."""
    errors_total: int = 0
    changes_total: Mapping[str, int] = field(default_factory=dict)
    """Limits set, changed or removed, by quota key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """
    What is not shown one by one, to keep the number of series in bounds.

    Entities are counted by node: one user and client id on two nodes are two.
    """

    overflow: int = 0
    """Entities folded because there are too many."""
    excluded: int = 0
    """Entities folded or dropped for their names."""
    idle: int = 0
    """Entities left out because they have not moved for long."""
    stand_ins: int = 0
    """How many of the snapshot's entities, the last ones, stand for those that are folded."""
    series_dropped: Mapping[str, int] = field(default_factory=dict)
    """By reason: ``overflow``, ``excluded``, ``idle``, ``detail``."""
    crowded: Mapping[QuotaType, int] = field(default_factory=dict)
    """How many pairs of user and client id there are, where there are more than may be shown."""
    max_entities: int = 0
    """How many of them may be shown for each quota type; 0 when nothing was folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """The greatest values since the last scrape of the same scraper, this snapshot's included."""

    utilization: Mapping[int, float]
    """By the identity of the entity, as ``id`` gives it: it holds in the snapshot that these are part of."""
    burst_used: Mapping[int, float]
    """As ``utilization``."""
    delay_queue_size: Mapping[tuple[str, QuotaType], float]
    """By broker and quota type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How reading between scrapes goes."""

    samples: int = 0
    """Reads taken since the start."""
    missed: int = 0
    """Reads that were due while an earlier one was still under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushHealth:
    """How pushing over OTLP goes, since this exporter started."""

    exports_total: Mapping[str, int] = field(default_factory=dict)
    """Pushes by outcome: ``success``, ``partial``, ``failure``."""
    points_total: Mapping[str, int] = field(default_factory=dict)
    """Points by what became of them: ``accepted``, ``rejected``, ``lost``."""
    error: str | None = None
    """Why the last push did not succeed; None when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All sources joined with the limits at one moment. Never changed once made."""

    taken_at: float
    """Unix time in seconds."""
    entities: tuple[EntityUsage, ...] = ()
    """What is shown: all that were measured but for those left out, and those that stand for them."""
    left_out: tuple[EntityUsage, ...] = ()
    """Entities that were measured, but are not shown one by one."""
    folds: Folds = field(default_factory=Folds)
    callbacks: Callbacks = field(default_factory=Callbacks)
    nodes: tuple[NodeUsage, ...] = ()
    sources: tuple[SourceHealth, ...] = ()
    limits: Limits | None = None
    """None until the limits were read once."""
    limits_health: LimitsHealth = field(default_factory=LimitsHealth)
    discoveries: tuple[DiscoveryHealth, ...] = ()
    sampling: Sampling | None = None
    """None when only scrapes read."""
    peaks: Peaks | None = None
    """For scrapers, when there is sampling."""
    push: PushHealth | None = None
    """None when nothing is pushed."""

    @property
    def measured(self) -> tuple[EntityUsage, ...]:
        """All real entities, shown or not."""
        stand_ins = self.folds.stand_ins
        shown = self.entities[:-stand_ins] if stand_ins else self.entities
        return shown + self.left_out
