"""Chooses the entities of a snapshot that are shown one by one, and folds the others."""

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
"""Verdict on a name that may be shown."""
_EXCLUDED: Final = 2
"""Verdict on a name that the configuration excludes."""
_RESERVED: Final = 3
"""Verdict on the name of the overflow entity."""
_UNKNOWN: Final = 4
"""Verdict on a long name that is not remembered, so that no pattern can be matched with it."""
_VERDICT_OF_ALLOWED: Final = {True: _ALLOWED, False: _EXCLUDED, None: _UNKNOWN}


class Cardinality:
    """
    Keeps the series of successive snapshots in bounds.

    It removes, in this order:

    1. identities with an excluded name;
    2. identities that have been idle for long;
    3. the identities with the longest names, while all names together have too many bytes;
    4. identities beyond the cap;
    5. the details of identities far from their limit.

    Identities that are excluded, have too long a name or are beyond the cap are folded into one overflow entity for
    each node and quota type. Only the cap concerns entities of custom quota callbacks, since their tags are no users
    and client-ids, and their limits are unknown.

    Args:
        config: The bounds.
        maxima: Whether the exporter samples, so that it also has series of maxima.

    """

    def __init__(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        self._identities = Identities()
        self._overflow = Overflow()
        self._idle_at = np.nan
        """Time of the last snapshot for which idleness was judged."""
        self._config = config
        self._set_cap(config.max_entities)
        self.configure(config, maxima=maxima)

    def configure(self, config: CardinalityConfig, *, maxima: bool = False) -> None:
        """Use other bounds from the next snapshot on, and keep the decisions under bounds that stay the same."""
        previous, self._config, self._maxima = self._config, config, maxima
        users = config.include_users, config.exclude_users
        client_ids = config.include_client_ids, config.exclude_client_ids
        self._allows = _allows(*users), _allows(*client_ids)
        has_patterns = any((*users, *client_ids))
        self._has_only_caps = not has_patterns and config.idle_after_seconds is None and config.detail_above is None
        records = self._identities.records
        records["verdict"] = 0
        if config.max_entities != previous.max_entities or config.max_name_bytes != previous.max_name_bytes:
            self._set_cap(config.max_entities)
        if config.idle_after_seconds != previous.idle_after_seconds:
            records["judged_at"] = np.nan
        if config.detail_above != previous.detail_above:
            records["near_at"] = np.nan

    def _set_cap(self, max_entities: int) -> None:
        """Use another cap, and forget which identities have a place."""
        self._places = Places(self._identities, max_entities)
        self._last_fit: tuple[Layout, bool] = (Layout(()), True)
        """The last layout, and whether all its identities are within the caps."""
        self._last_whole: tuple[Layout, float] | None = None
        """Layout and time of the last snapshot if it was shown as a whole, else None."""

    def allows(self, user: str, client_id: str) -> bool | None:
        """
        Return whether an entity of a user and a client-id may be shown; None if that is unknown.

        An absent name is no reason to exclude an entity.
        """
        allows_user, allows_client_id = self._allows
        user_is_allowed = allows_user(user) if user else True
        client_id_is_allowed = allows_client_id(client_id) if client_id else True
        if user_is_allowed is False or client_id_is_allowed is False:
            return False
        if user_is_allowed is None or client_id_is_allowed is None:
            return None
        return True

    def apply(self, joined: Snapshot) -> Snapshot:
        """Return a snapshot within the bounds. Call it once for each snapshot, in their order."""
        columns, now_seconds = joined.columns, joined.steady_at
        if self._shows_all(columns.layout, now_seconds):
            self._last_whole = columns.layout, now_seconds
            bounds = Folds(max_entities=self._config.max_entities, max_name_bytes=self._config.max_name_bytes)
            return replace(joined, folds=bounds)
        if self._last_whole is not None:
            self._places.give_to_all(*self._last_whole)
            self._last_whole = None
        view = self._identities.of(columns.layout, now_seconds)
        pressure = Pressure(view, columns, joined.thresholds.near_limit)
        verdicts = self._verdicts(view)
        allowed = verdicts == _ALLOWED
        idle = self._idle(view, columns, pressure, allowed, now_seconds)
        active = allowed & ~idle
        candidates = active & ~self._long(view, active)
        nodes = frozenset(node.broker for node in joined.nodes)
        exposed = self._places.assign(view, candidates, pressure, nodes, now_seconds)
        bare = exposed & ~self._detailed(view, pressure, exposed, now_seconds)
        excluded = view.own & ~allowed
        folded_by_cap = ~(exposed | idle | excluded)
        folded = folded_by_cap | excluded
        if self._config.excluded is Excluded.DROP:
            folded &= verdicts != _EXCLUDED
        reasons = {"overflow": folded_by_cap, "excluded": excluded, "idle": idle}
        dropped_series = self._dropped_series(view, columns, reasons, bare)
        is_own, tagged = view.own, ~view.own
        return replace(
            joined,
            columns=self._overflow.fold(columns, view, exposed, folded, bare, now_seconds),
            joined=columns if bare.any() or not exposed.all() else None,
            folds=Folds(
                overflow=_rows(view, folded_by_cap & is_own),
                excluded=_rows(view, excluded),
                unmatched=int((verdicts == _UNKNOWN).sum()),
                idle=_rows(view, idle),
                series_dropped={reason: int(counts.sum()) for reason, counts in dropped_series.items()},
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
        """Return whether all identities are shown in full; True spares a look at each of them."""
        if not self._has_only_caps or self._places.contested.any():
            return False
        last_layout, fits = self._last_fit
        if layout is not last_layout:
            # if no name of the last layout was reserved, only new ones can be
            rows_to_check = layout.rows_in(last_layout) < 0 if fits else slice(None)
            has_reserved_name = any(OVERFLOW in name_of(entity) for entity in layout.entities[rows_to_check])
            fits = not has_reserved_name and self._is_within_caps(layout, now_seconds)
            self._last_fit = layout, fits
        return fits

    def _is_within_caps(self, layout: Layout, now_seconds: float) -> bool:
        """Return whether no pool has more identities, or more bytes of names, than the configured maximum."""
        max_entities = self._config.max_entities
        if len(layout) <= max_entities and not self._may_have_long_names(layout):
            return True
        view = self._identities.of(layout, now_seconds)
        if (np.bincount(view.pools) > max_entities).any():
            return False
        return not self._long(view, np.ones(len(view.numbers), np.bool_)).any()

    def _may_have_long_names(self, layout: Layout) -> bool:
        """Return whether names may have too many bytes, by an upper bound: a name counts once for each of its nodes."""
        is_tagged = np.arange(len(layout)) >= layout.own.stop
        bytes_by_pool = np.bincount(layout.types + len(TYPES) * is_tagged, layout.name_bytes)
        return bool((bytes_by_pool > self._config.max_name_bytes).any())

    def _long(self, view: Grouped, active: Mask) -> Mask:
        """
        Return the mask of the active identities to fold because the names in their pool have too many bytes.

        The longest names are folded first, and of equally long names the last. So the choice depends on the present
        names alone and is stable, and a client with a name that is long on purpose displaces no ordinary name.
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
        """Return the verdict on the name of each identity; a name is judged once, when its identity is new."""
        records, names = self._identities.records, self._identities.names
        verdict_of_number = records["verdict"]  # a view, so that verdicts are kept in the records
        for number in view.numbers[verdict_of_number[view.numbers] == 0]:
            is_own = records["pool"][number] < len(TYPES)
            if OVERFLOW in names[number]:
                verdict_of_number[number] = _RESERVED
            elif is_own:
                verdict_of_number[number] = _VERDICT_OF_ALLOWED[self.allows(*names[number])]
            else:
                verdict_of_number[number] = _ALLOWED
        verdicts: NDArray[np.int8] = verdict_of_number[view.numbers]
        return verdicts

    def _idle(self, view: Grouped, columns: Columns, pressure: Pressure, allowed: Mask, now_seconds: float) -> Mask:
        """
        Return the mask of the allowed identities without usage or throttle on any node for the configured time.

        An identity that is new, or was away for long, counts as used now.
        """
        idle = np.zeros(len(view.numbers), np.bool_)
        after_seconds = self._config.idle_after_seconds
        if after_seconds is None:
            return idle
        records = self._identities.records
        has_usage = ~np.isnan(columns.usage) & (columns.usage != 0)
        judged = allowed & view.own
        numbers = view.numbers[judged]
        judged_at, used_at = records["judged_at"][numbers], records["used_at"][numbers]
        # a last use after now, which a clock that went back leaves, counts as a use now
        used = view.any(has_usage | pressure.throttled)[judged] | (used_at > now_seconds)
        # identities that the last snapshot lacked and that were away for long; a new identity has NaN as its time
        used |= (judged_at != self._idle_at) & ~(abs(now_seconds - judged_at) <= AWAY_SECONDS)
        records["used_at"][numbers[used]] = now_seconds
        records["judged_at"][numbers] = self._idle_at = now_seconds
        idle[judged] = ~used & (now_seconds - used_at >= after_seconds)
        return idle

    def _detailed(self, view: Grouped, pressure: Pressure, exposed: Mask, now_seconds: float) -> Mask:
        """
        Return the mask of the identities to show with details.

        They were throttled, or came near their limit, in the last five minutes. All exposed identities have details
        if the configuration does not bound them.
        """
        least_used = self._config.detail_above
        if least_used is None:
            return exposed
        records = self._identities.records
        near = view.any(pressure.throttled | (pressure.used > least_used))
        records["near_at"][view.numbers[near & exposed]] = now_seconds
        was_near = abs(now_seconds - records["near_at"][view.numbers]) <= HOLD_SECONDS
        return was_near | ~view.own

    def _dropped_series(
        self, view: Grouped, columns: Columns, reasons: Mapping[str, Mask], bare: Mask
    ) -> dict[str, Ints]:
        """
        Return the numbers of series that the exposition does not write, by reason and then by identity.

        Maxima of sampling are counted if they have a value now.

        Args:
            view: The identities.
            columns: The numbers of all joined rows.
            reasons: Masks of the identities that are not shown, by the reason.
            bare: Mask of the identities that are shown without details.

        """
        any_dropped = np.logical_or.reduce([bare, *reasons.values()])
        if not any_dropped.any():
            return dict.fromkeys((*reasons, "detail"), any_dropped.astype(np.intp))
        has_ratio = ~np.isnan((columns.utilization, columns.burst_used))
        series_of_ratio = 2 if self._maxima else 1  # the present value, and the maximum
        details_of_row = series_of_ratio * has_ratio.sum(axis=0)
        details_of_row += columns.causes > 0
        details_of_row += np.isfinite(columns.reported_utilization)
        values_of_row = np.zeros(len(columns), np.intp)
        for name in NAMES:
            column = getattr(columns, name)
            # the reported utilization is a detail, which was counted above
            if name != "reported_utilization" and column is not columns.layout.absent:
                values_of_row += ~np.isnan(column)
        details = view.sum(details_of_row) + view.ruled
        all_series = details + view.sum(values_of_row) + view.limit_series
        dropped = {reason: np.where(mask, all_series, 0) for reason, mask in reasons.items()}
        return dropped | {"detail": np.where(bare, details, 0)}


def _allows(include: Iterable[str], exclude: Iterable[str]) -> Callable[[str], bool | None]:
    """
    Return a function from a user or client-id to whether the patterns allow it; None if that is unknown.

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


def _rows(view: Grouped, identities: Mask) -> int:
    """Return the number of rows of the marked identities."""
    return int(identities[view.identity_of_row].sum())


def _crowded(view: Grouped, candidates: Mask, exposed: Mask) -> dict[QuotaType, int]:
    """Return the number of candidates by quota type, of the types some of whose candidates are not exposed."""
    type_of_identity = view.pools % len(TYPES)
    counts = np.bincount(type_of_identity[candidates], minlength=len(TYPES))
    hidden_counts = np.bincount(type_of_identity[candidates & ~exposed])
    return {TYPES[kind]: int(counts[kind]) for kind in np.flatnonzero(hidden_counts)}
