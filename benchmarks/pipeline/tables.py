"""
Size of usage history on disk, and the speed of writing, reading, compacting and adding up its tables, by one process.

::

    python -m benchmarks pipeline-tables 2000000

CPU time is that of the process with its threads; compare figures of one run only.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.output import say
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.histories import history
from benchmarks.timing import cpu_timed, timed
from tests.pipeline.table.rows import append

from quotascope.pipeline.history import History, rollup
from quotascope.pipeline.history.charges import ROLLUP_COLUMNS
from quotascope.pipeline.replay.frame import NEEDED
from quotascope.pipeline.table import Follower, Table, follow
from quotascope.pipeline.table.users import whole_users

APPENDS = 4


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("rows", type=int)


def main(options: argparse.Namespace) -> int:
    """Append a day of requests in a few pieces, as they come; merge, compact, and add up."""
    rows = options.rows
    requests = pa.concat_tables(history(rows, Crowd(entities=2_000)))
    arrival: Any = np.argsort(requests["timestamp"].to_numpy(), kind="stable")
    requests = requests.take(pa.array(arrival))
    piece = rows // APPENDS
    with tempfile.TemporaryDirectory() as folder:
        stored = History.create(folder)
        detail = stored.detail
        for number in range(APPENDS):
            part = requests.slice(number * piece, piece)
            _timed("append", piece, partial(append, detail, f"{number}", part))
        _timed("read", rows, lambda: _read(detail))
        _timed("compact", rows, detail.compact)
        _timed("read compacted", rows, lambda: _read(detail))
        _size("history", detail, rows)
        seconds = Follower(stored.seconds, rollup, ROLLUP_COLUMNS)
        _timed("seconds", rows, lambda: sum(follow(detail, [seconds])))
        _size("seconds", stored.seconds, rows)
    return 0


def _read(table: Table) -> int:
    shards = table.shards().values()
    return sum(len(rows) for files in shards for rows in whole_users(table, files, NEEDED))


def _timed(name: str, rows: int, work: Callable[[], int]) -> None:
    cpu, (wall, _) = cpu_timed(partial(timed, work))
    say(f"{name:16}{wall:8.2f} s{cpu:8.2f} s CPU{rows / cpu / 1e6:8.2f} M requests/s of CPU")


def _size(name: str, table: Table, rows: int) -> None:
    files = table.files()
    size, kept_rows = sum(file.size for file in files), sum(file.rows for file in files)
    say(f"{name:16}{size / rows:8.1f} bytes and {kept_rows / rows:.2f} rows a request")
