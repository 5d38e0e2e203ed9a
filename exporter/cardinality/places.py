"""The identities that are shown when there are more of them than places."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import Any, Final

import numpy as np

from ..snapshot import Columns, Floats, Layout
from .identity import HOLD_SECONDS, POOLS, Grouped, Identities, Ints, Mask

QUIET: Final = 0
"""Rank. Weight: the largest usage of one node."""
NEAR: Final = 1
"""Rank: close to the limit. Weight: utilization, or the part of the burst that is used."""
THROTTLED: Final = 2
"""Rank: throttled or in token debt. Weight: the longest throttle, in seconds."""

_NEAR_RATIO: Final = 0.5
"""Utilization from which on an entity has rank `NEAR`: well before the alert on it, unless that comes earlier."""
_CLEARLY_MORE: Final = 2.0


class Pressure:
    """The importance of entities and identities to a reader who looks at quotas."""

    def __init__(self, view: Grouped, columns: Columns, near_limit: float) -> None:
        delayed = np.fmax(columns.throttle_time, 0.0)
        self.throttled: Mask = (delayed > 0) | (columns.tokens < 0)
        """For each row whether it was throttled lately, or mutations are refused now."""
        self.used = np.fmax(columns.pressure, 0.0)
        """For each row the used part of the limit or of the burst, whichever is larger; 0 where there is none."""
        near = self.used >= min(_NEAR_RATIO, near_limit)
        rank = np.where(self.throttled, THROTTLED, np.where(near, NEAR, QUIET))
        quiet = np.fmax(columns.usage, 0.0)
        weight = np.where(self.throttled, delayed, np.where(near, self.used, quiet))
        self.rank = view.greatest(rank.astype("f8"))
        """Rank of each identity: that of the node where it is highest."""
        counting = np.where(rank == self.rank[view.of_row], weight, -np.inf)
        self.weight = view.greatest(counting)
        """Weight of each identity, which orders identities of one rank."""


class Places:
    """
    Decides which identities are shown, from one snapshot to the next: each pool has ``max_places`` places.

    An identity that is shown stays so unless another has a higher rank (throttled, near its limit, neither)
    than it had in the last five minutes, or, after five minutes, more than twice its weight. It also keeps
    its place for five minutes while its node is down, so that a short outage changes nothing.
    The decision does not depend on the order of the entities. Which identity has a place, and since when, is in
    ``identities``.
    """

    def __init__(self, identities: Identities, max_places: int) -> None:
        self._identities = identities
        self._most = max_places
        self.contested = np.zeros(POOLS, np.bool_)
        """
        For each pool whether it lately had more identities than places, so that it matters which identity has one.
        """
        self._on: dict[str, Ints] = {}
        """The numbers of identities with a contested place, by the nodes where they were last seen."""
        identities.known["placed"] = False

    def chosen(
        self, view: Grouped, candidates: Mask, pressure: Pressure, nodes: AbstractSet[str], now_seconds: float
    ) -> Mask:
        """
        Return for each identity whether it is a candidate that has a place at ``now_seconds`` (Unix time).

        The ``nodes`` are those that have answered.
        """
        records = self._identities.known
        placed, pools = records["placed"], records["pool"]
        is_present, silent = np.zeros((2, len(records)), np.bool_)
        is_present[view.numbers[candidates]] = True
        for node in self._on.keys() - nodes:
            silent[self._on[node]] = True
        away = placed & ~is_present
        returning = away & silent & ~_past(records["seen_at"], now_seconds)
        placed[away & ~returning] = False
        counts = np.bincount(view.pools[candidates], minlength=POOLS)
        # an identity that comes back finds its place even if all others fit meanwhile
        awaited = np.bincount(pools[returning], minlength=POOLS) > 0
        self.contested = (counts > self._most) | awaited
        is_contested = self.contested[view.pools]
        self._place(view.numbers[candidates & ~is_contested], now_seconds)
        self._observe(view, np.flatnonzero(candidates & is_contested), pressure, now_seconds)
        for pool in np.flatnonzero(self.contested):
            inside = candidates & (view.pools == pool)
            outside = np.flatnonzero(inside & ~placed[view.numbers])
            holders = np.flatnonzero(placed & (pools == pool))
            self._admit(view, outside, holders, pressure, now_seconds)
        holding = candidates & placed[view.numbers]
        self._note_nodes(view, holding & is_contested, nodes)
        return np.where(counts[view.pools] > self._most, holding, candidates)

    def give_to_all(self, layout: Layout, now_seconds: float) -> None:
        """
        Give places to all identities of a layout that was shown as a whole at ``now_seconds`` (Unix time).

        To be called before places are contested.
        """
        self._identities.known["placed"] = False
        self._place(self._identities.of(layout, now_seconds).numbers, now_seconds)

    def _place(self, numbers: Ints, now_seconds: float, rank: object = QUIET, weight: object = 0.0) -> None:
        records: Any = self._identities.known
        records["placed"][numbers] = True
        for moment in ("since", "seen_at", "pressed_at"):
            records[moment][numbers] = now_seconds
        records["rank"][numbers] = rank
        records["weight"][numbers] = weight

    def _observe(self, view: Grouped, present: Ints, pressure: Pressure, now_seconds: float) -> None:
        """Note the highest rank of the last minutes, and the weight that it came with."""
        records = self._identities.known
        present = present[records["placed"][view.numbers[present]]]
        numbers = view.numbers[present]
        records["seen_at"][numbers] = now_seconds
        higher = pressure.rank[present] >= records["rank"][numbers]
        higher |= _past(records["pressed_at"][numbers], now_seconds)
        present, numbers = present[higher], numbers[higher]
        records["rank"][numbers] = pressure.rank[present]
        records["weight"][numbers] = pressure.weight[present]
        records["pressed_at"][numbers] = now_seconds

    @np.errstate(over="ignore")  # an agent may report any float; nothing is more than infinity
    def _admit(self, view: Grouped, outside: Ints, holders: Ints, pressure: Pressure, now_seconds: float) -> None:
        """Give free places to the strongest outside, and let the others compete with the holders that they may move."""
        records, rank, weight = self._identities.known, pressure.rank, pressure.weight
        room = self._most - len(holders)
        if room:
            # of equal identities, the last by name
            weakest_first = np.lexsort((outside, weight[outside], rank[outside]))
            split = [max(0, len(outside) - room)]
            outside, entering = np.split(outside[weakest_first], split)
            numbers = view.numbers[entering]
            self._place(numbers, now_seconds, rank[entering], weight[entering])
            holders = np.concatenate([holders, numbers])
        if not len(outside):
            return
        held_rank, held_weight = records["rank"][holders], records["weight"][holders]
        open_since = _past(records["since"][holders], now_seconds)
        lightest = np.full(THROTTLED + 1, np.inf)
        np.minimum.at(lightest, held_rank[open_since], held_weight[open_since])
        is_heavier = weight[outside] > _CLEARLY_MORE * lightest[rank[outside].astype(np.intp)]
        able = outside[(rank[outside] > held_rank.min()) | is_heavier]
        if not len(able):
            return
        able = able[np.lexsort((able, weight[able], rank[able]))][::-1]
        is_heavier = weight[able[0]] > _CLEARLY_MORE * held_weight
        yielding = (held_rank < rank[able[0]]) | ((held_rank == rank[able[0]]) & open_since & is_heavier)
        weakest_first = np.lexsort((held_weight[yielding], held_rank[yielding]))
        self._compete(view, able, holders[yielding][weakest_first], pressure, now_seconds)

    def _compete(self, view: Grouped, able: Ints, weakest: Ints, pressure: Pressure, now_seconds: float) -> None:
        """Let the challengers ``able``, the strongest first, take the places of the ``weakest`` as far as they may."""
        records, names = self._identities.known, self._identities.names
        rank, weight, since = records["rank"], records["weight"], records["since"]
        challengers = iter(able)
        challenger = next(challengers)
        equals = groupby(weakest, lambda holder: (rank[holder], weight[holder]))
        for (held_rank, held_weight), group in equals:
            for holder in sorted(group, key=names.__getitem__):
                challenging_rank, challenging_weight = pressure.rank[challenger], pressure.weight[challenger]
                if challenging_rank == held_rank and not _past(since[holder], now_seconds):
                    continue  # the holder does not make way yet
                if challenging_rank < held_rank or (
                    challenging_rank == held_rank and challenging_weight <= _CLEARLY_MORE * held_weight
                ):
                    return
                records["placed"][holder] = False
                self._place(view.numbers[[challenger]], now_seconds, challenging_rank, challenging_weight)
                challenger = next(challengers, -1)
                if challenger < 0:
                    return

    def _note_nodes(self, view: Grouped, holding: Mask, nodes: AbstractSet[str]) -> None:
        """
        Remember the nodes where identities with a contested place were seen.

        A node that has not answered now counts as when it last did.
        """
        records = self._identities.known
        is_kept = records["placed"] & self.contested[records["pool"]]
        away = is_kept.copy()
        away[view.numbers[holding]] = False
        numbers_by_node = {
            node: numbers[(away if node in nodes else is_kept)[numbers]] for node, numbers in self._on.items()
        }
        rows = np.flatnonzero(holding[view.of_row])
        of_node = view.layout.node_numbers[rows]
        for place, node in enumerate(view.layout.nodes):
            present = view.numbers[view.of_row[rows[of_node == place]]]
            numbers_by_node[node] = np.concatenate([numbers_by_node.get(node, present[:0]), present])
        self._on = {node: numbers for node, numbers in numbers_by_node.items() if len(numbers)}


def _past(since: Floats, now_seconds: float) -> Mask:
    """Return whether a decision made at that time no longer holds."""
    return np.abs(now_seconds - since) >= HOLD_SECONDS
