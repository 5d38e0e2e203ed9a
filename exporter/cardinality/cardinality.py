"""Which entities of a snapshot are shown one by one, and what stands for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

from ..config import CardinalityConfig, Excluded
from ..patterns import matcher
from ..snapshot import TYPES, Columns, Folds, Layout, Snapshot
from ..snapshot.columns import NAMES
from .identity import AWAY_SECONDS, HOLD_SECONDS, Grouped, Identities, Ints, Mask, name_of
from .overflow import Overflow
from .places import Places, Pressure

_ALLOWED: Final = 1
_EXCLUDED: Final = 2
_RESERVED: Final = 3
"""Verdict: the name is that of the fold."""


class Cardinality:
    """
    Keeps the series of successive snapshots in bounds.

    In this order: names that are excluded, identities that have been idle for long, identities beyond the
    cap, details of those far from their limit. What is excluded or beyond the cap is folded into one
    entity for each node and quota type. The numbers of what is shown are not touched. Only the cap concerns entities of
    custom quota callbacks: their tags are no users and client-ids, and their limits are not known. ``maxima``: there is sampling,
    and its maxima are series, too.
    """

    def __init__(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        self._identities = Identities()
        self._overflow = Overflow()
        self._idle_at = np.nan
        """When idleness was judged last."""
        self._config = config
        self._set_cap(config.max_entities)
        self.configure(config, maxima=maxima)

    def configure(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        """Apply other bounds from the next snapshot on; decisions under a bound that stays the same are kept."""
        before, self._config, self._maxima = self._config, config, maxima
        users = config.include_users, config.exclude_users
        client_ids = config.include_client_ids, config.exclude_client_ids
        self._allows = _allows(*users), _allows(*client_ids)
        self._only_capped = not (
            any((*users, *client_ids)) or config.idle_after_seconds is not None or config.detail_above is not None
        )
        known = self._identities.known
        known["verdict"] = 0
        if config.max_entities != before.max_entities:
            self._set_cap(config.max_entities)
        if config.idle_after_seconds != before.idle_after_seconds:
            known["judged_at"] = np.nan
        if config.detail_above != before.detail_above:
            known["near_at"] = np.nan

    def _set_cap(self, most: int) -> None:
        self._places = Places(self._identities, most)
        self._fit: tuple[Layout, bool] = (Layout(()), True)
        """The last layout, and whether each of its identities has a place in any case."""
        self._all: tuple[Layout, float] | None = None
        """What was shown last, and when, if that was all."""

    def allows(self, user: str, client_id: str) -> bool:
        """Whether an entity of these names may be shown; an absent one is no reason to exclude it."""
        parts = zip(self._allows, (user, client_id), strict=True)
        return all(allows(part) for allows, part in parts if part)

    def apply(self, joined: Snapshot) -> Snapshot:
        """The snapshot as it is shown; to be called once for each, in their order."""
        columns, at = joined.shown, joined.taken_at
        if self._shows_all(columns.layout, at):
            self._all = columns.layout, at
            return replace(joined, folds=Folds(max_entities=self._config.max_entities))
        if self._all is not None:
            self._places.give_to_all(*self._all)
            self._all = None
        view = self._identities.of(columns.layout, at)
        pressure = Pressure(view, columns)
        verdicts = self._verdicts(view)
        allowed = verdicts == _ALLOWED
        idle = allowed & self._idle(view, columns, pressure, allowed, at)
        candidates = allowed & ~idle
        nodes = frozenset(node.broker for node in joined.nodes)
        shown = self._places.chosen(view, candidates, pressure, nodes, at)
        bare = shown & ~self._near(view, pressure, shown, at)
        excluded = view.own & ~allowed
        beyond = ~(shown | idle | excluded)
        folded = beyond | excluded
        if self._config.excluded is Excluded.DROP:
            folded &= verdicts != _EXCLUDED
        reasons = {"overflow": beyond, "excluded": excluded, "idle": idle}
        series = self._series(view, columns, reasons, bare)
        own, tagged = view.own, ~view.own
        return replace(
            joined,
            shown=self._overflow.columns(columns, view, shown, folded, bare, at),
            joined=columns if bare.any() or not shown.all() else None,
            folds=Folds(
                overflow=_rows(view, beyond & own),
                excluded=_rows(view, excluded),
                idle=_rows(view, idle),
                series_dropped={reason: int(dropped.sum()) for reason, dropped in series.items()},
                crowded=_crowded(view, candidates & own, shown),
                max_entities=self._config.max_entities,
            ),
            callbacks=replace(
                joined.callbacks,
                folded=_rows(view, beyond & tagged),
                crowded=_crowded(view, candidates & tagged, shown),
            ),
        )

    def _shows_all(self, layout: Layout, at: float) -> bool:
        """Whether it is plain, without a look at each identity, that all are shown in full."""
        if not self._only_capped or self._places.contested.any():
            return False
        most = self._config.max_entities
        last, fitted = self._fit
        if layout is not last:
            rows = layout.rows_in(last) < 0 if fitted else slice(None)
            fresh = layout.entities[rows]
            fits = not any(OVERFLOW in name_of(entity) for entity in fresh)
            if fits and len(layout) > most:
                pools = self._identities.of(layout, at).pools
                fits = bool((np.bincount(pools) <= most).all())
            self._fit = layout, fits
        return self._fit[1]

    def _verdicts(self, view: Grouped) -> NDArray[np.int8]:
        """By identity: one of the verdicts above; each name is judged once while it is there."""
        known, names = self._identities.known, self._identities.names
        verdicts = known["verdict"]
        for number in view.numbers[verdicts[view.numbers] == 0]:
            own = known["pool"][number] < len(TYPES)
            allowed = not own or self.allows(*names[number])
            verdicts[number] = _ALLOWED if allowed else _EXCLUDED
            if OVERFLOW in names[number]:
                verdicts[number] = _RESERVED
        verdicts_of_view: NDArray[np.int8] = verdicts[view.numbers]
        return verdicts_of_view

    def _idle(self, view: Grouped, columns: Columns, pressure: Pressure, allowed: Mask, at: float) -> Mask:
        """
        By identity: whether no node saw usage or a throttle for the configured time.

        One that is new, or was away for long, counts as moving.
        """
        idle = np.zeros(len(view.numbers), np.bool_)
        after_seconds = self._config.idle_after_seconds
        if after_seconds is None:
            return idle
        known = self._identities.known
        used = ~np.isnan(columns.usage) & (columns.usage != 0)
        judged = allowed & view.own
        numbers = view.numbers[judged]
        judged_at, moved_at = known["judged_at"][numbers], known["moved_at"][numbers]
        moves = view.any(used | pressure.throttled)[judged] | (moved_at > at)
        moves |= (judged_at != self._idle_at) & ~(abs(at - judged_at) <= AWAY_SECONDS)
        known["moved_at"][numbers[moves]] = at
        known["judged_at"][numbers] = self._idle_at = at
        idle[judged] = ~moves & (at - moved_at >= after_seconds)
        return idle

    def _near(self, view: Grouped, pressure: Pressure, shown: Mask, at: float) -> Mask:
        """By identity: whether it was throttled, or used so much of its limit, in the last five minutes, which deserves details."""
        above = self._config.detail_above
        if above is None:
            return shown
        known = self._identities.known
        near = view.any(pressure.throttled | (pressure.used > above))
        known["near_at"][view.numbers[near & shown]] = at
        held = abs(at - known["near_at"][view.numbers]) <= HOLD_SECONDS
        return held | ~view.own

    def _series(self, view: Grouped, columns: Columns, reasons: Mapping[str, Mask], bare: Mask) -> dict[str, Ints]:
        """
        By reason, and by identity: how many series more there would be, as the exposition writes them.

        Of the maxima of sampling those are counted that have a value now.
        """
        left_out = np.logical_or.reduce([bare, *reasons.values()])
        if not left_out.any():
            return dict.fromkeys((*reasons, "detail"), left_out.astype(np.intp))
        ratios = ~np.isnan((columns.utilization, columns.burst_used))
        details = (2 if self._maxima else 1) * ratios.sum(axis=0)
        details += columns.causes > 0
        details += np.isfinite(columns.reported_utilization)
        others = np.zeros(len(columns), np.intp)
        for name in NAMES:
            column = getattr(columns, name)
            if name != "reported_utilization" and column is not columns.layout.absent:
                others += ~np.isnan(column)
        of_details = view.sum(details) + view.ruled
        of_all = of_details + view.sum(others) + view.of_limit
        series = {reason: np.where(out, of_all, 0) for reason, out in reasons.items()}
        return series | {"detail": np.where(bare, of_details, 0)}


def _allows(include: Iterable[str], exclude: Iterable[str]) -> Callable[[str], bool]:
    """Whether a part of a name is shown under these patterns. Raises ``ValueError`` for a wrong one."""
    included, excluded = [*map(matcher, include)], [*map(matcher, exclude)]

    def allows(part: str) -> bool:
        if included and not any(matches(part) for matches in included):
            return False
        return not any(matches(part) for matches in excluded)

    return allows


def _rows(view: Grouped, chosen: Mask) -> int:
    """How many entities these identities are."""
    return int(chosen[view.of_row].sum())


def _crowded(view: Grouped, candidates: Mask, shown: Mask) -> dict[QuotaType, int]:
    """How many identities there are, by quota type, where not all of them are shown."""
    counts = np.bincount(view.pools[candidates] % len(TYPES), minlength=len(TYPES))
    left = np.bincount(view.pools[candidates & ~shown] % len(TYPES))
    return {TYPES[kind]: int(counts[kind]) for kind in np.flatnonzero(left)}
