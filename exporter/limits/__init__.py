"""The configured limits of a cluster: what they are, how they are read, and what changed."""

from .health import LimitsHealth
from .model import CONNECTION_KEY, QUOTA_KEYS, Limits, LimitsSource, NodeSettings

__all__ = [
    "CONNECTION_KEY",
    "QUOTA_KEYS",
    "Limits",
    "LimitsHealth",
    "LimitsSource",
    "NodeSettings",
]
