"""Who has the series that only matter near a limit: utilisation, burst, rule and cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quotascope.metrics import QuotaType

from ..join.recent import Recent
from ..snapshot import EntityUsage
from .identity import HOLD_SECONDS, Name, Rows
from .pressure import throttled, used


class Detail:
    """Identities that were throttled, or used so much of their limit, in the last five minutes."""

    def __init__(self, above: float) -> None:
        self.above: Final = above
        self._near: Recent[tuple[QuotaType, Name]] = Recent(HOLD_SECONDS)
        self._bare: dict[int, tuple[EntityUsage, EntityUsage]] = {}
        """By identity: usages of the snapshot before, and what they are without details."""
        self._bare_now: dict[int, tuple[EntityUsage, EntityUsage]] = {}

    def forget(self, at: float) -> None:
        """Drop those for which that is too long ago; to be called once for each snapshot."""
        self._near.forget(at)
        self._bare, self._bare_now = self._bare_now, {}

    def deserves(self, kind: QuotaType, name: Name, rows: Rows, at: float) -> bool:
        """Whether an identity with these usages is shown in detail."""
        key = (kind, name)
        if any(throttled(usage) or used(usage) > self.above for usage in rows):
            self._near.note(key, at)
        return key in self._near

    def without(self, rows: Rows) -> Rows:
        """These usages to be shown without details; the same objects as for the snapshot before, where those were the same."""
        return [self._without(usage) for usage in rows]

    def _without(self, usage: EntityUsage) -> EntityUsage:
        both = self._bare.get(id(usage))
        if both is None:
            both = usage, replace(usage, detailed=False)
        self._bare_now[id(usage)] = both
        return both[1]
