"""What is known of the entities of custom quota callbacks as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quotascope.metrics import QuotaType


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
