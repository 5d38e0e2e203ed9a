"""The state of a cluster and of the exporter at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.catalog.thresholds import DEFAULTS, SharedThresholds
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.baseline import WORSE, ThrottleChange

from ..coverage import Coverage
from ..limits import Limits, LimitsHealth
from ..limits.model import SETTINGS_OF
from ..mapping import BeanTable
from .columns import Columns, Usages
from .entity import Entity, EntityUsage
from .layout import Floats
from .teams import SoldBy, TeamSums

_MOST_IDLE: Final = 1.05
"""Highest idle share of one pool: a moving average, which may be a little above 1."""
Place: TypeAlias = tuple[QuotaType, str, str, str]
"""Quota type, broker, user and client-id: what distinguishes an entity from all others of Kafka's own quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """The outcome of the last read of one source."""

    name: str
    dialect: str
    up: bool
    duration_seconds: float
    readings: int = 0
    """Numbers given by the last successful read."""
    error: str | None = None
    """The fault and its remedy, when the read failed."""
    remark: str | None = None
    """The fault and its remedy, although the source could be read."""
    hint: str | None = None
    """Advice for a cluster with quotas, because the answer had no entity."""
    node_id: str | None = None
    """The node that the last successful read was of; None when it failed."""
    read_at: float | None = None
    """
    When the numbers were asked for, Unix time in seconds by the clock as it is at ``Snapshot.taken_at``; None while
    there are none.
    """
    late: bool = False
    """True for numbers of an earlier read, because the one under way takes longer than a collection waits."""
    stale: bool = False
    """True for numbers of a Prometheus server that has missed a scrape since."""
    pending: bool = False
    """
    True if the read under way may still answer in time, too: the state of the source has not changed yet.
    """
    stand_by_of: str | None = None
    """The node for which another source is read instead; None for a source that is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """The result of one collection for one source: the input of the join."""

    health: SourceHealth
    table: BeanTable | None
    """None when the read failed; ``health`` has the reason."""
    asked_at: float | None = None
    """When the numbers were asked for, in steady seconds; None where that is not known."""

    def on_clock(self, unix_now: float, steady: float) -> SourceRead:
        """
        Return the same with ``SourceHealth.read_at`` by a clock that shows ``unix_now`` at these steady seconds.

        The clock may have been set since.
        """
        if self.asked_at is None:
            return self
        return replace(self, health=replace(self.health, read_at=unix_now - (steady - self.asked_at)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryHealth:
    """The state of one way to find nodes."""

    name: str
    """The label ``discovery``."""
    targets: int = 0
    """Number of nodes that the last successful search found."""
    found_at: float | None = None
    """Unix time in seconds of that search."""
    error: str | None = None
    """The fault of the last search, of all or a part of it."""
    errors_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The state of reading between scrapes."""

    samples: int = 0
    """Reads taken since the start."""
    missed: int = 0
    """Reads that were due while an earlier one was still under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushHealth:
    """The state of pushing over OTLP since this exporter started."""

    exports_total: Mapping[str, int] = field(default_factory=dict)
    """Pushes by outcome: ``success``, ``partial``, ``failure``."""
    points_total: Mapping[str, int] = field(default_factory=dict)
    """Points by what became of them: ``accepted``, ``rejected``, ``lost``."""
    error: str | None = None
    """Why the last push did not succeed, wholly or in part; None when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadHealth:
    """The outcome of the last attempt to read the configuration; the first is the start."""

    succeeded_at: float
    """Unix time in seconds of the last that succeeded."""
    error: str | None = None
    """Why the last one did not succeed; None when it did."""
    files_error: str | None = None
    """Why files that the configuration names cannot be used as they are now; None when they can."""
    needs_restart: tuple[str, ...] = ()
    """Fields that have changed, but only count after a restart."""

    @property
    def problem(self) -> str | None:
        """The present fault of the configuration, or else of its files."""
        return self.error or self.files_error


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHealth:
    """The state of the exporter's own work at one moment: a part of each snapshot."""

    discoveries: tuple[DiscoveryHealth, ...] = ()
    sampling: Sampling | None = None
    """None when only scrapes read."""
    push: PushHealth | None = None
    """None when nothing is pushed."""
    reload: ReloadHealth | None = None
    """None where the configuration is not read again."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """
    Failures after which background work began again since the exporter started, by name; empty where there is none.
    """
    refused_requests: Mapping[str, int] = field(default_factory=dict)
    """
    Requests to the exporter that were refused for want of room since it started, by reason; empty where it answers
    none.
    """
    certificate_ends: Mapping[str, float] = field(default_factory=dict)
    """The Unix time until which certificates are valid, by the file that they are in."""
    log_lines_dropped: int | None = None
    """
    Lines that were not logged since the start, because the log was not read; None where lines are written at once.
    """
    process: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the operating system about the exporter's process, by the family's name; empty without /proc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """The report of a broker or controller about itself, apart from its entities."""

    broker: str
    numbers: Mapping[Family, Mapping[tuple[str, ...], float | None]] = field(default_factory=dict)
    """Values by family, and by its labels after ``broker``; None where the node gave no finite number."""
    delay_queue_size: Mapping[QuotaType, float] = field(default_factory=dict)
    stale_entities: Mapping[QuotaType, int] = field(default_factory=dict)
    coverage: Coverage | None = None
    """
    The kinds of entities that its answer can show; None where an exporter of an earlier release does not report them.
    """
    quota_callback: bool | None = False
    """
    True if the node leaves quotas to a custom callback; None where neither its settings nor MBeans of Strimzi's plugin
    are known.
    """
    overruled: bool = False
    """True if the configured quotas do not decide on it, or may not: it has a callback, or may have one."""
    foreign_labels: tuple[str, ...] = ()
    """
    Labels of its quota metrics that Kafka's own quotas do not have, where it is unknown whether it has a callback;
    untrusted.
    """
    static_limits: Mapping[QuotaType, float] = field(default_factory=dict)
    """
    The limits of Strimzi's quotas plugin, in Kafka's units: infinite when unlimited, missing when unknown; empty
    without the plugin.
    """
    active_controller: bool | None = None
    """None when the node did not report it."""
    started_at: float | None = None
    """When it was started, Unix time in seconds by its own clock; None when it did not report it."""

    def number(self, family: Family) -> float | None:
        """Return the value of a family with one series for each node; None if it is unknown."""
        return self.numbers.get(family, {}).get(())

    def by_name(self, family: Family) -> dict[str, float]:
        """Return the known values of a family, by the label that it has besides ``broker``."""
        return {name: value for (name,), value in self.numbers.get(family, {}).items() if value is not None}

    @property
    def handlers_idle(self) -> float | None:
        """
        The idle share of the request handlers, of the busiest pool if it is known by pool; None if it is unknown.

        A share above 1 is the sum of two pools, of which either may be busy: it counts as unknown.
        """
        idle_by_pool = self.by_name(catalog.REQUEST_HANDLER_POOL_IDLE)
        idle = min(idle_by_pool.values(), default=self.number(catalog.REQUEST_HANDLER_IDLE))
        return None if idle is None or idle > _MOST_IDLE else min(1.0, idle)

    @property
    def connections_by_ip(self) -> dict[str, float | None]:
        """
        New connections/s of the addresses under a limit, by IP address as Java writes it.

        None if the node reports no number.
        """
        return {ip: rate for (ip,), rate in self.numbers.get(catalog.IP_CONNECTIONS_PER_SECOND, {}).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """
    The entities that are not shown one by one, to keep the number of series in bounds.

    Entities are counted by node: one user and client-id on two nodes are two.
    """

    overflow: int = 0
    """Entities folded because there are too many."""
    excluded: int = 0
    """Entities folded or dropped for their names, or folded because their names are too long to be matched."""
    unmatched: int = 0
    """
    How many pairs of user and client-id have a name that was cut and is not remembered, so that it is unknown whether
    it is excluded.
    """
    idle: int = 0
    """Entities left out because they have been without usage for long."""
    series_dropped: Mapping[str, int] = field(default_factory=dict)
    """Series left out by reason: ``overflow``, ``excluded``, ``idle``, ``detail``."""
    crowded: Mapping[QuotaType, int] = field(default_factory=dict)
    """Number of pairs of user and client-id by quota type, where more exist than may be shown."""
    max_entities: int = 0
    """Number of pairs that may be shown for each quota type; 0 when nothing was folded."""
    long: Mapping[QuotaType, int] = field(default_factory=dict)
    """
    Identities folded because their names are too long, custom callbacks' included; a quota type without any has no key.
    """
    max_name_bytes: int = 0
    """Bytes that a name may have to be shown, for each quota type; 0 when nothing was folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """The entities of custom quota callbacks on all nodes; what they used is in ``Snapshot.columns``."""

    labels: tuple[str, ...] = ()
    """The labels that stand for tags, the same for every entity."""
    left_out: tuple[str, ...] = ()
    """Tags that are not shown because there are too many."""
    folded: int = 0
    """Entities folded because there are too many, counted by node."""
    crowded: Mapping[QuotaType, int] = field(default_factory=dict)
    """Number of entities, where more exist than may be shown; the same one on two nodes counts once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """The greatest values of a rolling window, this snapshot's included."""

    utilization: Floats
    """Maxima by row of ``Snapshot.columns``; NaN where there is none, as for entities without details."""
    burst_used: Floats
    """Maxima of ``Columns.burst_used``, as ``utilization``."""
    delay_queue_size: Mapping[tuple[str, QuotaType], float]
    """The longest delay queues by broker and quota type."""


@dataclass(slots=True, kw_only=True)
class ShadowUsage(EntityUsage):
    """
    An entity as the rules of a shadow make it, with its limit.

    Its throttle time is Kafka's answer to a request at this moment; the broker's own where the shadow changes neither
    its limit nor how it is measured, and None where it is unknown.
    """

    change: ThrottleChange | None = None
    """Against the quotas in force; None where neither throttles it."""
    change_seconds: float | None = 0.0
    """Its throttle time minus that of the quotas in force; None where either is unknown."""
    held_back: bool = False
    """
    True if another limit in force throttles a part of it, so that its usage is a lower bound of what it would use.
    """
    unchanged: bool = False
    """True if the shadow changes neither its limit nor how it is measured."""

    @property
    def worse(self) -> bool:
        """Return whether the shadow throttles it newly, or for longer."""
        return self.change is not None and self.change.worse


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """
    The actions that brokers would take now under rules that none of them enforces.

    Counts are by quota type and broker.
    """

    name: str
    """The name of the candidate."""
    entities: tuple[ShadowUsage, ...] = ()
    """
    The entities that the shadow affects: first those that it would throttle newly or for longer, then the others by
    throttle time and utilization, then those under the limits in force. Not all, to keep the number of series in
    bounds.
    """
    evaluated: Mapping[tuple[QuotaType, str], int] = field(default_factory=dict)
    """Entities under a limit whose answer is known; no key where none is known and some are unknown."""
    changes: Mapping[tuple[QuotaType, str], Mapping[ThrottleChange, int]] = field(default_factory=dict)
    """
    Entities that it or a quota in force throttles, by change: 0 where there is none.

    The keys are those of ``evaluated``.
    """
    unevaluated: Mapping[tuple[QuotaType, str, str], int] = field(default_factory=dict)
    """Entities of which the answer is unknown, by quota type, broker and reason."""

    def changed(self, *changes: ThrottleChange) -> int:
        """Return the number of entities with one of ``changes``, on all brokers together."""
        return sum(count for counts in self.changes.values() for change, count in counts.items() if change in changes)

    @property
    def worse(self) -> bool:
        """Return whether it would throttle an entity newly, or for longer."""
        return self.changed(*WORSE) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(OwnHealth):
    """
    All sources joined with the limits at one moment, and how the exporter's own work goes.

    Never changed once made.
    """

    taken_at: float
    """Unix time in seconds."""
    thresholds: SharedThresholds = DEFAULTS
    """The thresholds of the alerts that say what is near a limit, and what is a finding."""
    boot_seconds: float | None = None
    """
    Seconds since the machine started, when it was taken; None where that is unknown, as of a snapshot that another
    exporter took.
    """
    columns: Columns = field(default_factory=Columns.of)
    """
    The entities that the exporter exposes: the measured ones without those left out, and those that stand for these.
    """
    joined: Columns | None = None
    """The columns of all measured entities; None where all of them are in ``columns``."""
    unsent: int = 0
    """Number of entities that a running exporter measured and did not send: this snapshot lacks them."""
    folds: Folds = field(default_factory=Folds)
    callbacks: Callbacks = field(default_factory=Callbacks)
    nodes: tuple[NodeUsage, ...] = ()
    sources: tuple[SourceHealth, ...] = ()
    limits: Limits | None = None
    """None until the limits were read once."""
    limits_health: LimitsHealth = field(default_factory=LimitsHealth)
    peaks: Peaks | None = None
    """Maxima between scrapes; None without sampling."""
    shadows: tuple[Shadow, ...] = ()
    """Shadows in the order of their file."""
    teams: TeamSums | None = None
    """Sums of teams; None without teams."""
    sold: SoldBy = field(default_factory=dict)
    """What is sold of each broker, where limits and capacity are known."""

    @property
    def steady_at(self) -> float:
        """
        The time of ``taken_at`` in seconds by a clock that no one sets.

        ``taken_at`` itself where no other is known.
        """
        return self.taken_at if self.boot_seconds is None else self.boot_seconds

    def time_at(self, steady: float) -> float:
        """
        Return the Unix time at these steady seconds, by the clock as it was when the snapshot was taken.

        Ages are differences from that clock, however it was set since.
        """
        return self.taken_at + (steady - self.steady_at)

    @property
    def entities(self) -> Usages:
        """The exposed rows of Kafka's own quotas."""
        return self.columns.usages

    @property
    def measured(self) -> Usages:
        """All real entities of Kafka's own quotas, shown or not."""
        return (self.joined or self.columns).usages

    @property
    def incomplete(self) -> bool:
        """
        Return whether there may be more entities than are measured here.

        There may be more if no node was read, if a source in use or a broker was not read, or if an exporter did not
        send all entities.
        """
        return self.unsent > 0 or not self.nodes or self.has_failing_source or bool(self.brokers_not_read)

    @property
    def has_failing_source(self) -> bool:
        """Return whether a source in use could not be read; its node may be unknown."""
        return any(not source.up and source.stand_by_of is None for source in self.sources)

    @property
    def old_sources(self) -> tuple[SourceHealth, ...]:
        """The sources in use whose numbers are of an earlier collection or scrape."""
        return tuple(source for source in self.sources if (source.late or source.stale) and source.stand_by_of is None)

    @property
    def brokers_not_read(self) -> tuple[str, ...]:
        """The brokers that the Admin API knows and that no source was read for, by node id."""
        limits = self.limits
        if limits is None:
            return ()
        failed = (setting.removeprefix(SETTINGS_OF) for setting in limits.missing if setting.startswith(SETTINGS_OF))
        brokers_read = {node.broker for node in self.nodes}
        brokers_not_read = {*limits.nodes, *limits.releases, *failed} - brokers_read
        return tuple(sorted(brokers_not_read, key=lambda node: (len(node), node)))  # 2 before 10

    @property
    def enforcing_brokers(self) -> frozenset[str]:
        """
        The brokers that are certain to enforce the configured limits; empty while the limits are unknown.

        Brokers that have a custom quota callback, or may have one, are left out.
        """
        limits = self.limits
        if limits is None:
            return frozenset()
        return frozenset({*limits.nodes, *limits.releases} - {node.broker for node in self.nodes if node.overruled})

    @property
    def enforcers(self) -> int | None:
        """
        The number of brokers that enforce the configured limits.

        None if it is unknown, and if a broker has a custom quota callback, or may have one.
        """
        if any(node.overruled for node in self.nodes):
            return None
        return len(self.enforcing_brokers) or None

    @property
    def in_shadows(self) -> Mapping[Place, ShadowUsage]:
        """
        The usage in shadows by quota type, broker, user and client-id.

        If several shadows have an entity, the usage is from the shadow that changes it most, then from the one that
        would throttle it longest, then from the one with the highest utilization.
        """
        usages = [usage for shadow in self.shadows for usage in shadow.entities]
        # of usages of the same place, the last one stays
        usages.sort(key=lambda usage: (usage.worse, usage.throttle_time_seconds or 0.0, usage.pressure or 0.0))
        return {place_of(usage.entity): usage for usage in usages}


def place_of(entity: Entity) -> Place:
    """Return the place of an entity of Kafka's own quotas."""
    return entity.quota_type, entity.broker, entity.user, entity.client_id
