"""Rows of `FIELDS` as columns of Arrow."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..columns import Column, Numbers
from .line import FIELDS, Row
from .schema import PARSED_REQUESTS, TRAFFIC
from .sizes import Traffic

FIELD_SCHEMA: Final = pa.schema([PARSED_REQUESTS.field(name) for name in FIELDS])
MISFIT: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""Errors of Arrow for a value that does not fit its column."""


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """
    Return rows in `FIELDS` as columns.

    Raises one of `MISFIT`: a line's JSON may hold text where a number belongs.
    """
    columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    arrays: list[Any] = [
        _traffic(values) if field.name == "traffic" else pa.array(values, field.type)
        for values, field in zip(columns, FIELD_SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=FIELD_SCHEMA)


def misfits(rows: Sequence[Row], first_row: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the numbers of the rows that do not fit, with the error; they are found by halving."""
    try:
        batch_of(rows)
    except MISFIT as error:
        if len(rows) == 1:
            yield first_row, str(error)
            return
        half = len(rows) // 2
        yield from misfits(rows[:half], first_row)
        yield from misfits(rows[half:], first_row + half)


def flattened(rows: Iterable[Traffic | None]) -> list[Column]:
    """Return the columns of `TRAFFIC` of all topics: flat arrays take a third of the time of nested values."""
    flat = list(chain.from_iterable(filter(None, rows)))
    return [pa.array(flat[offset::3], field.type) for offset, field in enumerate(TRAFFIC)]


def nested(counts: Numbers, columns: Sequence[Column]) -> Column:
    """
    Return the column `traffic`, a list of topics for each row.

    Args:
        counts: number of topics by row, -1 for null.
        columns: columns of the topics of all rows, one row after the other (`flattened`).

    """
    ends = np.cumsum(np.maximum(counts, 0), dtype=np.int32)
    return pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], ends)), pa.int32()),
        pa.StructArray.from_arrays([*columns], fields=list(TRAFFIC)),
        mask=pa.array(counts < 0),
    )


def topic_counts(rows: Iterable[Traffic | None]) -> Numbers:
    """Return the number of topics of each row, -1 for null."""
    # a topic has three values in `Traffic`
    return np.array([-3 if row is None else len(row) for row in rows], np.int64) // 3


def _traffic(rows: Sequence[Traffic | None]) -> Column:
    """Return the column `traffic` of rows."""
    return nested(topic_counts(rows), flattened(rows))
