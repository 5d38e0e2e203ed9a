"""Which day and which bucket a row belongs to."""

from datetime import date
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .layout import Layout

DAY_MS: Final = 86_400_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_DAY: Final = date.min.toordinal() - _EPOCH
LAST_DAY: Final = date.max.toordinal() - _EPOCH
"""Days since 1970 that are dates; a partition could hold more, an int32, but nobody could name them."""

Column: TypeAlias = Any
"""A column of Arrow; its stubs are of another release."""
Numbers: TypeAlias = npt.NDArray[np.int64]


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


def partitions_of(rows: pa.Table, layout: Layout) -> Numbers:
    """Return one number per row that is equal for rows of one file: `day * buckets + bucket`."""
    number = np.zeros(rows.num_rows, np.int64)
    if layout.day_of is not None:
        number = days_of(rows.column(layout.day_of)) * layout.buckets
    if layout.bucket_of is not None:
        number = number + buckets_of(rows.column(layout.bucket_of), layout.buckets)
    return number
