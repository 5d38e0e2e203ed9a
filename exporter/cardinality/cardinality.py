"""The entities of a snapshot that are shown one by one, and those that stand for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog import OVERFLOW
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas.patterns import matcher

from ..config import CardinalityConfig, Excluded
from ..names import real_name
from ..snapshot import TYPES, Columns, Folds, Layout, Snapshot
from ..snapshot.columns import NAMES
from .identity import AWAY_SECONDS, HOLD_SECONDS, POOLS, Grouped, Identities, Ints, Mask, name_of
from .overflow import Overflow
from .places import Places, Pressure

_ALLOWED: Final = 1
_EXCLUDED: Final = 2
_RESERVED: Final = 3
"""Verdict: the name is that of the fold."""
_UNKNOWN: Final = 4
"""Verdict: the name is a long one that is not remembered, so no pattern can be matched with it."""
_OF_ALLOWED: Final = {True: _ALLOWED, False: _EXCLUDED, None: _UNKNOWN}


class Cardinality:
    """
    Keeps the series of successive snapshots in bounds.

    In this order: names that are excluded, identities that have been idle for long, the longest names where all
    have too many bytes, identities beyond the cap, details of those far from their limit. What is excluded or beyond
    the cap is folded into one entity for each node and quota type. The numbers of what is shown are not touched. Only
    the cap concerns entities of custom quota callbacks: their tags are no users and client-ids, and their limits are
    not known. ``maxima``: there is sampling, and its maxima are series, too.
    """

    def __init__(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        self._identities = Identities()
        self._overflow = Overflow()
        self._idle_at = np.nan
        """Time when idleness was judged last."""
        self._config = config
        self._set_cap(config.max_entities)
        self.configure(config, maxima=maxima)

    def configure(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        """Apply other bounds from the next snapshot on; decisions under a bound that stays the same are kept."""
        previous, self._config, self._maxima = self._config, config, maxima
        users = config.include_users, config.exclude_users
        client_ids = config.include_client_ids, config.exclude_client_ids
        self._allows = _allows(*users), _allows(*client_ids)
        self._only_capped = not (
            any((*users, *client_ids)) or config.idle_after_seconds is not None or config.detail_above is not None
        )
        records = self._identities.known
        records["verdict"] = 0
        if config.max_entities != previous.max_entities or config.max_name_bytes != previous.max_name_bytes:
            self._set_cap(config.max_entities)
        if config.idle_after_seconds != previous.idle_after_seconds:
            records["judged_at"] = np.nan
        if config.detail_above != previous.detail_above:
            records["near_at"] = np.nan

    def _set_cap(self, max_entities: int) -> None:
        self._places = Places(self._identities, max_entities)
        self._fit: tuple[Layout, bool] = (Layout(()), True)
        """The last layout, and whether each of its identities has a place in any case."""
        self._all: tuple[Layout, float] | None = None
        """The last layout that was shown as a whole, and its time; None if it was not."""

    def allows(self, user: str, client_id: str) -> bool | None:
        """
        Return whether an entity of these names may be shown; an absent name is no reason to exclude it.

        Return None where that is unknown.
        """
        parts = zip(self._allows, (user, client_id), strict=True)
        allowed = [allows(part) for allows, part in parts if part]
        return False if False in allowed else None if None in allowed else True

    def apply(self, joined: Snapshot) -> Snapshot:
        """Return the snapshot as it is shown; to be called once for each, in their order."""
        columns, now_seconds = joined.columns, joined.steady_at
        if self._shows_all(columns.layout, now_seconds):
            self._all = columns.layout, now_seconds
            bounds = Folds(max_entities=self._config.max_entities, max_name_bytes=self._config.max_name_bytes)
            return replace(joined, folds=bounds)
        if self._all is not None:
            self._places.give_to_all(*self._all)
            self._all = None
        view = self._identities.of(columns.layout, now_seconds)
        pressure = Pressure(view, columns, joined.thresholds.near_limit)
        verdicts = self._verdicts(view)
        allowed = verdicts == _ALLOWED
        idle = allowed & self._idle(view, columns, pressure, allowed, now_seconds)
        active = allowed & ~idle
        candidates = active & ~self._long(view, active)
        nodes = frozenset(node.broker for node in joined.nodes)
        exposed = self._places.chosen(view, candidates, pressure, nodes, now_seconds)
        bare = exposed & ~self._near(view, pressure, exposed, now_seconds)
        excluded = view.own & ~allowed
        folded_by_cap = ~(exposed | idle | excluded)
        folded = folded_by_cap | excluded
        if self._config.excluded is Excluded.DROP:
            folded &= verdicts != _EXCLUDED
        reasons = {"overflow": folded_by_cap, "excluded": excluded, "idle": idle}
        series = self._series(view, columns, reasons, bare)
        is_own, tagged = view.own, ~view.own
        return replace(
            joined,
            columns=self._overflow.columns(columns, view, exposed, folded, bare, now_seconds),
            joined=columns if bare.any() or not exposed.all() else None,
            folds=Folds(
                overflow=_rows(view, folded_by_cap & is_own),
                excluded=_rows(view, excluded),
                unmatched=int((verdicts == _UNKNOWN).sum()),
                idle=_rows(view, idle),
                series_dropped={reason: int(dropped.sum()) for reason, dropped in series.items()},
                crowded=_crowded(view, candidates & is_own, exposed),
                max_entities=self._config.max_entities,
                long=_crowded(view, active & ~candidates, np.zeros_like(active)),
                max_name_bytes=self._config.max_name_bytes,
            ),
            callbacks=replace(
                joined.callbacks,
                folded=_rows(view, folded_by_cap & tagged),
                crowded=_crowded(view, candidates & tagged, exposed),
            ),
        )

    def _shows_all(self, layout: Layout, now_seconds: float) -> bool:
        """Return whether it is certain, without a look at each identity, that all are shown in full."""
        if not self._only_capped or self._places.contested.any():
            return False
        max_entities = self._config.max_entities
        last_layout, fitted = self._fit
        if layout is not last_layout:
            rows = layout.rows_in(last_layout) < 0 if fitted else slice(None)
            fresh = layout.entities[rows]
            fits = not any(OVERFLOW in name_of(entity) for entity in fresh)
            if fits and (len(layout) > max_entities or self._may_be_long(layout)):
                view = self._identities.of(layout, now_seconds)
                fits = bool((np.bincount(view.pools) <= max_entities).all())
                fits = fits and not self._long(view, np.ones(len(view.numbers), np.bool_)).any()
            self._fit = layout, fits
        return self._fit[1]

    def _may_be_long(self, layout: Layout) -> bool:
        """Return whether names may have too many bytes; those of an identity count once for each of its nodes here."""
        by_kind = np.bincount(
            layout.types + len(TYPES) * (np.arange(len(layout)) >= layout.own.stop), layout.name_bytes
        )
        return bool((by_kind > self._config.max_name_bytes).any())

    def _long(self, view: Grouped, active: Mask) -> Mask:
        """
        Return for each identity whether it is active and folded because the names in its pool have too many bytes.

        The longest names are folded first, and of equally long names the last. So only the present names decide,
        nothing flutters, and names that somebody makes long on purpose displace no ordinary name.
        """
        long = np.zeros(len(view.numbers), np.bool_)
        lengths = view.greatest(view.layout.name_bytes.astype(np.float64))
        totals = np.bincount(view.pools[active], lengths[active], POOLS)
        for pool in np.flatnonzero(totals > self._config.max_name_bytes):
            inside = np.flatnonzero(active & (view.pools == pool))
            shortest_first = inside[np.argsort(lengths[inside], kind="stable")]
            fitting = np.cumsum(lengths[shortest_first]) <= self._config.max_name_bytes
            long[shortest_first[~fitting]] = True
        return long

    def _verdicts(self, view: Grouped) -> NDArray[np.int8]:
        """Return one of the verdicts above by identity; each name is judged once while it is there."""
        records, names = self._identities.known, self._identities.names
        verdicts = records["verdict"]
        for number in view.numbers[verdicts[view.numbers] == 0]:
            is_own = records["pool"][number] < len(TYPES)
            allowed = not is_own or self.allows(*names[number])
            verdicts[number] = _OF_ALLOWED[allowed]
            if OVERFLOW in names[number]:
                verdicts[number] = _RESERVED
        verdicts_of_view: NDArray[np.int8] = verdicts[view.numbers]
        return verdicts_of_view

    def _idle(self, view: Grouped, columns: Columns, pressure: Pressure, allowed: Mask, now_seconds: float) -> Mask:
        """
        Return by identity whether no node saw usage or a throttle for the configured time.

        An identity that is new, or was away for long, counts as used.
        """
        idle = np.zeros(len(view.numbers), np.bool_)
        after_seconds = self._config.idle_after_seconds
        if after_seconds is None:
            return idle
        records = self._identities.known
        used = ~np.isnan(columns.usage) & (columns.usage != 0)
        judged = allowed & view.own
        numbers = view.numbers[judged]
        judged_at, moved_at = records["judged_at"][numbers], records["moved_at"][numbers]
        moves = view.any(used | pressure.throttled)[judged] | (moved_at > now_seconds)
        moves |= (judged_at != self._idle_at) & ~(abs(now_seconds - judged_at) <= AWAY_SECONDS)
        records["moved_at"][numbers[moves]] = now_seconds
        records["judged_at"][numbers] = self._idle_at = now_seconds
        idle[judged] = ~moves & (now_seconds - moved_at >= after_seconds)
        return idle

    def _near(self, view: Grouped, pressure: Pressure, exposed: Mask, now_seconds: float) -> Mask:
        """
        Return for each identity whether its details are shown.

        They are if it was throttled, or came near its limit, in the last five minutes.
        """
        least_used = self._config.detail_above
        if least_used is None:
            return exposed
        records = self._identities.known
        near = view.any(pressure.throttled | (pressure.used > least_used))
        records["near_at"][view.numbers[near & exposed]] = now_seconds
        was_near = abs(now_seconds - records["near_at"][view.numbers]) <= HOLD_SECONDS
        return was_near | ~view.own

    def _series(self, view: Grouped, columns: Columns, reasons: Mapping[str, Mask], bare: Mask) -> dict[str, Ints]:
        """
        Return the number of further series by reason and identity, as the exposition would write them.

        Maxima of sampling are counted if they have a value now.
        """
        left_out = np.logical_or.reduce([bare, *reasons.values()])
        if not left_out.any():
            return dict.fromkeys((*reasons, "detail"), left_out.astype(np.intp))
        ratios = ~np.isnan((columns.utilization, columns.burst_used))
        details = (2 if self._maxima else 1) * ratios.sum(axis=0)
        details += columns.causes > 0
        details += np.isfinite(columns.reported_utilization)
        counts = np.zeros(len(columns), np.intp)
        for name in NAMES:
            column = getattr(columns, name)
            if name != "reported_utilization" and column is not columns.layout.absent:
                counts += ~np.isnan(column)
        of_details = view.sum(details) + view.ruled
        of_all = of_details + view.sum(counts) + view.of_limit
        series = {reason: np.where(out, of_all, 0) for reason, out in reasons.items()}
        return series | {"detail": np.where(bare, of_details, 0)}


def _allows(include: Iterable[str], exclude: Iterable[str]) -> Callable[[str], bool | None]:
    """
    Return whether patterns allow a user or client-id to be shown; None where that is unknown.

    Raises ``ValueError`` for a pattern that is not valid.
    """
    included, excluded = [*map(matcher, include)], [*map(matcher, exclude)]

    def allows(part: str) -> bool | None:
        if not included and not excluded:
            return True
        name = real_name(part)
        if name is None:
            return None
        if included and not any(matches(name) for matches in included):
            return False
        return not any(matches(name) for matches in excluded)

    return allows


def _rows(view: Grouped, chosen: Mask) -> int:
    """Return the number of rows that these identities have."""
    return int(chosen[view.of_row].sum())


def _crowded(view: Grouped, candidates: Mask, exposed: Mask) -> dict[QuotaType, int]:
    """Return the number of identities, by quota type, where not all of them are shown."""
    counts = np.bincount(view.pools[candidates] % len(TYPES), minlength=len(TYPES))
    hidden = np.bincount(view.pools[candidates & ~exposed] % len(TYPES))
    return {TYPES[kind]: int(counts[kind]) for kind in np.flatnonzero(hidden)}
