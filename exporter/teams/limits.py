"""
Adds up the limits of each team: what Kafka lets through at most, and the part that is stranded.

An entity has its limit on each broker by itself. Its traffic comes from the brokers that lead its partitions, which the
exporter does not read. What it does know are the brokers that have measured the entity: Kafka keeps that for an hour
after the last request, unless they were started since. So a limit is stranded on a broker that would show the entity
and does not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Floats, Layout, Snapshot
from ..snapshot.layout import TYPES, fixed
from ..snapshot.visibility import Visibility
from .index import KINDS, UNDECIDED_PLACE, TeamIndex

_MUTATION: Final = QuotaType.CONTROLLER_MUTATION
_Masks = NDArray[np.bool_]
_Brokers = tuple[frozenset[str], ...]
"""For each kind of entities the brokers that would show them; the last kind is a client without a name."""

_Enforcers = tuple[int | None, int, dict[QuotaType, _Brokers], frozenset[str]]
"""
The number of brokers, the number of them that surely enforce limits, the brokers that would show entities, and the
nodes that would not show those which they had before the last start.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Bounds:
    """The fields of ``TeamSums`` that follow from limits and from the brokers that show entities."""

    allowed: dict[QuotaType, Floats]
    allowed_known: dict[QuotaType, Floats]
    allowed_complete: dict[QuotaType, _Masks]
    stranded: dict[QuotaType, Floats]
    stranded_complete: dict[QuotaType, _Masks]
    unlimited: dict[QuotaType, Floats]
    located: dict[QuotaType, _Masks]
    """True where all brokers would show the entities of the team, so that it is known which of them have none."""

    @classmethod
    def empty(cls) -> Bounds:
        """Return bounds without any quota type."""
        return cls(**{field.name: {} for field in fields(cls)})


class LimitSums:
    """
    Adds up limits by team, and does so again only when entities, limits or brokers have changed.

    Args:
        index: The teams of rows.

    """

    def __init__(self, index: TeamIndex) -> None:
        self._index = index
        self._layout: Layout | None = None
        self._brokers: _Enforcers = None, 0, {}, frozenset()
        self._bounds = Bounds.empty()

    def of(self, joined: Snapshot) -> Bounds:
        """Return the sums of a snapshot with all entities, whose layout the index follows."""
        layout = joined.columns.layout
        visibility = Visibility.of(joined)
        shown: dict[QuotaType, _Brokers] = {
            kind: (*(visibility.shown_on(kind, entities) for entities in KINDS), frozenset[str]())
            for kind in TYPES
            if kind is not _MUTATION
        }
        brokers: _Enforcers = (
            joined.enforcers,
            len(joined.enforcing_brokers),
            shown,
            visibility.without_memory(joined.taken_at),
        )
        if layout is not self._layout or brokers != self._brokers:
            self._layout, self._brokers = layout, brokers
            self._bounds = self._added_up(layout)
        return self._bounds

    def _added_up(self, layout: Layout) -> Bounds:
        bounds = Bounds.empty()
        for kind in TYPES:
            self._add_allowed(bounds, layout, kind)
            self._add_stranded(bounds, layout, kind)
        return bounds

    def _add_allowed(self, bounds: Bounds, layout: Layout, kind: QuotaType) -> None:
        """Add the sums of limits on all brokers, and the numbers of entities without one."""
        index, count = self._index, len(self._index.names)
        enforcers, certain, *_ = self._brokers
        if kind is _MUTATION:
            enforcers, certain = 1, 1
        rows = layout.of_type(kind)
        teams, limits, begins = index.of_row[rows], layout.limits[rows], index.begins[rows]
        unknown = layout.limits_unknown[rows]
        known = begins & np.isfinite(limits)
        sums: Floats = np.bincount(teams[known], limits[known], count).astype(np.float64, copy=False)
        sums[np.bincount(teams[known], minlength=count) == 0] = np.nan
        without_limit = ~np.isfinite(limits) & ~unknown
        sums[teams[without_limit]] = np.nan
        bounds.allowed_known[kind] = fixed(sums * certain if certain else np.full(count, np.nan))
        # an entity may have a limit on one node, and be under an unknown callback on another
        allowed = sums * (np.nan if enforcers is None else enforcers)
        allowed[teams[unknown]] = np.nan
        bounds.allowed[kind] = fixed(allowed)
        complete = ~np.isnan(allowed)
        if np.any(teams == count + UNDECIDED_PLACE):
            complete[: count + UNDECIDED_PLACE] = False
        bounds.allowed_complete[kind] = fixed(complete)
        bounds.unlimited[kind] = fixed(np.bincount(teams[begins & without_limit], minlength=count).astype(np.float64))

    def _add_stranded(self, bounds: Bounds, layout: Layout, kind: QuotaType) -> None:
        """Add up the limits that hold on brokers where the entity is not: brokers that would show it and do not."""
        index, count = self._index, len(self._index.names)
        enforcers, _, showing_brokers, forgetful = self._brokers
        rows = layout.of_type(kind)
        begins = index.begins[rows]
        if kind is _MUTATION or not begins.size:
            bounds.stranded[kind] = fixed(np.full(count, np.nan))
            bounds.stranded_complete[kind] = fixed(np.ones(count, np.bool_))
            bounds.located[kind] = fixed(np.zeros(count, np.bool_))
            return
        is_showing = np.array([[node in brokers for node in layout.nodes] for brokers in showing_brokers[kind]])
        forgets = np.array([node in forgetful for node in layout.nodes])
        kinds, nodes = index.kinds[rows], layout.node_numbers[rows]
        entities = np.cumsum(begins) - 1
        firsts = np.flatnonzero(begins)
        teams, limits = index.of_row[rows][firsts], layout.limits[rows][firsts]
        would_show = np.array([len(brokers) for brokers in showing_brokers[kind]])[kinds[firsts]]
        remembering = np.array([len(brokers - forgetful) for brokers in showing_brokers[kind]])[kinds[firsts]]
        is_present = is_showing[kinds, nodes]
        present = np.bincount(entities[is_present & ~forgets[nodes]], minlength=len(firsts))
        known = remembering + np.bincount(entities[is_present & forgets[nodes]], minlength=len(firsts))
        # a limit that differs from node to node, or is unknown on one, is unknown on brokers without the entity
        differs = np.bincount(
            entities[(layout.limits[rows] != limits[entities]) & ~np.isnan(limits[entities])], minlength=len(firsts)
        )
        unknown = np.bincount(entities[layout.limits_unknown[rows]], minlength=len(firsts)) + differs > 0
        counted = np.isfinite(limits) & ~unknown & (known > 0)
        amounts = limits[counted] * (remembering - present)[counted]
        stranded = np.bincount(teams[counted], amounts, count).astype(np.float64, copy=False)
        stranded[np.bincount(teams[counted], minlength=count) == 0] = np.nan
        everywhere = -1 if enforcers is None else enforcers
        located = np.ones(count, np.bool_)
        located[teams[would_show != everywhere]] = False
        complete = np.ones(count, np.bool_)
        complete[teams[unknown | (np.isfinite(limits) & (known != everywhere))]] = False
        if np.any(teams == count + UNDECIDED_PLACE):
            complete[: count + UNDECIDED_PLACE] = False
        bounds.stranded[kind] = fixed(stranded)
        bounds.stranded_complete[kind], bounds.located[kind] = fixed(complete), fixed(located)
