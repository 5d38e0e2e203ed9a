"""Spark's listener events, as its JsonProtocol writes them: typed records, and the cause of a failed task."""

from .cause import Cause

__all__ = ["Cause"]
