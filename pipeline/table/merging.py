"""
Merges sorted files into one sorted stream, a client at a time.

Files of a bucket are each sorted; late data and other days lie in files of their own. A run is a stretch of rows of one file that differ
in the last column of the order only (time): runs are merged by their key, and rows within a key by time where files overlap. What is held
in memory are one batch of each file and the rows of one key.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .layout import (
    Column,
    File,
    Numbers,
    TableLayout,
    from_zero,
    in_order,
    reading_order,
    sorted_by,
)
from .storage import BATCH, Storage
from .writing import Writer, is_ours, new_name

BATCH_BYTES: Final = 32 << 20
"""Or as many bytes."""

Key: TypeAlias = tuple[object, ...]
KeyRun: TypeAlias = tuple[Key, pa.RecordBatch, int, int]


def merged(
    files: Sequence[Iterable[pa.RecordBatch]], order: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files in their common order; of equal rows those of earlier files come first."""
    if len(files) == 1 or not order:
        for batches in files:
            yield from batches
        return
    block = _Block(time=order[-1])
    runs = merge(*(_runs(file, order[:-1]) for file in files), key=itemgetter(0))
    for _, of_key in groupby(runs, key=itemgetter(0)):
        block.add(of_key)
        if block.rows >= BATCH or block.weight >= BATCH_BYTES:
            yield from block.sorted_rows()
            block = _Block(time=order[-1])
    yield from block.sorted_rows()


def _runs(
    batches: Iterable[pa.RecordBatch], prefix: tuple[str, ...]
) -> Iterator[KeyRun]:
    for batch in batches:
        if batch.num_rows:
            changed = np.zeros(batch.num_rows, np.bool_)
            changed[0] = True
            names: list[Column] = []
            for name in prefix:
                column: Column = batch.column(name)
                if pa.types.is_string(column.type):
                    column = pc.fill_null(column, "")
                names.append(column)
                differs: Any = pc.not_equal(column[1:], column[:-1])
                changed[1:] |= differs.to_numpy(zero_copy_only=False)
            starts = np.flatnonzero(changed)
            at: Column = pa.array(starts)
            columns = [column.take(at).to_pylist() for column in names]
            keys = list(zip(*columns, strict=True)) if columns else [()]
            ends = [*starts[1:].tolist(), batch.num_rows]
            for key, start, end in zip(keys, starts.tolist(), ends, strict=True):
                yield key, batch, start, end


@dataclass
class _Block:
    """Runs that are given out together."""

    time: str
    rows: int = 0
    weight: float = 0.0
    """Bytes, about."""
    batches: list[pa.RecordBatch] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """Bytes a row, by batch."""
    used: list[tuple[int, int]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    runs: list[tuple[int, int, int, int]] = field(default_factory=list)
    keys: int = 0

    def add(self, of_key: Iterable[KeyRun]) -> None:
        """Take the runs of the next key."""
        for _, batch, start, end in of_key:
            place = self.places.setdefault(id(batch), len(self.batches))
            if place == len(self.batches):
                self.batches.append(batch)
                self.weights.append(batch.nbytes / batch.num_rows)
                self.used.append((start, start))
            self.used[place] = (self.used[place][0], end)
            self.runs.append((self.keys, place, start, end))
            self.rows += end - start
            self.weight += (end - start) * self.weights[place]
        self.keys += 1

    def sorted_rows(self) -> Iterator[pa.RecordBatch]:
        """Give the rows out in order."""
        if self.rows:
            table = pa.Table.from_batches(
                [
                    batch[start:end]
                    for batch, (start, end) in zip(self.batches, self.used, strict=True)
                ]
            )
            positions: Column = pa.array(self._positions(table))
            yield from table.take(positions).combine_chunks().to_batches()

    def _positions(self, table: pa.Table) -> Numbers:
        runs = np.asarray(self.runs, np.int64)
        used = np.asarray(self.used, np.int64)
        lengths = runs[:, 3] - runs[:, 2]
        before = np.cumsum(used[:, 1] - used[:, 0]) - (used[:, 1] - used[:, 0])
        first = before[runs[:, 1]] + runs[:, 2] - used[runs[:, 1], 0]
        within = np.arange(self.rows) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions: Numbers = np.repeat(first, lengths) + within
        times = np.asarray(table.column(self.time).to_numpy(), np.int64)[positions]
        keys = np.repeat(runs[:, 0], lengths)
        return positions[in_order([keys, from_zero(times)])]


def compactable(files: Iterable[File]) -> list[list[File]]:
    """Return the files of each bucket and day that has more than one."""
    parts = groupby(sorted(files, key=reading_order), key=_part)
    groups = [list(of_part) for _, of_part in parts]
    return [group for group in groups if len(group) > 1]


def compact(writer: Writer, files: Sequence[File]) -> File:
    """
    Write one file with the rows of files of one bucket and day; it is not committed.

    Its name is of the age of the oldest, so that rows that are equal in the order stay as they were appended.
    """
    name = new_name(of_age=min(file.name for file in files))
    batches = merged_files(writer.storage, files, writer.layout, writer.schema)
    if writer.layout.sums:
        batches = (add_up(batch, writer.layout) for batch in batches)
    merged_file = writer.write_sorted(_part(files[0]), batches, name)
    writer.storage.restrict(merged_file, files)
    return merged_file


def merged_files(
    storage: Storage,
    files: Iterable[File],
    layout: TableLayout,
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files in their common order."""
    needed = schema.names if columns is None else [*columns]
    ordered = sorted(files, key=reading_order)
    if len(ordered) > 1 or not all(is_ours(file.name) for file in ordered):
        needed = [*dict.fromkeys((*needed, *layout.order))]
    fields = [schema.field(name) for name in needed]
    streams = [_in_order(storage.batches(file, fields), file, layout) for file in ordered]  # fmt: skip
    for batch in merged(streams, layout.order):
        yield batch if columns is None else batch.select(list(columns))


def _in_order(
    batches: Iterable[pa.RecordBatch], file: File, layout: TableLayout
) -> Iterable[pa.RecordBatch]:
    """The rows of a file in the order of the table; what another program has written is sorted here, in memory."""
    if is_ours(file.name) or not layout.order:
        return batches
    held = list(batches)
    if not held:
        return held
    rows = pa.Table.from_batches(held)
    of_one_part = np.zeros(len(rows), np.int64)
    positions: Column = pa.array(sorted_by(rows, layout.order, of_one_part))
    return rows.take(positions).combine_chunks().to_batches(BATCH)


def _part(file: File) -> tuple[int, int]:
    return file.day, file.bucket


def add_up(batch: pa.RecordBatch, layout: TableLayout) -> pa.RecordBatch:
    """Return one row for each key of the order, in the order in which they came, with the sums of the other columns."""
    rows = pa.Table.from_batches([batch])
    numbered = rows.append_column("row", pa.array(np.arange(len(rows))))
    sums: Any = [("row", "min"), *((name, "sum") for name in layout.sums)]
    # Arrow gives groups in no particular order
    grouped = numbered.group_by(list(layout.order)).aggregate(sums).sort_by("row_min")
    named = grouped.rename_columns(
        [name.removesuffix("_sum") for name in grouped.column_names]
    )
    summed = named.select(rows.column_names).cast(rows.schema)
    return summed.combine_chunks().to_batches()[0]
