"""The figures of pairs that are told together, such as of an entity on all of its brokers, added up for each row of the results."""

from typing import NamedTuple

import numpy as np

from .compiled import Codes, Ints, kernel
from .ledger import REJECTED, SUMS, THROTTLED, TOLD, UNSENT, cell_of
from .rounding import natural


class Booked(NamedTuple):
    """What a replay kept count of; a candidate's rank is its place among them."""

    cells: Ints
    """By pair, rank, kind and field of `ledger`."""
    late: Ints
    """By pair and rank, ms."""
    active: Ints
    """By pair and rank, ms."""
    ranks: Codes
    """By candidate."""


class Told(NamedTuple):
    """What there are rows for."""

    candidates: Ints
    """By row."""
    kinds: Ints
    """By row: the quota type."""
    places: Ints
    """By row: whose figures, by the place among `starts`."""
    starts: Ints
    """The first of the pairs that are told together, in order; at last how many pairs there are."""


class Totals(NamedTuple):
    """The figures of all rows."""

    fields: Ints
    """By field below `ledger.TOLD` and row."""
    late: Ints
    """By row: the largest of its pairs, ms."""
    active: Ints
    """By row: the sum of its pairs, ms."""


Totals.WRITTEN = True  # type: ignore[attr-defined]


def new_totals(rows: int) -> Totals:
    """Return totals of so many rows that nothing was added to."""
    return Totals(
        fields=np.zeros(TOLD * rows, np.int64),
        late=np.zeros(rows, np.int64),
        active=np.zeros(rows, np.int64),
    )


@kernel
def add_up(booked: Booked, told: Told, totals: Totals) -> None:
    """Add up the figures of the pairs of each row, or take the largest."""
    candidates = len(booked.ranks)
    for row in range(len(told.places)):
        place, rank = told.places[row], booked.ranks[told.candidates[row]]
        for pair in range(told.starts[place], told.starts[place + 1]):
            trial = natural(pair * candidates) + rank
            totals.late[row] = max(totals.late[row], booked.late[trial])
            totals.active[row] += booked.active[trial]
            cell = cell_of(trial, told.kinds[row])
            if _has_figures(booked.cells, cell):
                _add_cell(booked.cells, cell, totals, row)


@kernel
def _has_figures(cells: Ints, cell: int) -> bool:
    """Whether something was counted: without these all figures are zero."""
    happened: int = (
        cells[cell + THROTTLED] | cells[cell + REJECTED] | cells[cell + UNSENT]
    )
    return happened != 0


@kernel
def _add_cell(cells: Ints, cell: int, totals: Totals, row: int) -> None:
    fields, rows, at = totals.fields, len(totals.late), row
    for place in range(cell, cell + SUMS):
        fields[at] += cells[place]
        at += rows
    for place in range(cell + SUMS, cell + TOLD):
        fields[at] = max(fields[at], cells[place])
        at += rows
