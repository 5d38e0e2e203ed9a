"""
Which rows a table holds already, or held before their days were dropped.

Rows are looked for by their identity, and only in files of the same bucket whose times overlap theirs: what a lookup costs does not grow with the table.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..table import Table
from ..table.file import File
from ..table.partitions import DAY_MS, partitions_of

REMEMBERED: Final = 4_000_000
"""Rows whose identities are held in memory between lookups; another row takes some 24 bytes."""


class Seen:
    """The identities of a table's rows; `time` names the column that days are taken from, None for a table without days."""

    def __init__(self, table: Table, time: str | None) -> None:
        self._table = table
        self._time = time
        self._loaded: dict[str, pa.Table] = {}

    def fresh(self, rows: pa.Table) -> pa.Table:
        """Rows that the table does not hold, each once, in their order; none of days that were dropped."""
        once = _once(rows)
        if not len(once):
            return once
        files = self._overlapping(once)
        once = self._kept(once)  # after the files: days that go between are still seen
        known = [self._identities(file) for file in files]
        if not known:
            return once
        there = pc.is_in(once["identity"], pa.chunked_array(known, pa.binary()))
        return once.filter(pc.invert(there))

    def _kept(self, rows: pa.Table) -> pa.Table:
        first = None if self._time is None else self._table.first_kept_day
        if self._time is None or first is None:
            return rows
        old = pc.less(rows[self._time], pa.scalar(first * DAY_MS, pa.int64()))
        return rows.filter(pc.invert(old))

    def _overlapping(self, rows: pa.Table) -> list[File]:
        files = self._table.files()
        if self._time is None:
            return list(files)
        layout = self._table.layout
        partitions = set(np.unique(partitions_of(rows, layout)).tolist())
        span: Any = pc.min_max(rows[self._time]).as_py()
        return [
            file
            for file in files
            if file.day * layout.buckets + file.bucket in partitions
            and (file.first is None or file.first <= span["max"])
            and (file.last is None or file.last >= span["min"])
        ]

    def _identities(self, file: File) -> "pa.Array[Any]":
        loaded = self._loaded.pop(file.path, None)
        if loaded is None:
            batches = self._table.storage.batches(file, ["identity"])
            loaded = pa.Table.from_batches(batches, pa.schema([("identity", pa.binary())]))  # fmt: skip
        self._loaded[file.path] = loaded
        self._forget()
        return loaded["identity"].combine_chunks()

    def _forget(self) -> None:
        """Let go of what was not asked for the longest."""
        held = sum(len(table) for table in self._loaded.values())
        for path in list(self._loaded)[:-1]:
            if held <= REMEMBERED:
                return
            held -= len(self._loaded.pop(path))


def _once(rows: pa.Table) -> pa.Table:
    """The first of rows of one identity."""
    distinct = pc.count_distinct(rows["identity"]).as_py()
    if distinct == len(rows):
        return rows
    numbered = pa.table({"identity": rows["identity"], "row": np.arange(len(rows))})
    first = numbered.group_by("identity").aggregate([("row", "min")])["row_min"]
    return rows.take(np.sort(first.to_numpy()))
