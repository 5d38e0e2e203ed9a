"""One moment of a cluster's quotas: what every view of the exporter reads."""

from ..limits import LimitsHealth
from .callbacks import Callbacks, CallbackUsage
from .entity import Cause, Entity, EntityUsage, LimitState
from .health import DiscoveryHealth, PushHealth, ReloadHealth, Sampling
from .node import ConnectionUsage, LimitedRate, NodeUsage
from .snapshot import Folds, Peaks, Snapshot
from .source import SourceHealth, SourceRead

__all__ = [
    "CallbackUsage",
    "Callbacks",
    "Cause",
    "ConnectionUsage",
    "DiscoveryHealth",
    "Entity",
    "EntityUsage",
    "Folds",
    "LimitState",
    "LimitedRate",
    "LimitsHealth",
    "NodeUsage",
    "Peaks",
    "PushHealth",
    "ReloadHealth",
    "Sampling",
    "Snapshot",
    "SourceHealth",
    "SourceRead",
]
