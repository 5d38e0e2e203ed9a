"""Where the rows of a table lie: layout and files, the bucket and day of a row, and the order within a file."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final, Self, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

DAY_MS: Final = 86_400_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_DAY: Final = date.min.toordinal() - _EPOCH
LAST_DAY: Final = date.max.toordinal() - _EPOCH
"""Days since 1970 that are dates; a partition could hold others, an int32."""
_MOST: Final = 2**62
"""Ranks of several columns are packed into one number below this."""
Column: TypeAlias = Any
"""A column of Arrow; its stubs are of another release."""
Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """
    The order and the partitions of a table.

    A file holds rows of one bucket and one day only. Both are small integers: an untrusted name is never part of a path.
    """

    order: tuple[str, ...] = ()
    """Columns that each file is sorted by, the last one an integer; rows equal in all of them stay as they were appended."""
    bucket_of: str | None = None
    """Column of strings that are hashed to the bucket; None for a table of one bucket."""
    buckets: int = 1
    """How many buckets there are; fixed when the table is made."""
    day_of: str | None = None
    """Column with ms since 1970: a file belongs to a UTC day; None for a table of one day."""
    sums: tuple[str, ...] = ()
    """Integer columns that a compaction adds up over rows equal in `order`; without any it keeps every row."""

    def to_json(self) -> str:
        """Write it as the table's log keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        return cls(
            order=tuple(fields["order"]),
            bucket_of=fields["bucket_of"],
            buckets=fields["buckets"],
            day_of=fields["day_of"],
            sums=tuple(fields["sums"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file: complete, of one day and one bucket, never changed once it is committed."""

    path: str
    """Relative to the table."""
    day: int
    """Days since 1970, UTC; 0 in a table without days."""
    bucket: int
    """Number of the bucket; 0 in a table without."""
    rows: int
    """How many rows it holds."""
    size: int
    """Bytes; a file of another size is damaged."""
    first: int | None = None
    """Least value of the column that days are taken from, ms since 1970."""
    last: int | None = None
    """Greatest value of that column."""

    def statistics(self, day_of: str | None) -> str:
        """Return what a Delta log says about it."""
        known: dict[str, object] = {"numRecords": self.rows}
        if day_of is not None and self.first is not None:
            known["minValues"] = {day_of: self.first}
            known["maxValues"] = {day_of: self.last}
        return json.dumps(known)

    @property
    def name(self) -> str:
        """File name; those of later appends sort after those of earlier ones."""
        return self.path.rpartition("/")[2]


def reading_order(file: File) -> tuple[int, int, str]:
    """Sort files by bucket, then by day, then by when they were appended."""
    return file.bucket, file.day, file.name


def bucket_of(name: str, buckets: int) -> int:
    """Return the bucket of a name, the same in every process and release."""
    return crc32(name.encode("utf-8", "surrogatepass")) % buckets


def buckets_of(names: Column, buckets: int) -> Numbers:
    """Return the bucket of each name; null is taken for the empty name."""
    encoded = pc.fill_null(names, "").combine_chunks().dictionary_encode()
    known = [bucket_of(name, buckets) for name in encoded.dictionary.to_pylist()]
    places: Numbers = encoded.indices.to_numpy(zero_copy_only=False)
    return np.asarray(known, np.int64)[places]


def days_of(times: Column) -> Numbers:
    """Return the UTC day of each time in ms, as days since 1970."""
    return np.asarray(times.to_numpy(), np.int64) // DAY_MS


def partitions_of(rows: pa.Table, layout: TableLayout) -> Numbers:
    """Return one number per row that is equal for rows of one file: `day * buckets + bucket`."""
    number = np.zeros(rows.num_rows, np.int64)
    if layout.day_of is not None:
        number = days_of(rows.column(layout.day_of)) * layout.buckets
    if layout.bucket_of is not None:
        number = number + buckets_of(rows.column(layout.bucket_of), layout.buckets)
    return number


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
