"""The entities of one snapshot after the other in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quotascope.metrics import QuotaType

from ..snapshot import EntityUsage
from .places import Run
from .section import Section
from .usage_changes import UsageChanges

_Runs = Mapping[QuotaType, Run]


class Order:
    """
    Keeps the entities of all quota types sorted.

    It is quick where a snapshot has the entities of the last one in the same sequence, but for some that
    came or left.
    """

    def __init__(self) -> None:
        self.sections: Mapping[QuotaType, Section] = {
            kind: Section() for kind in QuotaType
        }
        self._usages: Sequence[EntityUsage] | None = None
        """Of the last snapshot; None before the first one, and after one that failed half way."""
        self._updatable = True

    def take(self, usages: Sequence[EntityUsage]) -> None:
        """Sort a snapshot's entities."""
        before, self._usages = self._usages, None
        if before is None or not self._followed(before, usages):
            self._sort(usages)
        self._usages = usages

    def _followed(
        self, before: Sequence[EntityUsage], usages: Sequence[EntityUsage]
    ) -> bool:
        changes = UsageChanges.between(before, usages)
        if changes.gone or changes.fresh:
            return self._updatable and self._updated(usages, changes)
        for section in self.sections.values():
            section.follow(usages, changes)
        return True

    def _sort(self, usages: Sequence[EntityUsage]) -> None:
        places = self._by_kind(usages, range(len(usages)))
        updatable = [
            section.sort(usages, places[kind])
            for kind, section in self.sections.items()
        ]
        self._updatable = all(updatable)

    def _updated(self, usages: Sequence[EntityUsage], changes: UsageChanges) -> bool:
        if 2 * len(changes.fresh) > len(usages):
            return False
        fresh = self._by_kind(usages, changes.fresh)
        runs = self._runs(changes, fresh)
        return all(
            (kind in runs and section.update_run(usages, changes, runs[kind]))
            or section.update(usages, changes, fresh[kind])
            for kind, section in self.sections.items()
        )

    def _runs(
        self, changes: UsageChanges, fresh: Mapping[QuotaType, Sequence[int]]
    ) -> _Runs:
        """Where the entities of each type are if they stand together in both snapshots, one type after the other; else nothing."""
        runs: dict[QuotaType, Run] = {}
        before = now = 0
        for kind, section in self.sections.items():
            places, came = section.places, fresh[kind]
            if not isinstance(places, Run) or places.start not in (before, places.stop):
                return {}
            stop = now + len(places) - len(places.rows(changes.gone)) + len(came)
            if came and not now <= came[0] <= came[-1] < stop:
                return {}
            runs[kind] = Run(now, stop)
            before, now = before + len(places), stop
        return runs

    def _by_kind(
        self, usages: Sequence[EntityUsage], places: Sequence[int]
    ) -> Mapping[QuotaType, Sequence[int]]:
        by_kind: dict[QuotaType, list[int]] = {kind: [] for kind in self.sections}
        for place in places:
            by_kind[usages[place].entity.quota_type].append(place)
        return by_kind
