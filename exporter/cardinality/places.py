"""Assigns the places of a pool that has more identities than the cap."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import Any, Final

import numpy as np

from ..snapshot import Columns, Floats, Layout
from .identity import HOLD_SECONDS, POOLS, Grouped, Identities, Ints, Mask

QUIET: Final = 0
"""Rank of an identity far from its limit. Its weight is the largest usage on a node."""
NEAR: Final = 1
"""Rank of an identity close to its limit. Its weight is the utilization, or the used part of the burst."""
THROTTLED: Final = 2
"""Rank of an identity that is throttled or in token debt. Its weight is the longest throttle, in seconds."""

_NEAR_RATIO: Final = 0.5
"""Utilization from which an entity has the rank `NEAR`, unless the alert on it has a lower threshold."""
_CLEARLY_MORE: Final = 2.0
"""Factor by which a weight must exceed another one of the same rank to take its place."""


class Pressure:
    """
    The importance of entities and identities to a reader who looks at quotas.

    Args:
        view: The identities.
        columns: The numbers of their rows.
        near_limit: Utilization at which the alert fires.

    """

    def __init__(self, view: Grouped, columns: Columns, near_limit: float) -> None:
        throttle_time = np.fmax(columns.throttle_time, 0.0)
        self.throttled: Mask = (throttle_time > 0) | (columns.tokens < 0)
        """Mask of the rows that were throttled lately, or whose mutations are refused now."""
        self.used = np.fmax(columns.pressure, 0.0)
        """The larger of utilization and used part of the burst of each row; 0 without a limit."""
        is_near = self.used >= min(_NEAR_RATIO, near_limit)
        rank_of_row = np.where(self.throttled, THROTTLED, np.where(is_near, NEAR, QUIET))
        usage = np.fmax(columns.usage, 0.0)
        weight_of_row = np.where(self.throttled, throttle_time, np.where(is_near, self.used, usage))
        self.rank = view.greatest(rank_of_row.astype("f8"))
        """The highest rank of each identity on a node."""
        has_highest_rank = rank_of_row == self.rank[view.identity_of_row]
        self.weight = view.greatest(np.where(has_highest_rank, weight_of_row, -np.inf))
        """The weight of each identity, which orders identities of the same rank."""


class Places:
    """
    Assigns ``max_places`` places of each pool to identities, from one snapshot to the next.

    An identity keeps its place unless another identity has a higher rank than it had in the last five minutes. After
    five minutes, more than twice its weight in the same rank also takes the place. While the node of an identity is
    down, its place is kept for five minutes, so that a short outage changes nothing. The order of the entities has no
    influence. The records of ``identities`` have the places.
    """

    def __init__(self, identities: Identities, max_places: int) -> None:
        self._identities = identities
        self._max_places = max_places
        self.contested = np.zeros(POOLS, np.bool_)
        """Mask of the pools that have, or lately had, more identities than places."""
        self._numbers_by_node: dict[str, Ints] = {}
        """The numbers of the identities with a contested place, by the nodes where they were last seen."""
        identities.records["placed"] = False

    def assign(
        self, view: Grouped, candidates: Mask, pressure: Pressure, nodes: AbstractSet[str], now_seconds: float
    ) -> Mask:
        """
        Assign the places, and return the mask of the candidates that have one.

        Args:
            view: The identities.
            candidates: Mask of the identities that may have a place.
            pressure: Their importance.
            nodes: The nodes that have answered.
            now_seconds: Steady time of the snapshot.

        """
        records = self._identities.records
        placed, pools = records["placed"], records["pool"]
        is_present, is_on_silent_node = np.zeros((2, len(records)), np.bool_)  # masks by number
        is_present[view.numbers[candidates]] = True
        for node in self._numbers_by_node.keys() - nodes:
            is_on_silent_node[self._numbers_by_node[node]] = True
        # while its node is down, an identity keeps its place for some minutes
        is_away = placed & ~is_present
        is_awaited = is_away & is_on_silent_node & ~_is_over(records["seen_at"], now_seconds)
        placed[is_away & ~is_awaited] = False
        counts = np.bincount(view.pools[candidates], minlength=POOLS)
        # an identity that comes back finds its place even if all others fit meanwhile
        awaits_any = np.bincount(pools[is_awaited], minlength=POOLS) > 0
        self.contested = (counts > self._max_places) | awaits_any
        is_contested = self.contested[view.pools]
        self._place(view.numbers[candidates & ~is_contested], now_seconds)
        self._observe(view, np.flatnonzero(candidates & is_contested), pressure, now_seconds)
        for pool in np.flatnonzero(self.contested):
            in_pool = candidates & (view.pools == pool)
            outside = np.flatnonzero(in_pool & ~placed[view.numbers])
            holders = np.flatnonzero(placed & (pools == pool))
            self._admit(view, outside, holders, pressure, now_seconds)
        holding = candidates & placed[view.numbers]
        self._note_nodes(view, holding & is_contested, nodes)
        # in a pool that is contested only for awaited identities, all candidates fit
        return np.where(counts[view.pools] > self._max_places, holding, candidates)

    def give_to_all(self, layout: Layout, now_seconds: float) -> None:
        """
        Give places to all identities of a layout that was shown as a whole at ``now_seconds``, a steady time.

        Call it before places are contested.
        """
        self._identities.records["placed"] = False
        self._place(self._identities.of(layout, now_seconds).numbers, now_seconds)

    def _place(self, numbers: Ints, now_seconds: float, rank: object = QUIET, weight: object = 0.0) -> None:
        """Give places to identities, by their numbers."""
        records: Any = self._identities.records
        records["placed"][numbers] = True
        for field in ("since", "seen_at", "pressed_at"):
            records[field][numbers] = now_seconds
        records["rank"][numbers] = rank
        records["weight"][numbers] = weight

    def _observe(self, view: Grouped, present: Ints, pressure: Pressure, now_seconds: float) -> None:
        """
        Record the highest rank of the last minutes and its weight, of the present identities with a place.

        A lower rank than the recorded one replaces it when that is five minutes old.
        """
        records = self._identities.records
        holders = present[records["placed"][view.numbers[present]]]
        numbers = view.numbers[holders]
        records["seen_at"][numbers] = now_seconds
        is_due = pressure.rank[holders] >= records["rank"][numbers]
        is_due |= _is_over(records["pressed_at"][numbers], now_seconds)
        due_holders, due_numbers = holders[is_due], numbers[is_due]
        records["rank"][due_numbers] = pressure.rank[due_holders]
        records["weight"][due_numbers] = pressure.weight[due_holders]
        records["pressed_at"][due_numbers] = now_seconds

    @np.errstate(over="ignore")  # an agent may report any float; nothing is more than infinity
    def _admit(self, view: Grouped, outside: Ints, holders: Ints, pressure: Pressure, now_seconds: float) -> None:
        """
        Give the free places of a pool to the strongest identities outside, and let the others challenge the holders.

        Args:
            view: The identities.
            outside: Identities of the pool without a place, as places in ``view``.
            holders: Numbers of the identities with a place.
            pressure: Importance of the identities.
            now_seconds: Steady time of the snapshot.

        """
        records, rank, weight = self._identities.records, pressure.rank, pressure.weight
        free_places = self._max_places - len(holders)
        if free_places:
            # of equal identities, the last by name is the strongest
            weakest_first = np.lexsort((outside, weight[outside], rank[outside]))
            outside, entering = np.split(outside[weakest_first], [max(0, len(outside) - free_places)])
            numbers = view.numbers[entering]
            self._place(numbers, now_seconds, rank[entering], weight[entering])
            holders = np.concatenate([holders, numbers])
        if not len(outside):
            return
        # a holder is open to challengers of its own rank once it has had its place for five minutes
        held_rank, held_weight = records["rank"][holders], records["weight"][holders]
        is_open = _is_over(records["since"][holders], now_seconds)
        lightest_by_rank = np.full(THROTTLED + 1, np.inf)
        np.minimum.at(lightest_by_rank, held_rank[is_open], held_weight[is_open])
        is_heavier = weight[outside] > _CLEARLY_MORE * lightest_by_rank[rank[outside].astype(np.intp)]
        challengers = outside[(rank[outside] > held_rank.min()) | is_heavier]
        if not len(challengers):
            return
        weakest_first = np.lexsort((challengers, weight[challengers], rank[challengers]))
        challengers = challengers[weakest_first][::-1]
        strongest = challengers[0]
        is_outweighed = weight[strongest] > _CLEARLY_MORE * held_weight
        may_yield = held_rank < rank[strongest]
        may_yield |= (held_rank == rank[strongest]) & is_open & is_outweighed
        weakest_holders_first = np.lexsort((held_weight[may_yield], held_rank[may_yield]))
        self._compete(view, challengers, holders[may_yield][weakest_holders_first], pressure, now_seconds)

    def _compete(self, view: Grouped, challengers: Ints, holders: Ints, pressure: Pressure, now_seconds: float) -> None:
        """Let challengers, the strongest first, take the places of holders, the weakest first, while they may."""
        records, names = self._identities.records, self._identities.names
        rank, weight, since = records["rank"], records["weight"], records["since"]
        remaining = iter(challengers)
        challenger = next(remaining)
        # of equal holders, the first by name yields first
        equal_holders = groupby(holders, lambda holder: (rank[holder], weight[holder]))
        for (held_rank, held_weight), group in equal_holders:
            for holder in sorted(group, key=names.__getitem__):
                challenger_rank, challenger_weight = pressure.rank[challenger], pressure.weight[challenger]
                if challenger_rank < held_rank:
                    return  # the remaining holders are stronger, the remaining challengers weaker
                if challenger_rank == held_rank:
                    if not _is_over(since[holder], now_seconds):
                        continue
                    if challenger_weight <= _CLEARLY_MORE * held_weight:
                        return
                records["placed"][holder] = False
                self._place(view.numbers[[challenger]], now_seconds, challenger_rank, challenger_weight)
                challenger = next(remaining, -1)
                if challenger < 0:
                    return

    def _note_nodes(self, view: Grouped, holding: Mask, nodes: AbstractSet[str]) -> None:
        """
        Remember the nodes on which identities with a contested place are.

        An identity that is away stays on the nodes where it was seen last. So does every identity of a node that has
        not answered.
        """
        records = self._identities.records
        has_contested_place = records["placed"] & self.contested[records["pool"]]
        is_away = has_contested_place.copy()
        is_away[view.numbers[holding]] = False
        # identities that were seen on a node before, and may be there still
        numbers_by_node = {}
        for node, numbers in self._numbers_by_node.items():
            is_kept = is_away if node in nodes else has_contested_place
            numbers_by_node[node] = numbers[is_kept[numbers]]
        # identities that are on a node now
        no_numbers = view.numbers[:0]
        rows = np.flatnonzero(holding[view.identity_of_row])
        nodes_of_rows = view.layout.node_numbers[rows]
        for node_number, node in enumerate(view.layout.nodes):
            rows_of_node = rows[nodes_of_rows == node_number]
            present = view.numbers[view.identity_of_row[rows_of_node]]
            numbers_by_node[node] = np.concatenate([numbers_by_node.get(node, no_numbers), present])
        self._numbers_by_node = {node: numbers for node, numbers in numbers_by_node.items() if len(numbers)}


def _is_over(since: Floats, now_seconds: float) -> Mask:
    """Return whether the time for which a decision is kept is over."""
    return np.abs(now_seconds - since) >= HOLD_SECONDS
