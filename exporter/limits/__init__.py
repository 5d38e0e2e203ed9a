"""The configured limits of a cluster: what they are, how they are read, and what changed."""

from .model import Limits, LimitsSource, NodeSettings

__all__ = ["Limits", "LimitsSource", "NodeSettings"]
