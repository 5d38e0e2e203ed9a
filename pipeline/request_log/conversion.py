"""
Rows of Python values as columns of Arrow.

Arrow checks each value against its column's type, so that a line whose JSON holds text where a number belongs is found here. A whole
batch is tried at once; only if it fails are the rows at fault searched for, by halves.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from .record import FIELDS, Row
from .schema import REQUESTS

FIELD_SCHEMA: Final = pa.schema([REQUESTS.field(name) for name in FIELDS])
"""What a line tells by itself."""

_MISFIT: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows in `FIELDS` as columns. Raises one of `_MISFIT` when a value does not fit its column."""
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=FIELD_SCHEMA)
    return pa.record_batch(
        [
            pa.array(values, field.type)
            for values, field in zip(zip(*rows, strict=True), FIELD_SCHEMA, strict=True)
        ],
        schema=FIELD_SCHEMA,
    )


def misfits(rows: Sequence[Row]) -> dict[int, str]:
    """Numbers of the rows that do not fit, with what is wrong; empty when all do."""
    return dict(_search(rows, 0))


def _search(rows: Sequence[Row], first: int) -> Iterator[tuple[int, str]]:
    try:
        batch_of(rows)
    except _MISFIT as error:
        if len(rows) == 1:
            yield first, str(error)
            return
        half = len(rows) // 2
        yield from _search(rows[:half], first)
        yield from _search(rows[half:], first + half)
