"""
What Spark's workers do with lines: read them where they come, and write what is new of rows that were brought together by part.

Rows cross from the one to the other in `ROWS`. Those of different parts cannot be the same line.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..ingest import IngestOptions, IngestTables
from ..ingest.committing import Ingest, Staged
from ..ingest.options import BUCKETS
from ..request_log.parsing import Parsed, parse
from ..request_log.schema import QUARANTINE, REQUESTS
from ..table.layout import buckets_of
from ..table.writing import bounded, gathered

_LINE_COLUMNS: Final[list[Any]] = [
    pa.field("line", pa.binary()),
    pa.field("file", pa.string()),
    pa.field("start", pa.int64()),
    pa.field("number", pa.int64()),
]
LINES: Final = pa.schema(_LINE_COLUMNS)
"""Lines in their order: text, file, the byte at which the piece of the file begins (null: unknown), and the line's number, if known."""
PART: Final = pa.field("part", pa.int64())
AGAIN: Final = pa.field("again", pa.int64())
"""How many lines more a row stands for: texts that cannot be read and that come again have one row."""
LEVEL: Final = pa.field("level", pa.int32())
"""The newest `metadata.version` that an answer names; null for nearly all."""
ROWS: Final = pa.schema([*REQUESTS, *(column for column in QUARANTINE if column.name not in REQUESTS.names), PART, AGAIN, LEVEL])  # fmt: skip
"""Requests and quarantined lines in one; the latter have a reason."""
SLICE_MS: Final = 600_000
"""The requests of a bucket in so much time are one part: what one worker has to hold in memory."""
PIECE: Final = 200_000
"""Rows that a worker holds and writes at once, if they have no more than `PIECE_BYTES`."""
PIECE_BYTES: Final = 64 << 20
"""Of these rows; what is done with them takes several times as much."""
READ: Final = 1 << 16
"""Lines that are read at once, if they have no more than `READ_BYTES`."""
READ_BYTES: Final = 8 << 20
"""Of these lines."""


def parsed(
    options: IngestOptions, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Turn lines in `LINES` into `ROWS`."""
    counts: dict[tuple[str, int], int] = {}
    for batch in batches:
        for piece in _pieces(batch):
            for few in bounded(piece, READ, READ_BYTES):
                file, start = (few.column(name)[0].as_py() for name in ("file", "start"))  # fmt: skip
                numbers = few.column("number")
                if start is not None:
                    # no line before it has a greater number: each has a byte
                    first = counts.get((file, start), start) + 1
                    counts[file, start] = first - 1 + few.num_rows
                    numbers = pa.array(np.arange(first, first + few.num_rows))
                if file.startswith("file:/"):
                    # of this machine: its path, as one process names it
                    file = "/" + unquote(file.removeprefix("file:").lstrip("/"))
                source = replace(options.source(file), numbered=not start)
                found = parse(few.column("line"), numbers, source)
                yield from _packed(found).to_batches()


def staged(tables: IngestTables, batches: Iterable[pa.RecordBatch]) -> Staged:
    """
    Write the rows of parts that are new, in the memory of some rows and of the identities beside them.

    Args:
        tables: where they go.
        batches: of `ROWS`; the rows of a part come together.

    Raises:
        TableError: the tables could not be read or written.

    """
    held = gathered(batches, PIECE, PIECE_BYTES)
    pieces = (_unpacked(pa.Table.from_batches(rows, ROWS)) for rows in held)
    return Ingest(tables).stage(pieces, of_many=True)


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


def _packed(found: Parsed) -> pa.Table:
    requests, quarantine = found.requests, found.quarantine
    slices = np.asarray(requests["timestamp"].to_numpy(), np.int64) // SLICE_MS
    parts = slices * BUCKETS + buckets_of(requests["user"], BUCKETS)
    requests = requests.append_column(PART, pa.array(parts)).append_column(LEVEL, found.levels)  # fmt: skip
    identities: list[Any] = quarantine["identity"].to_pylist()
    beginnings = [-1 - (identity[0] << 8 | identity[1]) for identity in identities]
    again = [found.again, *[0] * len(identities)][: len(identities)]
    quarantine = quarantine.append_column(PART, pa.array(beginnings, pa.int64())).append_column(AGAIN, pa.array(again, pa.int64()))  # fmt: skip
    return pa.concat_tables([ROWS.empty_table(), requests, quarantine], promote_options="default")  # fmt: skip


def _unpacked(rows: pa.Table) -> Parsed:
    refused = pc.is_valid(rows["reason"])
    requests = rows.filter(pc.invert(refused))
    again: int = pc.sum(rows[AGAIN.name]).as_py() or 0
    return Parsed(
        requests=requests.select(REQUESTS.names),
        quarantine=rows.filter(refused).select(QUARANTINE.names),
        levels=requests[LEVEL.name],
        again=again,
    )
