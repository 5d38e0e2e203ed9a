"""The configured limits of a cluster: what they are, how they are read, and what changed."""

from .model import (
    CONNECTION_KEY,
    DEFAULT_IP,
    QUOTA_KEYS,
    LimitChange,
    Limits,
    LimitsHealth,
    LimitsSource,
    NodeSettings,
    version_of,
)

__all__ = [
    "CONNECTION_KEY",
    "DEFAULT_IP",
    "QUOTA_KEYS",
    "LimitChange",
    "Limits",
    "LimitsHealth",
    "LimitsSource",
    "NodeSettings",
    "version_of",
]
