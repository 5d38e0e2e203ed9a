"""Functions for columns and batches of Arrow that the whole pipeline uses."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = Any
"""A column of Arrow; its stubs are of another release."""
Numbers: TypeAlias = npt.NDArray[np.int64]
CLIENT: Final = ("user", "client_id", "broker")
"""The client and the node of a request, in all tables of a history."""


def column(name: str, kind: pa.DataType, description: str, *, null: bool = False) -> "pa.Field[Any]":
    """Return a column of a table."""
    return pa.field(name, kind, nullable=null, metadata={"description": description})


CLIENT_COLUMNS: Final = [column(name, pa.string(), "As in history.") for name in CLIENT]


@dataclass(frozen=True, kw_only=True)
class GroupKey:
    """Key of groups of rows. Rows with equal values in `columns` belong to one group."""

    columns: Sequence[str]
    """Columns of text without nulls."""
    numbers: Callable[[pa.Table], Sequence[int]] | None = None
    """Function that returns a number for each distinct row of `columns`. Rows with equal numbers are one group, too."""


def array(values: object) -> Column:
    """Return an Arrow array."""
    return pa.array(values)  # type: ignore[call-overload]


def numbers_of(names: Column, number: Callable[[str], int]) -> Numbers:
    """Return the number of the name in each row; `number` is called once for each distinct name, "" for null."""
    encoded = pc.fill_null(names, "").combine_chunks().dictionary_encode()
    numbers = [number(name) for name in encoded.dictionary.to_pylist()]
    places: Numbers = encoded.indices.to_numpy(zero_copy_only=False)
    return np.asarray(numbers, np.int64)[places]


def added(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return a row for each distinct key, with the sums of all other columns."""
    values = [name for name in rows.column_names if name not in keys]
    sums = rows.group_by([*keys], use_threads=False).aggregate([(name, "sum") for name in values])
    return sums.select([*keys, *(f"{name}_sum" for name in values)]).rename_columns([*keys, *values])


def having(rows: pa.Table, texts: Mapping[str, str | None]) -> Column:
    """
    Return a mask of the rows that have some texts in some columns; None stands for any text.

    A text that UTF-8 cannot encode is allowed, and matches no row.
    """
    is_match: Column = pa.repeat(True, len(rows))  # noqa: FBT003 - Arrow's, not a flag
    for name, text in texts.items():
        if text is not None:
            # Arrow compares bytes, but cannot make a text that is not UTF-8
            is_match = pc.and_(is_match, pc.equal(rows[name], pa.scalar(text.encode("utf-8", "surrogatepass"))))
    return is_match


def by_number(rows: pa.Table, numbers: Numbers) -> Iterator[tuple[int, pa.Table]]:
    """Yield the distinct numbers, ascending, each with its rows in their order; `numbers` has a number for each row."""
    if len(rows) and np.all(numbers == numbers[0]):
        # nearly always true for rows of a table of the same layout, and then nothing is copied
        yield int(numbers[0]), rows
        return
    order = np.argsort(numbers, kind="stable")
    distinct, starts = np.unique(numbers[order], return_index=True)
    order_column: Column = pa.array(order)
    rows = rows.take(order_column)  # one sort for all numbers is faster than a filter for each
    for number, (start, end) in zip(distinct.tolist(), pairwise([*starts.tolist(), len(order)]), strict=True):
        yield number, rows.slice(start, end - start)


def bounded(batch: pa.RecordBatch, rows: int, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch into slices, in order, that exceed neither `rows` nor `most_bytes`, unless they have one row."""
    for start in range(0, batch.num_rows, rows):
        part = batch.slice(start, rows)
        if part.nbytes <= most_bytes or part.num_rows == 1:
            yield part
        else:
            yield from bounded(part, -(-part.num_rows // 2), most_bytes)


def gathered(batches: Iterable[pa.RecordBatch], rows: int, most_bytes: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield groups of batches, in order, that have at least `rows` or `most_bytes`; batches are cut by ``bounded``."""
    pending: list[pa.RecordBatch] = []
    count = weight = 0
    for batch in batches:
        for piece in bounded(batch, rows, most_bytes):
            pending.append(piece)
            count += piece.num_rows
            weight += piece.nbytes
            if count >= rows or weight >= most_bytes:
                yield pending
                pending, count, weight = [], 0, 0
    if pending:
        yield pending
