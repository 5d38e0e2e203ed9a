"""The configured limits of a cluster: what they are, how they are read, and what changed."""

from .changes import CONNECTION_KEY, QUOTA_KEYS
from .model import Limits, LimitsSource, NodeSettings

__all__ = ["CONNECTION_KEY", "QUOTA_KEYS", "Limits", "LimitsSource", "NodeSettings"]
