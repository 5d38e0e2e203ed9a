"""What is shown instead of all that were joined: some of the rows, and entities that stand for others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum, nan
from typing import Final

import numpy as np

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

from ..snapshot import Columns, Entity, Floats, Layout
from ..snapshot.columns import NAMES
from .identity import POOLS, Ints, Mask, View

_Key = tuple[str, QuotaType, tuple[str, ...] | None]
"""Node, quota type and tags."""
_NODE_SECONDS: Final = 3600.0


@dataclass(frozen=True, eq=False, kw_only=True)
class _Choice:
    """The layout that is shown, and where its rows come from: the same while the same rows are chosen."""

    joined: Layout
    shown: Mask
    """By identity, as the next."""
    folded: Mask
    layout: Layout
    rows: Ints
    """By row of ``layout``: the row in ``joined``, -1 for entities that stand for others."""
    folds: list[tuple[int, Ints]]
    """The row of an entity that stands for others, and the rows of these in ``joined``."""


class Overflow:
    """
    Makes one entity for each node and quota type of what is folded.

    These entities stay the same objects until their node has had none for an hour.
    """

    def __init__(self) -> None:
        self._stand_ins: dict[_Key, tuple[Entity, float]] = {}
        """With the time when they were last needed for a new choice."""
        self._choice: _Choice | None = None

    def columns(
        self,
        joined: Columns,
        view: View,
        shown: Mask,
        folded: Mask,
        bare: Mask,
        at: float,
    ) -> Columns:
        """
        What is shown instead of ``joined``, the same where all of it is.

        Usage of a fold is the sum of its members. Its throttle time is the longest of them, for a sum of averages means
        nothing. It has no limit, so no utilization, rule or tokens, and no cause. It has no counters, which would fall
        whenever a member leaves, as if there had been a restart; only embedded engines have any.

        Args:
            joined: All that were measured.
            view: Their identities.
            shown: By identity.
            folded: By identity; what is neither shown nor folded is left out.
            bare: By identity: whether its details are left out.
            at: Unix time in seconds.

        """
        bare_rows = bare[view.of_row]
        if shown.all():
            self._choice = None
            return replace(joined, detailed=~bare_rows) if bare.any() else joined
        choice = self._choice
        if (
            choice is None
            or choice.joined is not joined.layout
            or not np.array_equal(choice.shown, shown)
            or not np.array_equal(choice.folded, folded)
        ):
            choice = self._choice = self._chosen(joined.layout, view, shown, folded, at)
        layout, rows = choice.layout, choice.rows
        values = {}
        for name in NAMES:
            column = getattr(joined, name)
            if column is joined.layout.absent or not len(column):
                values[name] = np.full(len(rows), np.nan)
            else:
                values[name] = np.where(rows < 0, np.nan, column[rows])
        for row, members in choice.folds:
            values["usage"][row] = _total(joined.usage[members])
            values["throttle_time"][row] = _longest(joined.throttle_time[members])
        bare_rows = (rows >= 0) & bare_rows[rows]
        return Columns(
            layout=layout,
            causes=np.where(rows < 0, 0, joined.causes[rows]).astype(np.int8),
            detailed=~bare_rows if bare_rows.any() else None,
            **{name: _column(column, layout) for name, column in values.items()},
        )

    def _chosen(
        self, joined: Layout, view: View, shown: Mask, folded: Mask, at: float
    ) -> _Choice:
        members = np.flatnonzero(folded[view.of_row])
        groups = joined.node_numbers[members].astype(np.intp) * POOLS
        groups += view.pools[view.of_row[members]]
        order = np.argsort(groups, kind="stable")
        edges = np.flatnonzero(np.diff(groups[order]) != 0) + 1
        by_serial = {}
        stand_ins = []
        for rows in np.split(members[order], edges) if len(members) else []:
            entity = self._stand_in(joined.entities[rows[0]], at)
            stand_ins.append(entity)
            by_serial[entity.serial] = rows
        for key, (_, needed_at) in [*self._stand_ins.items()]:
            if abs(at - needed_at) > _NODE_SECONDS:
                del self._stand_ins[key]
        layout = joined.changed(np.flatnonzero(~shown[view.of_row]), stand_ins)
        rows = layout.rows_in(joined)
        return _Choice(
            joined=joined,
            shown=shown,
            folded=folded,
            layout=layout,
            rows=rows,
            folds=[
                (row, by_serial[layout.entities[row].serial])
                for row in np.flatnonzero(rows < 0).tolist()
            ],
        )

    def _stand_in(self, member: Entity, at: float) -> Entity:
        tags = member.tags and (OVERFLOW,) * len(member.tags)
        name = OVERFLOW if tags is None else ""
        key = member.broker, member.quota_type, tags
        entity, _ = self._stand_ins.get(key) or (
            Entity(
                broker=member.broker,
                quota_type=member.quota_type,
                user=name,
                client_id=name,
                tags=tags,
                stands_in=True,
            ),
            at,
        )
        self._stand_ins[key] = entity, at
        return entity


def _column(values: Floats, layout: Layout) -> Floats:
    """Not writable, and the one object that stands for no value at all where there is none."""
    if np.isnan(values).all():
        return layout.absent
    values.setflags(write=False)
    return values


def _total(usages: Floats) -> float:
    amounts: list[float] = usages[~np.isnan(usages)].tolist()
    if not amounts:
        return nan
    try:
        return fsum(amounts)
    except (OverflowError, ValueError):  # greater than any float, or inf - inf
        return sum(amounts)


def _longest(throttles: Floats) -> float:
    known = throttles[~np.isnan(throttles)]
    return float(known.max()) if len(known) else nan
