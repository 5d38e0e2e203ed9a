"""
The work on a part of the input that one of many workers has.

`parsed` reads lines where they come; rows of one `part` then have to come together, because only they can be the same request, and `staged`
finds out which are new and writes those. What needs to know of other parts, requests that name topics, goes back to who commits.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..request_log.parsing import parse
from ..request_log.releases import keep, last_named
from ..request_log.schema import QUARANTINE, REQUESTS
from ..table.layout import buckets_of
from ..table.writing import bounded, gathered
from .committing import Seen, Staged
from .options import BUCKETS, IngestOptions, IngestTables

_LINE_COLUMNS: Final[list[Any]] = [
    pa.field("line", pa.binary()),
    pa.field("file", pa.string()),
    pa.field("start", pa.int64()),
    pa.field("number", pa.int64()),
]
LINES: Final = pa.schema(_LINE_COLUMNS)
"""Lines in their order: text, file, the byte at which the piece of the file begins (null: unknown), and the line's number, if known."""
PART: Final = pa.field("part", pa.int64())
"""Rows of different parts cannot be the same line."""
SLICE_MS: Final = 600_000
"""The requests of a bucket in so much time are one part: what one worker has to hold in memory."""
PIECE: Final = 200_000
"""Rows that a worker holds and writes at once, if they have no more than `PIECE_BYTES`."""
PIECE_BYTES: Final = 64 << 20
"""Of these rows; what is done with them takes several times as much."""
READ_BYTES: Final = 8 << 20
"""Of lines that are read at once."""
COUNT: Final = pa.field("lines", pa.int64())
"""How many lines a row stands for: texts that cannot be read and that come again have one row."""
LEVEL: Final = pa.field("level", pa.int32())
"""The newest `metadata.version` that an answer names; null for nearly all."""
ROWS: Final = pa.schema(
    [*REQUESTS, *(column for column in QUARANTINE if column.name not in REQUESTS.names), PART, COUNT, LEVEL]
)  # fmt: skip
"""Requests and quarantined lines in one; the latter have a reason."""
_LINES: Final = 1 << 16


def parsed(
    options: IngestOptions, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Turn lines in `LINES` into `ROWS`."""
    counts: dict[tuple[str, int], int] = {}
    for batch in batches:
        for piece in _pieces(batch):
            for few in bounded(piece, _LINES, READ_BYTES):
                yield from _rows(few, options, counts).to_batches()


def staged(tables: IngestTables, batches: Iterable[pa.RecordBatch]) -> Staged:
    """
    Write the rows of parts that are new, in the memory of some rows and of the identities of the largest part.

    Args:
        tables: where they go.
        batches: of `ROWS`; the rows of a part come together.

    Raises:
        TableError: the tables could not be read or written.

    """
    worker = _Worker(tables)
    for held in gathered(batches, PIECE, PIECE_BYTES):
        worker.add(pa.Table.from_batches(held, ROWS))
    return worker.done


class _Worker:
    """Writes rows, one piece after the other; a part may go on in the next one."""

    def __init__(self, tables: IngestTables) -> None:
        self.done = Staged()
        self._tables = tables
        self._requests = Seen(tables.requests, "timestamp")
        self._quarantine = Seen(tables.quarantine, None)
        self._part: int | None = None
        self._there = REQUESTS.empty_table().select(["identity"])
        """What pieces before hold of the part that the last one ended with."""

    def add(self, rows: pa.Table) -> None:
        done = self.done
        lines: int = pc.sum(rows[COUNT.name]).as_py() or 0
        done.lines += lines
        keep(done.named, last_named(rows["timestamp"], rows[LEVEL.name]))
        refused = pc.is_valid(rows["reason"])
        # who commits looks for requests that name topics
        known: Any = pc.and_not(pc.is_in(rows["identity"], self._there["identity"]), pc.is_valid(rows["topics"]))  # fmt: skip
        done.duplicates += pc.sum(pc.and_not(known, refused)).as_py() or 0
        again: int = pc.sum(rows.filter(refused)[COUNT.name]).as_py() or 0
        done.quarantined_before += again
        self._remember(rows)
        new = pc.invert(known)
        self._add_requests(rows.filter(pc.and_not(new, refused)).select(REQUESTS.names))
        self._add_quarantine(rows.filter(pc.and_(new, refused)).select(QUARANTINE.names))  # fmt: skip

    def _remember(self, rows: pa.Table) -> None:
        parts: Any = rows[PART.name]
        last: int = parts[-1].as_py()
        goes_on = self._part == last == parts[0].as_py()
        of_last = rows.filter(pc.equal(parts, pa.scalar(last))).select(["identity"])
        self._there = pa.concat_tables([self._there, of_last]) if goes_on else of_last
        self._part = last

    def _add_requests(self, requests: pa.Table) -> None:
        done, names_topics = self.done, pc.is_valid(requests["topics"])
        plain = requests.filter(pc.invert(names_topics))
        fresh = self._requests.fresh(plain)
        new = fresh.filter(pc.invert(fresh["forwarded"]))
        done.requests += self._tables.requests.stage(new)
        done.duplicates += len(plain) - len(fresh)
        done.forwarded += len(fresh) - len(new)
        done.unresolved = pa.concat_tables([done.unresolved, requests.filter(names_topics)])  # fmt: skip

    def _add_quarantine(self, quarantine: pa.Table) -> None:
        done = self.done
        new = self._quarantine.fresh(quarantine)
        done.quarantine += self._tables.quarantine.stage(new)
        done.quarantined_before -= len(new)
        reasons: list[Any] = new["reason"].to_pylist()
        done.reasons.update(reasons)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Stretches of lines of one piece of one file."""
    if not batch.num_rows:
        return
    files: Any = batch.column("file")
    known: Any = batch.column("start")
    starts: Any = pc.fill_null(known, -1)
    others: Any = pc.not_equal(files[1:], files[:-1])
    pieces: Any = pc.not_equal(starts[1:], starts[:-1])
    changed: Any = pc.or_(others, pieces)
    edges = [0, *(np.flatnonzero(changed) + 1).tolist(), batch.num_rows]
    for begin, end in pairwise(edges):
        yield batch.slice(begin, end - begin)


def _rows(
    piece: pa.RecordBatch, options: IngestOptions, counts: dict[tuple[str, int], int]
) -> pa.Table:
    file, start = piece.column("file")[0].as_py(), piece.column("start")[0].as_py()
    numbers = piece.column("number")
    if start is not None:  # no line before it has a greater number: each has a byte
        before = start + counts.get((file, start), 0)
        counts[file, start] = before - start + len(piece)
        numbers = pa.array(np.arange(before + 1, before + 1 + len(piece)))
    if file.startswith(
        "file:/"
    ):  # of this machine: its path, as `ingest` in one process names it
        file = "/" + unquote(file.removeprefix("file:").lstrip("/"))
    source = replace(options.source(file), numbered=not start)
    found = parse(piece.column("line"), numbers, source)
    slices = np.asarray(found.requests["timestamp"].to_numpy(), np.int64) // SLICE_MS
    parts = slices * BUCKETS + buckets_of(found.requests["user"], BUCKETS)
    identities: list[Any] = found.quarantine["identity"].to_pylist()
    beginnings = [identity[0] << 8 | identity[1] for identity in identities]
    of_junk = [1] * len(beginnings)
    if found.again:  # some text has a row
        of_junk[0] += found.again
    tables = [
        found.requests.append_column(PART, pa.array(parts)).append_column(COUNT, pa.repeat(pa.scalar(1, pa.int64()), len(parts))).append_column(LEVEL, found.levels),
        found.quarantine.append_column(PART, pa.array([-1 - number for number in beginnings], pa.int64())).append_column(COUNT, pa.array(of_junk, pa.int64())),
    ]  # fmt: skip
    widened = [
        [
            table[column.name] if column.name in table.column_names else pa.nulls(len(table), column.type)
            for column in ROWS
        ]
        for table in tables
    ]  # fmt: skip
    return pa.concat_tables([pa.table(columns, schema=ROWS) for columns in widened])
