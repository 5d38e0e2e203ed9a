"""Folds the entities that are not shown one by one into overflow entities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum, nan

import numpy as np

from quotascope.metrics.catalog import OVERFLOW
from quotascope.metrics.kafka.entities import QuotaType

from ..expiry import Expiring
from ..snapshot import Columns, Entity, Floats, Layout
from ..snapshot.columns import NAMES
from ..snapshot.layout import fixed, taken
from .identity import POOLS, Grouped, Ints, Mask


@dataclass(frozen=True, eq=False)
class _Choice:
    """A layout with folded rows. It is kept while the same identities of the same layout are exposed and folded."""

    joined: Layout
    """The layout of all rows."""
    exposed: Mask
    """Mask by identity of those that are shown one by one."""
    folded: Mask
    """Mask by identity of those that are folded."""
    layout: Layout
    """The layout that is shown."""
    rows: Ints
    """The row in ``joined`` of each row of ``layout``, -1 for overflow entities."""
    folds: list[tuple[int, Ints]]
    """Rows of overflow entities in ``layout``, with the rows of their members in ``joined``."""


class Overflow:
    """
    Folds identities into one overflow entity for each node and quota type.

    An overflow entity stays the same object until its node has needed none for an hour.
    """

    def __init__(self) -> None:
        self._stand_ins: Expiring[tuple[str, QuotaType, tuple[str, ...] | None], Entity] = Expiring(3600.0)
        """Overflow entities by node, quota type and tags, with the time when a new choice last needed them."""
        self._choice: _Choice | None = None

    def fold(
        self, joined: Columns, view: Grouped, exposed: Mask, folded: Mask, bare: Mask, now_seconds: float
    ) -> Columns:
        """
        Return the columns to show; the same object as ``joined`` if all of it is shown in full.

        The usage of an overflow entity is the sum over its members. Its throttle time is the longest of theirs, since a
        sum of averages has no meaning. It has no limit, so it has no utilization, rule, tokens or cause.

        Args:
            joined: The columns of all rows.
            view: The identities of these rows.
            exposed: Mask of the identities that are shown one by one.
            folded: Mask of the identities that are folded. Others that are not exposed are left out.
            bare: Mask of the identities that are shown without details.
            now_seconds: Steady time of the snapshot.

        """
        bare_rows = bare[view.identity_of_row]
        if exposed.all():
            self._choice = None
            return replace(joined, detailed=~bare_rows) if bare.any() else joined
        choice = self._choice
        if (
            choice is None
            or choice.joined is not joined.layout
            or not np.array_equal(choice.exposed, exposed)
            or not np.array_equal(choice.folded, folded)
        ):
            choice = self._choice = self._choose(joined.layout, view, exposed, folded, now_seconds)
        layout, rows = choice.layout, choice.rows
        values = {name: taken(getattr(joined, name), rows, np.nan) for name in NAMES}
        # an overflow entity, which has no row in `joined`, gets these two values from its members
        for name, combine in (("usage", _total), ("throttle_time", np.fmax.reduce)):
            column = values[name] = values[name].copy()
            for row, members in choice.folds:
                column[row] = combine(getattr(joined, name)[members])
        deciders = {}
        if joined.deciders:
            rows_and_joined_rows = enumerate(rows.tolist())
            deciders = {
                row: joined.deciders[joined_row]
                for row, joined_row in rows_and_joined_rows
                if joined_row in joined.deciders
            }
        shown_bare_rows = (rows >= 0) & bare_rows[rows]
        return Columns(
            layout=layout,
            causes=taken(joined.causes, rows, 0),
            deciders=deciders,
            detailed=~shown_bare_rows if shown_bare_rows.any() else None,
            **{name: layout.absent if np.isnan(column).all() else fixed(column) for name, column in values.items()},
        )

    def _choose(self, joined: Layout, view: Grouped, exposed: Mask, folded: Mask, now_seconds: float) -> _Choice:
        """Return the layout without the rows that are not exposed, and with overflow entities for the folded ones."""
        # the folded rows, divided by node and pool
        members = np.flatnonzero(folded[view.identity_of_row])
        fold_numbers = joined.node_numbers[members].astype(np.intp) * POOLS
        fold_numbers += view.pools[view.identity_of_row[members]]
        order = np.argsort(fold_numbers, kind="stable")
        edges = np.flatnonzero(np.diff(fold_numbers[order]) != 0) + 1
        members_of_folds = np.split(members[order], edges) if len(members) else []
        stand_ins: list[Entity] = []
        members_by_serial: dict[int, Ints] = {}
        for members_of_fold in members_of_folds:
            stand_in = self._stand_in(joined.entities[members_of_fold[0]], now_seconds)
            stand_ins.append(stand_in)
            members_by_serial[stand_in.serial] = members_of_fold
        self._stand_ins.expire(now_seconds)
        removed = np.flatnonzero(~exposed[view.identity_of_row])
        layout = joined.changed(removed, stand_ins)
        rows = layout.rows_in(joined)
        overflow_rows = np.flatnonzero(rows < 0).tolist()
        folds = [(row, members_by_serial[layout.entities[row].serial]) for row in overflow_rows]
        return _Choice(joined, exposed, folded, layout, rows, folds)

    def _stand_in(self, member: Entity, now_seconds: float) -> Entity:
        """Return the overflow entity for the node, quota type and number of tags of a folded entity."""
        tags = None if member.tags is None else (OVERFLOW,) * len(member.tags)
        key = member.broker, member.quota_type, tags
        stand_in = self._stand_ins.get(key)
        if stand_in is None:
            name = OVERFLOW if tags is None else ""
            stand_in = Entity(
                broker=member.broker,
                quota_type=member.quota_type,
                user=name,
                client_id=name,
                tags=tags,
                stands_in=True,
            )
        self._stand_ins.see(key, stand_in, now_seconds)
        return stand_in


def _total(usages: Floats) -> float:
    """Return the sum of the known usages, NaN without any."""
    known_usages: list[float] = usages[~np.isnan(usages)].tolist()
    if not known_usages:
        return nan
    try:
        return fsum(known_usages)
    except (OverflowError, ValueError):  # greater than any float, or inf - inf
        return sum(known_usages)
