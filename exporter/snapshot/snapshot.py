"""All of them at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quotascope.metrics import QuotaType

from ..limits import Limits, LimitsHealth
from .columns import Columns, Usages
from .health import (
    DiscoveryHealth,
    PushHealth,
    ReloadHealth,
    Sampling,
    SourceHealth,
)
from .layout import Floats
from .node import NodeUsage


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
    series_dropped: Mapping[str, int] = field(default_factory=dict)
    """By reason: ``overflow``, ``excluded``, ``idle``, ``detail``."""
    crowded: Mapping[QuotaType, int] = field(default_factory=dict)
    """How many pairs of user and client id there are, where there are more than may be shown."""
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
    series_dropped: int = 0
    """Series that those would have."""
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
class Snapshot:
    """All sources joined with the limits at one moment. Never changed once made."""

    taken_at: float
    """Unix time in seconds."""
    shown: Columns = field(default_factory=Columns.none)
    """What is shown: all that were measured but for those left out, and those that stand for them."""
    joined: Columns | None = None
    """All that were measured; None where all of them are shown."""
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
    """None without sampling."""
    push: PushHealth | None = None
    """None when nothing is pushed."""
    reload: ReloadHealth | None = None
    """None where the configuration is not read again."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """How often background work failed and began again since the exporter started, by its name; empty where there is none."""

    @property
    def entities(self) -> Usages:
        """What is shown of Kafka's own quotas."""
        return self.shown.usages

    @property
    def measured(self) -> Usages:
        """All real entities of Kafka's own quotas, shown or not."""
        return (self.joined or self.shown).usages
