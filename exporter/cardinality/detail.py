"""Who has the series that only matter near a limit: utilisation, burst, rule and cause."""

from __future__ import annotations

from quotascope.metrics import QuotaType

from ..join.recent import Recent
from .identity import HOLD_SECONDS, Name, Rows
from .pressure import throttled, used


class Detail:
    """Identities that were throttled, or used so much of their limit, in the last five minutes."""

    def __init__(self, above: float) -> None:
        self._above = above
        self._near: Recent[tuple[QuotaType, Name]] = Recent(HOLD_SECONDS)

    def forget(self, at: float) -> None:
        """Drop those for which that is too long ago."""
        self._near.forget(at)

    def mark(self, kind: QuotaType, name: Name, rows: Rows, at: float) -> bool:
        """Tell these usages whether they are shown in detail, and return it."""
        key = (kind, name)
        if any(throttled(usage) or used(usage) > self._above for usage in rows):
            self._near.note(key, at)
        detailed = key in self._near
        for usage in rows:
            usage.detailed = detailed
        return detailed
