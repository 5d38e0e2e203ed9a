"""Where the rows of a table lie: its layout and files, the bucket and the day of a row."""

from dataclasses import dataclass
from datetime import date
from typing import Final
from zlib import crc32

import numpy as np
import pyarrow as pa

from ..columns import Column, Numbers, numbers_of

BUCKETS: Final = 16
"""Into how many buckets users are spread by default: as many workers can replay a history at once."""
DAY_MS: Final = 86_400_000
EPOCH: Final = date(1970, 1, 1)
DAYS: Final = range((date.min - EPOCH).days, (date.max - EPOCH).days + 1)
"""Days since 1970 that are dates; a partition could hold others, an int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """
    The partitions of a table.

    A file holds rows of one bucket and one day only. Both are small integers: an untrusted name is never part of a path.
    """

    bucket_of: str | None = None
    """Column of strings that are hashed to the bucket; None for a table of one bucket."""
    buckets: int = 1
    """How many buckets there are; fixed when the table is made."""
    day_of: str | None = None
    """Column with ms since 1970: a file belongs to a UTC day; None for a table of one day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file: complete, of one day and one bucket, never changed once it is committed."""

    path: str
    """Relative to the table; of files of one day and bucket, those of later appends sort after those of earlier ones."""
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

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether it may have a row from one time to before another, ms since 1970: one without statistics may."""
        return (self.first is None or self.first < end) and (self.last is None or self.last >= begin)


def bucket_of(name: str, buckets: int) -> int:
    """Return the bucket of a name, the same in every process and release."""
    return crc32(name.encode("utf-8", "surrogatepass")) % buckets


def buckets_of(names: Column, buckets: int) -> Numbers:
    """Return the bucket of each name; null is taken for the empty name."""
    return numbers_of(names, lambda name: bucket_of(name, buckets))


def partitions_of(rows: pa.Table, layout: TableLayout) -> Numbers:
    """Return one number per row that is equal for rows of one file: `day * buckets + bucket`."""
    number = np.zeros(rows.num_rows, np.int64)
    if layout.day_of is not None:
        times = np.asarray(rows.column(layout.day_of).to_numpy(), np.int64)
        number = times // DAY_MS * layout.buckets
    if layout.bucket_of is not None:
        number = number + buckets_of(rows.column(layout.bucket_of), layout.buckets)
    return number
