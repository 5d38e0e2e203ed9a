"""Figures of pairs that are told together are their sums, and of some the largest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.kernels.ways import WAYS, kernels
from tests.strategies import examples

from quotascope.pipeline.kernels.compiled import run
from quotascope.pipeline.kernels.ledger import (
    FIELDS,
    REJECTED,
    SUMS,
    THROTTLED,
    TOLD,
    UNSENT,
)
from quotascope.pipeline.kernels.requests import KINDS
from quotascope.pipeline.kernels.totals import Booked, Told, add_up, new_totals

COUNTS = (THROTTLED, REJECTED, UNSENT)


def booked_by(random: np.random.Generator, pairs: int, candidates: int) -> Booked:
    """Any figures; there are none where nothing was throttled, refused or left unsent."""
    cells = random.integers(0, 100, (pairs, candidates, KINDS, FIELDS))
    cells[..., COUNTS] *= random.random((pairs, candidates, KINDS, len(COUNTS))) < 0.3
    cells[(cells[..., COUNTS] == 0).all(axis=-1)] = 0
    return Booked(
        cells=cells.ravel(),
        late=random.integers(0, 100, pairs * candidates),
        active=random.integers(0, 100, pairs * candidates),
        ranks=random.permutation(candidates).astype(np.int32),
    )


@pytest.mark.parametrize("way", WAYS)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    candidates=st.integers(1, 4),
    share=st.sampled_from((0.0, 0.5, 1.0)),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=examples(50), deadline=None)
def test_equals_sums_over_all(
    way: str, lengths: list[int], candidates: int, share: float, seed: int
) -> None:
    """Whatever rows are told, by whichever candidates, they have what NumPy makes of all cells."""
    random = np.random.default_rng(seed)
    pairs, starts = sum(lengths), np.cumsum([0, *lengths])
    booked = booked_by(random, pairs, candidates)
    chosen = random.random((candidates, KINDS, len(lengths))) < share
    named, kinds, places = map(np.ascontiguousarray, np.nonzero(chosen))
    totals = new_totals(len(places))
    with kernels(way):
        run(add_up, booked, Told(named, kinds, places, starts), totals, work=1)
    ranks = booked.ranks[named]
    cells = booked.cells.reshape(pairs, candidates, KINDS, FIELDS)
    added = np.add.reduceat(cells, starts[:-1])[places, ranks, kinds]
    largest = np.maximum.reduceat(cells, starts[:-1])[places, ranks, kinds]
    late = np.maximum.reduceat(booked.late.reshape(pairs, -1), starts[:-1])
    active = np.add.reduceat(booked.active.reshape(pairs, -1), starts[:-1])
    fields = totals.fields.reshape(TOLD, -1).T
    assert np.array_equal(fields[:, :SUMS], added[:, :SUMS])
    assert np.array_equal(fields[:, SUMS:], largest[:, SUMS:TOLD])
    assert np.array_equal(totals.late, late[places, ranks])
    assert np.array_equal(totals.active, active[places, ranks])
