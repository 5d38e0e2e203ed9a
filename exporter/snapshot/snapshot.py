"""The state of a cluster and of the exporter at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from quotascope.metrics import QuotaType

from ..limits import Limits, LimitsHealth
from ..mapping import BeanTable
from .columns import Columns, Usages
from .entity import Entity, EntityUsage
from .layout import Floats

_MOST_IDLE: Final = 1.05
"""Of one pool, whose share is a moving average that may be a little above 1."""
Place: TypeAlias = tuple[QuotaType, str, str, str]
"""Quota type, broker, user and client-id: what distinguishes an entity from all others of Kafka's own quotas."""


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
    """What to check if there are quotas, because the answer had no entity."""
    read_at: float | None = None
    """Unix time in seconds when the numbers were asked for; None while there are none."""
    late: bool = False
    """Whether they are those of an earlier read, because the one under way takes longer than a collection waits."""
    pending: bool = False
    """Whether they are, and the read under way may still answer in time: the state of the source has not changed yet."""
    stand_by_of: str | None = None
    """The node for which another source is read instead; None for a source that is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """What one collection got from one source: the input of the join."""

    health: SourceHealth
    table: BeanTable | None
    """None when the read failed; ``health`` has the reason."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadHealth:
    """How the last attempt to read the configuration went; the first is the start."""

    succeeded_at: float
    """Unix time in seconds of the last that succeeded."""
    error: str | None = None
    """Why the last one did not succeed; None when it did."""
    needs_restart: tuple[str, ...] = ()
    """Fields that have changed, but only count after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHealth:
    """How the exporter's own work goes at one moment: a part of each snapshot."""

    discoveries: tuple[DiscoveryHealth, ...] = ()
    sampling: Sampling | None = None
    """None when only scrapes read."""
    push: PushHealth | None = None
    """None when nothing is pushed."""
    reload: ReloadHealth | None = None
    """None where the configuration is not read again."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """How often background work failed and began again since the exporter started, by its name; empty where there is none."""
    process: Mapping[str, float] = field(default_factory=dict)
    """What the operating system knows of the exporter's process, by the family's name; empty without /proc."""


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
    """Average delay of connections over the limit of their address, by listener; 0 when there were none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLoad:
    """How busy the threads of a node are, and how long requests wait for them; None and missing where it is not reported."""

    handlers_idle: float | None = None
    """Share of the last minute or so in which request handlers waited for requests, all pools together."""
    handlers_idle_seconds: float | None = None
    """The same as a total in seconds since the node started, the average of the threads."""
    pools_idle: Mapping[str, float] = field(default_factory=dict)
    """As ``handlers_idle``, by pool: ``broker`` and ``controller``."""
    pools_idle_seconds: Mapping[str, float] = field(default_factory=dict)
    """As ``handlers_idle_seconds``, by pool."""
    network_idle: float | None = None
    """The same share of the network threads."""
    controller_idle: float | None = None
    """The same share of the thread that handles a controller's events."""
    request_queue_size: float | None = None
    """Requests that wait for a handler now."""
    request_queue_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """How long the last requests waited, by request and percentile (``50``, ``95``, ``99``)."""

    @property
    def idle(self) -> float | None:
        """The share of the busiest pool, where it is known by pool; None for the sum of two pools, above 1, of which either may be busy."""
        idle = min(self.pools_idle.values(), default=self.handlers_idle)
        return None if idle is None or idle > _MOST_IDLE else min(1.0, idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """What a broker or controller reports of itself, apart from its entities."""

    broker: str
    delay_queue_size: Mapping[QuotaType, float] = field(default_factory=dict)
    exempt_request_threads: float | None = None
    request_capacity_threads: float | None = None
    request_throttled_seconds: Mapping[str, float] = field(default_factory=dict)
    """Total since the node started, by request."""
    throttling_errors: Mapping[str, float] = field(default_factory=dict)
    """Total since the node started, by request."""
    stale_entities: Mapping[QuotaType, int] = field(default_factory=dict)
    quota_callback: bool | None = False
    """Whether the node leaves quotas to a custom callback; None where neither its settings are known nor its beans show one."""
    static_limits: Mapping[QuotaType, float] = field(default_factory=dict)
    """The limits of Strimzi's quotas plugin, in Kafka's units: infinite when unlimited, missing when unknown; empty without the plugin."""
    throttle_factor: float | None = None
    """What the plugin multiplied its produce limit by; None without its storage check."""
    utilization_disagreements: int | None = None
    """Entities with another utilization than the node reports; None when it reports none, or limits are unknown."""
    active_controller: bool | None = None
    """None when the node did not report it."""
    controller_events: float | None = None
    """Events handled since the node started; the active controller only."""
    controller_event_queue_seconds: float | None = None
    """Total wait of these events; the active controller only."""
    load: NodeLoad = field(default_factory=NodeLoad)
    connections: ConnectionUsage = field(default_factory=ConnectionUsage)
    replication: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By direction: ``leader``, ``follower``, ``alter_log_dirs``."""
    remote_storage: Mapping[str, LimitedRate] = field(default_factory=dict)
    """By direction: ``copy``, ``fetch``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """
    What is not shown one by one, to keep the number of series in bounds.

    Entities are counted by node: one user and client-id on two nodes are two.
    """

    overflow: int = 0
    """Entities folded because there are too many."""
    excluded: int = 0
    """Entities folded or dropped for their names."""
    idle: int = 0
    """Entities left out because they have been without usage for long."""
    series_dropped: Mapping[str, int] = field(default_factory=dict)
    """By reason: ``overflow``, ``excluded``, ``idle``, ``detail``."""
    crowded: Mapping[QuotaType, int] = field(default_factory=dict)
    """How many pairs of user and client-id there are, where there are more than may be shown."""
    max_entities: int = 0
    """How many of them may be shown for each quota type; 0 when nothing was folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """The entities of custom quota callbacks on all nodes; what they used is in ``Snapshot.shown``."""

    labels: tuple[str, ...] = ()
    """The labels that stand for tags, the same for every entity."""
    left_out: tuple[str, ...] = ()
    """Tags that are not shown because there are too many."""
    folded: int = 0
    """Entities folded because there are too many, counted by node."""
    crowded: Mapping[QuotaType, int] = field(default_factory=dict)
    """How many entities there are, where there are more than may be shown; the same one on two nodes is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """The greatest values of a rolling window, this snapshot's included."""

    utilization: Floats
    """By row of ``Snapshot.shown``, NaN where there is none: entities without details have none."""
    burst_used: Floats
    """As ``utilization``."""
    delay_queue_size: Mapping[tuple[str, QuotaType], float]
    """By broker and quota type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """What the brokers would do now under rules that none of them enforces. Counts are by quota type and broker."""

    name: str
    """Of the candidate."""
    entities: tuple[EntityUsage, ...] = ()
    """
    Entities as its rules make them, with its limits: those that it would throttle first, then by utilization. Their throttle time is
    Kafka's answer to a request at this moment. Not all, to keep the number of series in bounds.
    """
    evaluated: Mapping[tuple[QuotaType, str], int] = field(default_factory=dict)
    """Entities under a limit of which the answer is known; no key where there is none and others are unknown."""
    throttled: Mapping[tuple[QuotaType, str], int] = field(default_factory=dict)
    """Of these, those that it would throttle; the same keys."""
    unevaluated: Mapping[tuple[QuotaType, str, str], int] = field(default_factory=dict)
    """Entities of which the answer is unknown, by quota type, broker and reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(OwnHealth):
    """All sources joined with the limits at one moment, and how the exporter's own work goes. Never changed once made."""

    taken_at: float
    """Unix time in seconds."""
    shown: Columns = field(default_factory=Columns.of)
    """What is shown: the measured entities without those left out, and the entities that stand for these."""
    joined: Columns | None = None
    """All that were measured; None where all of them are shown."""
    unsent: int = 0
    """Those that a running exporter measured and did not send; none of them is in this snapshot."""
    folds: Folds = field(default_factory=Folds)
    callbacks: Callbacks = field(default_factory=Callbacks)
    nodes: tuple[NodeUsage, ...] = ()
    sources: tuple[SourceHealth, ...] = ()
    limits: Limits | None = None
    """None until the limits were read once."""
    limits_health: LimitsHealth = field(default_factory=LimitsHealth)
    peaks: Peaks | None = None
    """None without sampling."""
    shadows: tuple[Shadow, ...] = ()
    """In the order of their file."""

    @property
    def entities(self) -> Usages:
        """What is shown of Kafka's own quotas."""
        return self.shown.usages

    @property
    def measured(self) -> Usages:
        """All real entities of Kafka's own quotas, shown or not."""
        return (self.joined or self.shown).usages

    @property
    def incomplete(self) -> bool:
        """Whether no node or not all sources in use could be read, or an exporter did not send all, so that there may be more entities than are measured here."""
        return (
            self.unsent > 0
            or not self.nodes
            or any(not source.up and source.stand_by_of is None for source in self.sources)
        )

    @property
    def in_shadows(self) -> Mapping[Place, EntityUsage]:
        """By quota type, broker, user and client-id: an entity as the shadow makes it that would throttle it longest, or else has the highest utilization."""
        usages = [usage for shadow in self.shadows for usage in shadow.entities]
        usages.sort(key=lambda each: (each.throttle_time_seconds or 0.0, each.used or 0.0))
        return {place_of(each.entity): each for each in usages}


def place_of(entity: Entity) -> Place:
    """Where an entity of Kafka's own quotas is."""
    return entity.quota_type, entity.broker, entity.user, entity.client_id
