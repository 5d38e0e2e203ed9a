"""What nodes tell whose quotas a custom callback decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quotascope.metrics import QuotaType


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackUsage:
    """What was used on one node under tags that a custom quota callback chose."""

    broker: str
    quota_type: QuotaType
    tags: tuple[str, ...]
    """Values in the order of ``Callbacks.labels``; empty where the bean has no such tag."""
    usage: float | None = None
    """bytes/s, threads or mutations/s by quota type; None when the node gave none."""
    throttle_time_seconds: float | None = 0.0
    """Average throttle of the last 30 to 60 s, 0 when there was none; None where it is unknown, as of ``EntityUsage``."""


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
