"""
What usage history takes on disk, and how fast its tables are written, read, compacted and added up, by one process.

::

    python -m benchmarks.pipeline.tables 2000000

CPU time is that of the process with its threads; compare figures of one run only.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.histories import history
from tests.pipeline.table.rows import append

from quotascope.pipeline.history import History, rollup
from quotascope.pipeline.history.charges import ROLLUP_COLUMNS
from quotascope.pipeline.replay.frame import NEEDED
from quotascope.pipeline.runs.engine import whole_users
from quotascope.pipeline.table import Follower, Table, follow

APPENDS = 4


def main(rows: int) -> None:
    """Append a day of requests in a few pieces, as they come; merge, compact, and add up."""
    requests = pa.concat_tables(history(rows, Crowd(entities=2_000)))
    arrival: Any = np.argsort(requests["timestamp"].to_numpy(), kind="stable")
    requests = requests.take(pa.array(arrival))
    piece = rows // APPENDS
    with tempfile.TemporaryDirectory() as folder:
        kept = History.create(folder)
        detail = kept.detail
        for number in range(APPENDS):
            part = requests.slice(number * piece, piece)
            _timed("append", piece, partial(append, detail, f"{number}", part))
        _timed("read", rows, lambda: _read(detail))
        _timed("compact", rows, detail.compact)
        _timed("read compacted", rows, lambda: _read(detail))
        _size("history", detail, rows)
        seconds = Follower(kept.seconds, rollup, ROLLUP_COLUMNS)
        _timed("seconds", rows, lambda: sum(follow(detail, [seconds])))
        _size("seconds", kept.seconds, rows)


def _read(table: Table) -> int:
    buckets = table.buckets().values()
    return sum(len(rows) for files in buckets for rows in whole_users(table, files, NEEDED, across_users=False))


def _timed(what: str, rows: int, work: Callable[[], int]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    sys.stdout.write(f"{what:16}{wall:8.2f} s{cpu:8.2f} s CPU{rows / cpu / 1e6:8.2f} M requests/s of CPU\n")


def _size(what: str, table: Table, rows: int) -> None:
    files = table.files()
    size, kept = sum(file.size for file in files), sum(file.rows for file in files)
    sys.stdout.write(f"{what:16}{size / rows:8.1f} bytes and {kept / rows:.2f} rows a request\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
