"""Generated histories on disk, as ingest leaves them after a compaction."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from benchmarks.output import STDERR
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.histories import history

from quotascope.pipeline.history import History
from quotascope.pipeline.table import Table


def stored(folder: Path, rows: int, crowd: Crowd) -> Table:
    """Write a history of so many rows there."""
    start = time.perf_counter()
    table = History.create(str(folder)).detail
    added = table.advance("generated", table.stage(_batches(rows, crowd)), after_epoch=None, epoch=0)
    replaced = table.compact()
    seconds = time.perf_counter() - start
    assert added == rows
    STDERR.log(f"{rows:,} rows written in {seconds:.0f} s, {replaced} files merged")
    return table


def _batches(rows: int, crowd: Crowd) -> Iterator[pa.RecordBatch]:
    for table in history(rows, crowd):
        yield from table.combine_chunks().to_batches()


def paths(table: Table) -> list[str]:
    """Return the files that the last commit lists, for programs that read them without us."""
    return [f"{table.storage.uri}/{file.path}" for file in table.files()]
