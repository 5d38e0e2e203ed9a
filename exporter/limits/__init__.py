"""The configured limits of a cluster: what they are, how they are read, and what changed."""

from .model import CONNECTION_KEY, DEFAULT_IP, QUOTA_KEYS, Limits, LimitsHealth, LimitsSource, NodeSettings

__all__ = [
    "CONNECTION_KEY",
    "DEFAULT_IP",
    "QUOTA_KEYS",
    "Limits",
    "LimitsHealth",
    "LimitsSource",
    "NodeSettings",
]
