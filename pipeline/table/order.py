"""Sorts rows by the columns of a layout, stably."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .partitions import Column, Numbers

_MOST: Final = 2**62
"""Ranks of several columns are packed into one number below this."""


def sorted_by(rows: pa.Table, order: tuple[str, ...], parts: Numbers) -> Numbers:
    """Return the positions of rows sorted by part, then by the columns of the order; equal ones stay in place."""
    return in_order([from_zero(parts), *(_ranks(rows.column(name)) for name in order)])


def in_order(columns: Sequence[Numbers]) -> Numbers:
    """Return the positions that sort columns of numbers from 0, the first one first; equal ones stay in place."""
    packed: list[Numbers] = [columns[0]]
    for ranks in columns[1:]:
        count = int(ranks.max(initial=0)) + 1
        if (int(packed[-1].max(initial=0)) + 1) * count < _MOST:
            packed[-1] = packed[-1] * count + ranks
        else:
            packed.append(ranks)
    if len(packed) > 1:
        return np.lexsort(packed[::-1])
    return np.argsort(packed[0], kind="stable")  # a third of the time of two keys


def from_zero(values: Numbers) -> Numbers:
    """Return the distances from the least value."""
    least: np.int64 = values.min(initial=np.iinfo(np.int64).max)
    return values - least


def _ranks(column: Column) -> Numbers:
    """Return numbers from 0 that compare as the values do; null is taken for the empty string."""
    if pa.types.is_integer(column.type):
        return from_zero(np.asarray(column.to_numpy(), np.int64))
    encoded = pc.fill_null(column, "").combine_chunks().dictionary_encode()
    places = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.arange(len(places))
    of_rows: Numbers = encoded.indices.to_numpy(zero_copy_only=False)
    return ranks[of_rows]
