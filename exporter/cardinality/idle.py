"""Entities that Kafka still keeps, but that have not moved for long."""

from __future__ import annotations

from typing import Final

from quotascope.metrics import QuotaType

from ..snapshot import EntityUsage
from .identity import AWAY_SECONDS, Name, Rows
from .lasting import Lasting
from .pressure import throttled


class Idle:
    """Remembers when each identity last moved; one that is new, or was away for long, counts as moving."""

    def __init__(self, after_seconds: float) -> None:
        self.after_seconds: Final = after_seconds
        self._moved_at: Lasting[tuple[QuotaType, Name], float] = Lasting(AWAY_SECONDS)

    def forget(self, at: float) -> None:
        """Drop identities that are gone."""
        self._moved_at.forget(at)

    def idle(self, kind: QuotaType, name: Name, rows: Rows, at: float) -> bool:
        """Whether no node saw usage or a throttle for the configured time, at ``at`` (Unix time in seconds)."""
        key = (kind, name)
        moved_at = self._moved_at.get(key)
        if moved_at is None or moved_at > at or any(map(_moves, rows)):
            self._moved_at.set(key, at)
            return False
        return at - moved_at >= self.after_seconds


def _moves(usage: EntityUsage) -> bool:
    return bool(usage.usage) or throttled(usage)
