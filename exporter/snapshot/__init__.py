"""One moment of a cluster's quotas: what every view of the exporter reads."""

from ..limits import LimitsHealth
from .columns import CAUSES, Columns, Usages
from .entity import Entity, EntityUsage, LimitState, ThrottleCause
from .layout import TYPES, Floats, Layout
from .snapshot import (
    Callbacks,
    DiscoveryHealth,
    Folds,
    NodeUsage,
    OwnHealth,
    Peaks,
    Place,
    PushHealth,
    ReloadHealth,
    Sampling,
    Shadow,
    ShadowUsage,
    Snapshot,
    SourceHealth,
    SourceRead,
    place_of,
)
from .teams import CapacityOrigin, Sold, SoldBy, TeamSums

__all__ = [
    "CAUSES",
    "TYPES",
    "Callbacks",
    "CapacityOrigin",
    "Columns",
    "DiscoveryHealth",
    "Entity",
    "EntityUsage",
    "Floats",
    "Folds",
    "Layout",
    "LimitState",
    "LimitsHealth",
    "NodeUsage",
    "OwnHealth",
    "Peaks",
    "Place",
    "PushHealth",
    "ReloadHealth",
    "Sampling",
    "Shadow",
    "ShadowUsage",
    "Snapshot",
    "Sold",
    "SoldBy",
    "SourceHealth",
    "SourceRead",
    "TeamSums",
    "ThrottleCause",
    "Usages",
    "place_of",
]
