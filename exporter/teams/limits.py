"""
Adds up the limits of each team: the most that Kafka lets through, and the part that is stranded.

An entity has its limit on each broker separately. The exporter does not know which brokers lead the partitions of an
entity, but it knows which brokers measure it: Kafka keeps the metrics of an entity for an hour after its last request,
or until the broker restarts. So a limit is stranded on a broker that would show the entity and does not.
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
from .index import KINDS, UNDECIDED_INDEX, Ints, TeamIndex

_MUTATION: Final = QuotaType.CONTROLLER_MUTATION
_Masks = NDArray[np.bool_]
_BrokersByKind = tuple[frozenset[str], ...]
"""Brokers that would show an entity, by the number of its kind; none for a client without a name, the last kind."""


@dataclass(frozen=True, kw_only=True)
class _Brokers:
    """The facts about brokers that the sums depend on."""

    enforcers: int | None
    """Number of brokers that enforce the limits; None where it is unknown."""
    certain: int
    """Number of brokers that are certain to enforce the limits."""
    showing: dict[QuotaType, _BrokersByKind]
    """Brokers that would show an entity, by quota type."""
    forgetful: frozenset[str]
    """Nodes that were started less than an hour ago, so that they have forgotten entities."""


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
    """True if all brokers would show the entities of the team, so that it is known on which brokers they are not."""

    @classmethod
    def empty(cls) -> Bounds:
        """Return bounds without any quota type."""
        return cls(**{field.name: {} for field in fields(cls)})


class LimitSums:
    """
    Adds up limits by team. It adds up again only when entities, limits or brokers have changed.

    Args:
        index: The teams of rows.

    """

    def __init__(self, index: TeamIndex) -> None:
        self._index = index
        self._layout: Layout | None = None
        self._brokers = _Brokers(enforcers=None, certain=0, showing={}, forgetful=frozenset())
        self._bounds = Bounds.empty()

    def update(self, joined: Snapshot) -> Bounds:
        """Return the sums of a snapshot with all measured entities. The index must follow its layout."""
        layout = joined.columns.layout
        visibility = Visibility.of(joined)
        brokers = _Brokers(
            enforcers=joined.enforcers,
            certain=len(joined.enforcing_brokers),
            showing={
                quota_type: (*(visibility.shown_on(quota_type, kind) for kind in KINDS), frozenset[str]())
                for quota_type in TYPES
                if quota_type is not _MUTATION
            },
            forgetful=visibility.without_memory(joined.taken_at),
        )
        if layout is not self._layout or brokers != self._brokers:
            self._layout, self._brokers = layout, brokers
            self._bounds = Bounds.empty()
            for quota_type in TYPES:
                self._add_allowed(self._bounds, layout, quota_type)
                self._add_stranded(self._bounds, layout, quota_type)
        return self._bounds

    def _add_allowed(self, bounds: Bounds, layout: Layout, quota_type: QuotaType) -> None:
        """
        Set the sums of the limits on all brokers, and the numbers of unlimited entities.

        The limit of an entity is taken from its first row, and multiplied by the number of brokers.
        """
        index, team_count = self._index, len(self._index.names)
        enforcers, certain = self._brokers.enforcers, self._brokers.certain
        if quota_type is _MUTATION:
            enforcers, certain = 1, 1  # the active controller
        rows = layout.of_type(quota_type)
        teams, limits, begins = index.team_of_row[rows], layout.limits[rows], index.begins[rows]
        is_unknown = layout.limits_unknown[rows]
        is_unlimited = ~np.isfinite(limits) & ~is_unknown
        is_counted = begins & np.isfinite(limits)
        sums = _sums_by_team(teams[is_counted], limits[is_counted], team_count)
        sums[teams[is_unlimited]] = np.nan  # one unlimited entity leaves its team without a bound
        bounds.allowed_known[quota_type] = fixed(sums * certain if certain else np.full(team_count, np.nan))
        # an entity may have a limit on one node, and be under an unknown callback on another
        allowed = sums * (np.nan if enforcers is None else enforcers)
        allowed[teams[is_unknown]] = np.nan
        bounds.allowed[quota_type] = fixed(allowed)
        complete = ~np.isnan(allowed)
        if np.any(teams == team_count + UNDECIDED_INDEX):  # an entity of an unknown team may be of any team
            complete[: team_count + UNDECIDED_INDEX] = False
        bounds.allowed_complete[quota_type] = fixed(complete)
        unlimited = np.bincount(teams[begins & is_unlimited], minlength=team_count)
        bounds.unlimited[quota_type] = fixed(unlimited.astype(np.float64))

    def _add_stranded(self, bounds: Bounds, layout: Layout, quota_type: QuotaType) -> None:
        """
        Set the sums of the limits on brokers without the entity: brokers that would show it and do not.

        Of each entity, brokers are counted and not named: those that would show it, less those that do. A forgetful
        broker may have measured the entity before its start, so one that does not show it is not counted.
        """
        index, team_count = self._index, len(self._index.names)
        rows = layout.of_type(quota_type)
        begins = index.begins[rows]
        if quota_type is _MUTATION or not begins.size:
            bounds.stranded[quota_type] = fixed(np.full(team_count, np.nan))
            bounds.stranded_complete[quota_type] = fixed(np.ones(team_count, np.bool_))
            bounds.located[quota_type] = fixed(np.zeros(team_count, np.bool_))
            return
        first_rows = np.flatnonzero(begins)
        entity_of_row, entity_count = np.cumsum(begins) - 1, len(first_rows)
        kind_of_row, node_of_row = index.kinds[rows], layout.node_numbers[rows]
        # of each entity: its team, its limit, and the numbers of brokers by what they would show of it
        teams, limits = index.team_of_row[rows][first_rows], layout.limits[rows][first_rows]
        showing_by_kind, forgetful = self._brokers.showing[quota_type], self._brokers.forgetful
        kinds = kind_of_row[first_rows]
        showing = np.array([len(brokers) for brokers in showing_by_kind])[kinds]
        remembering = np.array([len(brokers - forgetful) for brokers in showing_by_kind])[kinds]
        # of each row: whether its node is one of these brokers
        would_show = np.array([[node in brokers for node in layout.nodes] for brokers in showing_by_kind])
        is_forgetful = np.array([node in forgetful for node in layout.nodes])
        is_present = would_show[kind_of_row, node_of_row]
        is_on_forgetful = is_forgetful[node_of_row]
        present = np.bincount(entity_of_row[is_present & ~is_on_forgetful], minlength=entity_count)
        # a forgetful broker that shows the entity is as good as one that remembers
        certain = remembering + np.bincount(entity_of_row[is_present & is_on_forgetful], minlength=entity_count)
        # a limit that differs from node to node, or is unknown on one, is unknown on brokers without the entity
        first_limits = limits[entity_of_row]
        differs = (layout.limits[rows] != first_limits) & ~np.isnan(first_limits)
        is_unknown = np.zeros(entity_count, np.bool_)
        is_unknown[entity_of_row[layout.limits_unknown[rows] | differs]] = True
        is_counted = np.isfinite(limits) & ~is_unknown & (certain > 0)
        stranded_limits = limits[is_counted] * (remembering - present)[is_counted]
        stranded = _sums_by_team(teams[is_counted], stranded_limits, team_count)
        all_brokers = -1 if self._brokers.enforcers is None else self._brokers.enforcers  # no count is -1
        located = np.ones(team_count, np.bool_)
        located[teams[showing != all_brokers]] = False
        complete = np.ones(team_count, np.bool_)
        complete[teams[is_unknown | (np.isfinite(limits) & (certain != all_brokers))]] = False
        if np.any(teams == team_count + UNDECIDED_INDEX):
            complete[: team_count + UNDECIDED_INDEX] = False
        bounds.stranded[quota_type] = fixed(stranded)
        bounds.stranded_complete[quota_type], bounds.located[quota_type] = fixed(complete), fixed(located)


def _sums_by_team(teams: Ints, values: Floats, team_count: int) -> Floats:
    """Return the sum of the values of each team, NaN for a team without any."""
    sums: Floats = np.bincount(teams, values, team_count).astype(np.float64, copy=False)
    sums[np.bincount(teams, minlength=team_count) == 0] = np.nan
    return sums
