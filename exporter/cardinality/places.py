"""Which identities are shown when there are more of them than places."""

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
_CLEARLY_MORE: Final = 2.0


class Pressure:
    """How much entities and identities matter to a reader who looks at quotas."""

    def __init__(self, view: Grouped, columns: Columns) -> None:
        delayed = np.fmax(columns.throttle_time, 0.0)
        self.throttled: Mask = (delayed > 0) | (columns.tokens < 0)
        """By row: whether it was throttled lately, or mutations are refused now."""
        self.used = np.fmax(columns.used, 0.0)
        """By row: the part of the limit or of the burst that is used, the larger one; 0 where there is none."""
        near = self.used >= _NEAR_RATIO
        rank = np.where(self.throttled, THROTTLED, np.where(near, NEAR, QUIET))
        quiet = np.fmax(columns.usage, 0.0)
        weight = np.where(self.throttled, delayed, np.where(near, self.used, quiet))
        self.rank = view.greatest(rank.astype("f8"))
        """By identity: that of the node where it is highest."""
        counting = np.where(rank == self.rank[view.of_row], weight, -np.inf)
        self.weight = view.greatest(counting)
        """By identity: what orders within the rank."""


class Places:
    """
    Decides which identities are shown, from one snapshot to the next: each pool has ``most`` places.

    An identity that is shown stays so unless another has a higher rank (throttled, near its limit, neither)
    than it had in the last five minutes, or, after five minutes, more than twice its weight. It also keeps
    its place for five minutes while its node is down, so that a short outage changes nothing.
    The decision does not depend on the order of the entities. Which identity has a place, and since when, is in ``identities``.
    """

    def __init__(self, identities: Identities, most: int) -> None:
        self._identities = identities
        self._most = most
        self.contested = np.zeros(POOLS, np.bool_)
        """By pool: whether there was not a place for each a short while ago, so that it matters which identity has one."""
        self._on: dict[str, Ints] = {}
        """The numbers of those with a contested place by the nodes where they were last seen."""
        identities.known["placed"] = False

    def chosen(self, view: Grouped, candidates: Mask, pressure: Pressure, nodes: AbstractSet[str], at: float) -> Mask:
        """By identity: those of the candidates that are shown at ``at`` (Unix time in seconds), when these nodes have answered."""
        known = self._identities.known
        placed, pools = known["placed"], known["pool"]
        there, silent = np.zeros((2, len(known)), np.bool_)
        there[view.numbers[candidates]] = True
        for node in self._on.keys() - nodes:
            silent[self._on[node]] = True
        away = placed & ~there
        returning = away & silent & ~_past(known["seen_at"], at)
        placed[away & ~returning] = False
        counts = np.bincount(view.pools[candidates], minlength=POOLS)
        # one that comes back finds its place even where all others fit meanwhile
        awaited = np.bincount(pools[returning], minlength=POOLS) > 0
        self.contested = (counts > self._most) | awaited
        wanted = self.contested[view.pools]
        self._place(view.numbers[candidates & ~wanted], at)
        self._observe(view, np.flatnonzero(candidates & wanted), pressure, at)
        for pool in np.flatnonzero(self.contested):
            inside = candidates & (view.pools == pool)
            outside = np.flatnonzero(inside & ~placed[view.numbers])
            holders = np.flatnonzero(placed & (pools == pool))
            self._admit(view, outside, holders, pressure, at)
        holding = candidates & placed[view.numbers]
        self._note_nodes(view, holding & wanted, nodes)
        return np.where(counts[view.pools] > self._most, holding, candidates)

    def give_to_all(self, layout: Layout, at: float) -> None:
        """Give places to all identities of a layout that was shown as a whole at ``at`` (Unix time in seconds), before places are contested."""
        self._identities.known["placed"] = False
        self._place(self._identities.of(layout, at).numbers, at)

    def _place(self, numbers: Ints, at: float, rank: object = QUIET, weight: object = 0.0) -> None:
        known: Any = self._identities.known
        known["placed"][numbers] = True
        for moment in ("since", "seen_at", "pressed_at"):
            known[moment][numbers] = at
        known["rank"][numbers] = rank
        known["weight"][numbers] = weight

    def _observe(self, view: Grouped, there: Ints, pressure: Pressure, at: float) -> None:
        """Note the highest rank of the last minutes, and the weight that it came with."""
        known = self._identities.known
        there = there[known["placed"][view.numbers[there]]]
        numbers = view.numbers[there]
        known["seen_at"][numbers] = at
        higher = pressure.rank[there] >= known["rank"][numbers]
        higher |= _past(known["pressed_at"][numbers], at)
        there, numbers = there[higher], numbers[higher]
        known["rank"][numbers] = pressure.rank[there]
        known["weight"][numbers] = pressure.weight[there]
        known["pressed_at"][numbers] = at

    def _admit(self, view: Grouped, outside: Ints, holders: Ints, pressure: Pressure, at: float) -> None:
        """Give free places to the strongest outside, and let the others compete with the holders that they may move."""
        known, rank, weight = self._identities.known, pressure.rank, pressure.weight
        room = self._most - len(holders)
        if room:
            # of equal ones the last by name
            weakest_first = np.lexsort((outside, weight[outside], rank[outside]))
            split = [max(0, len(outside) - room)]
            outside, entering = np.split(outside[weakest_first], split)
            numbers = view.numbers[entering]
            self._place(numbers, at, rank[entering], weight[entering])
            holders = np.concatenate([holders, numbers])
        if not len(outside):
            return
        held, held_weight = known["rank"][holders], known["weight"][holders]
        open_since = _past(known["since"][holders], at)
        least = np.full(THROTTLED + 1, np.inf)
        np.minimum.at(least, held[open_since], held_weight[open_since])
        more = weight[outside] > _CLEARLY_MORE * least[rank[outside].astype(np.intp)]
        able = outside[(rank[outside] > held.min()) | more]
        if not len(able):
            return
        able = able[np.lexsort((able, weight[able], rank[able]))][::-1]
        more = weight[able[0]] > _CLEARLY_MORE * held_weight
        yielding = (held < rank[able[0]]) | ((held == rank[able[0]]) & open_since & more)
        weakest_first = np.lexsort((held_weight[yielding], held[yielding]))
        self._compete(view, able, holders[yielding][weakest_first], pressure, at)

    def _compete(self, view: Grouped, able: Ints, weakest: Ints, pressure: Pressure, at: float) -> None:
        """Let the challengers ``able``, the strongest first, take the places of the ``weakest`` as far as they may."""
        known, names = self._identities.known, self._identities.names
        rank, weight, since = known["rank"], known["weight"], known["since"]
        challengers = iter(able)
        challenger = next(challengers)
        equals = groupby(weakest, lambda each: (rank[each], weight[each]))
        for (held_rank, held_weight), group in equals:
            for holder in sorted(group, key=names.__getitem__):
                now, now_weight = pressure.rank[challenger], pressure.weight[challenger]
                if now == held_rank and not _past(since[holder], at):
                    continue  # it does not make way yet
                if now < held_rank or (now == held_rank and now_weight <= _CLEARLY_MORE * held_weight):
                    return
                known["placed"][holder] = False
                self._place(view.numbers[[challenger]], at, now, now_weight)
                challenger = next(challengers, -1)
                if challenger < 0:
                    return

    def _note_nodes(self, view: Grouped, holding: Mask, nodes: AbstractSet[str]) -> None:
        """Remember where those with a contested place were seen: on the nodes that have answered now, on the others when those last did."""
        known = self._identities.known
        kept = known["placed"] & self.contested[known["pool"]]
        away = kept.copy()
        away[view.numbers[holding]] = False
        on = {node: each[(away if node in nodes else kept)[each]] for node, each in self._on.items()}
        rows = np.flatnonzero(holding[view.of_row])
        of_node = view.layout.node_numbers[rows]
        for place, node in enumerate(view.layout.nodes):
            there = view.numbers[view.of_row[rows[of_node == place]]]
            on[node] = np.concatenate([on.get(node, there[:0]), there])
        self._on = {node: each for node, each in on.items() if len(each)}


def _past(since: Floats, at: float) -> Mask:
    """Whether what was decided then holds no more."""
    return np.abs(at - since) >= HOLD_SECONDS
