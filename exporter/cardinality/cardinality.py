"""Which entities of a snapshot are shown one by one, and what stands for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

from ..config import CardinalityConfig, Excluded
from ..snapshot import Columns, EntityUsage, Folds, Snapshot
from .callbacks import CallbackCap
from .counters import Counters
from .detail import Detail
from .exclusion import Exclusion
from .identity import Name, Names, Rows, identities, names_of
from .idle import Idle
from .overflow import Overflow, reserved
from .pressure import pressure
from .series import SeriesCount
from .slots import Slots


@dataclass(slots=True)
class _Sorted:
    """The usages of one snapshot by what becomes of them."""

    nodes: frozenset[str]
    """Those that have answered."""
    shown: list[EntityUsage] = field(default_factory=list)
    folded: list[EntityUsage] = field(default_factory=list)
    dropped: list[EntityUsage] = field(default_factory=list)
    entities: Counter[str] = field(default_factory=Counter)
    series: Counter[str] = field(default_factory=Counter)
    crowded: dict[QuotaType, int] = field(default_factory=dict)

    def leave_out(self, rows: Rows, reason: str, series: int, *, fold: bool) -> None:
        """Take these and their series off the page, for a reason that is counted."""
        (self.folded if fold else self.dropped).extend(rows)
        self.entities[reason] += len(rows)
        self.series[reason] += series


class Cardinality:
    """
    Keeps the series of successive snapshots in bounds.

    In this order: names that are excluded, identities that have been idle for long, identities beyond the
    cap, details of those far from their limit. What is excluded or beyond the cap is folded into one
    entity for each node and quota type. The numbers of what is shown are not touched.

    Args:
        config: The bounds.
        maxima: Whether there is sampling, whose maxima are series, too.

    """

    def __init__(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        self._idle: Idle | None = None
        self._detail: Detail | None = None
        self._overflow = Overflow()
        self._counters = Counters()
        self._limit(config.max_entities)
        self.configure(config, maxima=maxima)

    def configure(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        """
        Have other bounds from the next snapshot on.

        Counters of what is folded go on. So does whatever was decided under a bound that stays the same.
        """
        self._series = SeriesCount(maxima=maxima)
        self._folds_excluded = config.excluded is Excluded.OVERFLOW
        self._exclusion = Exclusion(config)
        if config.max_entities != self._most:
            self._limit(config.max_entities)
        idle_after, detail_above = config.idle_after_seconds, config.detail_above
        if idle_after != (self._idle and self._idle.after_seconds):
            self._idle = None if idle_after is None else Idle(idle_after)
        if detail_above != (self._detail and self._detail.above):
            self._detail = None if detail_above is None else Detail(detail_above)

    def _limit(self, most: int) -> None:
        self._most = most
        self._slots: dict[QuotaType, Slots[Name, EntityUsage]] = {
            kind: Slots(most, pressure, _node) for kind in QuotaType
        }
        self._callbacks = CallbackCap(most)

    def apply(self, joined: Snapshot) -> Snapshot:
        """The snapshot as it is shown; to be called once for each, in their order."""
        self._forget(joined.taken_at)
        result = self._sorted(joined)
        totals = self._counters.update(result.shown + result.dropped, result.folded)
        stand_ins = tuple(self._overflow.fold(result.folded, totals))
        tagged, callbacks = self._callbacks.apply(
            joined.shown.tagged, joined.callbacks, result.nodes, joined.taken_at
        )
        result.series["overflow"] += callbacks.series_dropped
        return replace(
            joined,
            shown=Columns.of([*result.shown, *stand_ins, *tagged]),
            joined=joined.shown,
            callbacks=callbacks,
            folds=Folds(
                overflow=result.entities["overflow"],
                excluded=result.entities["excluded"],
                idle=result.entities["idle"],
                series_dropped=dict(result.series),
                crowded=result.crowded,
                max_entities=self._most,
            ),
        )

    def _forget(self, at: float) -> None:
        for part in (self._exclusion, self._overflow, self._counters):
            part.forget(at)
        if self._idle is not None:
            self._idle.forget(at)
        if self._detail is not None:
            self._detail.forget(at)

    def _sorted(self, joined: Snapshot) -> _Sorted:
        result = _Sorted(frozenset(node.broker for node in joined.nodes))
        if self._shows_all(joined.entities):
            result.shown += joined.entities
            for kind, slots in self._slots.items():
                slots.show_all(
                    partial(names_of, kind, joined.entities), joined.taken_at
                )
            return result
        for kind, names in identities(joined.entities).items():
            self._sift(kind, names, joined.taken_at, result)
        return result

    def _shows_all(self, usages: Sequence[EntityUsage]) -> bool:
        """Whether it is plain, without a look at each identity, that all are shown in full."""
        judged = self._exclusion or self._idle is not None or self._detail is not None
        if judged or any(slots.contested for slots in self._slots.values()):
            return False
        entities = [usage.entity for usage in usages]
        kinds = [entity.quota_type for entity in entities]
        if len(kinds) > self._most < max(map(kinds.count, QuotaType)):
            return False
        return not any(
            OVERFLOW in (entity.user, entity.client_id) for entity in entities
        )

    def _sift(self, kind: QuotaType, names: Names, at: float, result: _Sorted) -> None:
        """Sort the identities of one quota type."""
        candidates = {
            name: rows
            for name, rows in names.items()
            if not self._kept_back(kind, name, rows, at, result)
        }
        slots = self._slots[kind]
        chosen = slots.shown(candidates, result.nodes, at)
        if len(chosen) < len(candidates):
            result.crowded[kind] = len(candidates)
        for name, rows in candidates.items():
            if name in chosen:
                self._show(kind, name, rows, at, result)
            else:
                result.leave_out(rows, "overflow", self._series.all(rows), fold=True)

    def _kept_back(
        self, kind: QuotaType, name: Name, rows: Rows, at: float, result: _Sorted
    ) -> bool:
        if not self._exclusion.allows(name):
            fold = self._folds_excluded or reserved(name)
            result.leave_out(rows, "excluded", self._series.all(rows), fold=fold)
            return True
        if self._idle is not None and self._idle.idle(kind, name, rows, at):
            result.leave_out(rows, "idle", self._series.all(rows), fold=False)
            return True
        return False

    def _show(
        self, kind: QuotaType, name: Name, rows: Rows, at: float, result: _Sorted
    ) -> None:
        detail = self._detail
        if detail is not None and not detail.deserves(kind, name, rows, at):
            result.series["detail"] += self._series.details(rows)
            rows = detail.without(rows)
        result.shown += rows


def _node(usage: EntityUsage) -> str:
    return usage.entity.broker
