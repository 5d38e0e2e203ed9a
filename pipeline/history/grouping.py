"""Adds up integers by client and span of time, in NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from ..table.order import from_zero, in_order
from ..table.partitions import Numbers
from .schema import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Which rows have the same names."""

    of_row: Numbers
    """Number of each row's group."""
    names: pa.Table
    """The names of each group."""

    @classmethod
    def of(cls, rows: pa.Table, columns: Sequence[str]) -> Self:
        """Group rows by columns of strings without nulls."""
        packed = np.zeros(rows.num_rows, np.int64)
        for name in columns:
            column: Column = rows.column(name)
            encoded = column.combine_chunks().dictionary_encode()
            packed = (
                packed * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
            )
            packed = np.unique(packed, return_inverse=True)[1]
        first = np.unique(packed, return_index=True)[1]
        names: Column = pa.array(first)
        return cls(of_row=packed, names=rows.select(list(columns)).take(names))

    def sums(
        self, times: Numbers, width_ms: int, values: Sequence[Numbers]
    ) -> tuple[pa.Table, Numbers, list[Numbers]]:
        """
        Add values up by group and span of time.

        Returns:
            The names of each sum, the begin of its span, and the sums of each of the values.

        """
        starts = times // width_ms * width_ms
        order = in_order([self.of_row, from_zero(starts)])
        groups, starts = self.of_row[order], starts[order]
        changed = (np.diff(groups) != 0) | (np.diff(starts) != 0)
        firsts = np.flatnonzero(np.concatenate(([True], changed))[: len(groups)])
        sums = [
            np.add.reduceat(each[order], firsts) if len(firsts) else each
            for each in values
        ]
        named: Column = pa.array(groups[firsts])
        return self.names.take(named), starts[firsts], sums
