"""The rows that are shown instead of all that were joined, and the entities that stand for the others."""

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
    """The layout that is shown, and where its rows come from: the same while the same rows are chosen."""

    joined: Layout
    exposed: Mask
    """Mask by identity: shown one by one."""
    folded: Mask
    layout: Layout
    rows: Ints
    """For each row of ``layout`` the row in ``joined``, -1 for entities that stand for others."""
    folds: list[tuple[int, Ints]]
    """The row of an entity that stands for others, and the rows of these in ``joined``."""


class Overflow:
    """
    Makes one entity for each node and quota type of what is folded.

    These entities stay the same objects until their node has had none for an hour.
    """

    def __init__(self) -> None:
        self._stand_ins: Expiring[tuple[str, QuotaType, tuple[str, ...] | None], Entity] = Expiring(3600.0)
        """Stand-ins by node, quota type and tags, with the time when a new choice last needed them."""
        self._choice: _Choice | None = None

    def columns(
        self, joined: Columns, view: Grouped, exposed: Mask, folded: Mask, bare: Mask, now_seconds: float
    ) -> Columns:
        """
        Return the columns that are shown instead of ``joined``, the same object where all of it is shown in full.

        Usage of a fold is the sum of its members. Its throttle time is the longest of them, for a sum of averages means
        nothing. It has no limit, so no utilization, rule or tokens, and no cause. An identity that is neither
        ``exposed`` nor ``folded`` is left out; one that is ``bare`` is shown without details.
        """
        bare_rows = bare[view.of_row]
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
            choice = self._choice = self._chosen(joined.layout, view, exposed, folded, now_seconds)
        layout, rows = choice.layout, choice.rows
        values = {name: taken(getattr(joined, name), rows, np.nan) for name in NAMES}
        for name, fold in (("usage", _total), ("throttle_time", np.fmax.reduce)):
            column = values[name] = values[name].copy()
            for row, members in choice.folds:
                column[row] = fold(getattr(joined, name)[members])
        bare_rows = (rows >= 0) & bare_rows[rows]
        return Columns(
            layout=layout,
            causes=taken(joined.causes, rows, 0),
            deciders={
                row: joined.deciders[joined_row]
                for row, joined_row in enumerate(rows.tolist())
                if joined_row in joined.deciders
            }
            if joined.deciders
            else {},
            detailed=~bare_rows if bare_rows.any() else None,
            **{name: layout.absent if np.isnan(column).all() else fixed(column) for name, column in values.items()},
        )

    def _chosen(self, joined: Layout, view: Grouped, exposed: Mask, folded: Mask, now_seconds: float) -> _Choice:
        members = np.flatnonzero(folded[view.of_row])
        groups = joined.node_numbers[members].astype(np.intp) * POOLS
        groups += view.pools[view.of_row[members]]
        order = np.argsort(groups, kind="stable")
        edges = np.flatnonzero(np.diff(groups[order]) != 0) + 1
        stand_ins: dict[int, tuple[Entity, Ints]] = {}
        for rows in np.split(members[order], edges) if len(members) else []:
            member: Entity = joined.entities[rows[0]]
            tags = member.tags and (OVERFLOW,) * len(member.tags)
            key = member.broker, member.quota_type, tags
            entity = self._stand_ins.get(key)
            if entity is None:
                name = OVERFLOW if tags is None else ""
                entity = Entity(
                    broker=member.broker,
                    quota_type=member.quota_type,
                    user=name,
                    client_id=name,
                    tags=tags,
                    stands_in=True,
                )
            self._stand_ins.see(key, entity, now_seconds)
            stand_ins[entity.serial] = entity, rows
        self._stand_ins.expire(now_seconds)
        removed = np.flatnonzero(~exposed[view.of_row])
        layout = joined.changed(removed, (entity for entity, _ in stand_ins.values()))
        rows = layout.rows_in(joined)
        places = np.flatnonzero(rows < 0).tolist()
        folds = [(row, stand_ins[layout.entities[row].serial][1]) for row in places]
        return _Choice(joined, exposed, folded, layout, rows, folds)


def _total(usages: Floats) -> float:
    amounts: list[float] = usages[~np.isnan(usages)].tolist()
    if not amounts:
        return nan
    try:
        return fsum(amounts)
    except (OverflowError, ValueError):  # greater than any float, or inf - inf
        return sum(amounts)
