"""
What a commit costs, and opening a table: deltalake's log beside the plainest one that could do, a JSON file for each commit.

::

    python -m benchmarks.pipeline.commits 1000

The plain one has no checkpoints, finds no conflicts and forgets nothing: it is a lower bound. No rows are written; docs/decisions/0009 has the figures.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from quotascope.pipeline.history import HISTORY
from quotascope.pipeline.history.store import History
from quotascope.pipeline.table import File, Table

FILES = 16
OPENINGS = 5


def main(commits: int) -> None:
    """Commit as often to both, then open both."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain")
        plain.mkdir()
        costs = [_timed(partial(_commit, plain, number)) for number in range(commits)]
        _told("plain commit", costs)
        _told("plain open", [_timed(lambda: _files(plain)) for _ in range(OPENINGS)])
        table = History.create(folder).detail
        assert table.schema == HISTORY
        costs = [_timed(partial(_add, table, number)) for number in range(commits)]
        _told("deltalake commit", costs)
        _told("  the last tenth", costs[-commits // 10 :])
        _told("deltalake open", [_timed(lambda: Table.open(table.storage.uri).files()) for _ in range(OPENINGS)])


def _add(table: Table, number: int) -> None:
    table.advance(f"{number}", _named(number), after=None, epoch=0)


def _named(number: int) -> list[File]:
    return [
        File(path=f"day=1/bucket={bucket}/{number:020d}-0.parquet", day=1, bucket=bucket, rows=1, size=728, first=1, last=2)
        for bucket in range(FILES)
    ]  # fmt: skip


def _commit(folder: Path, number: int) -> None:
    files = [[file.path, file.size, file.rows] for file in _named(number)]
    written = folder.parent / "written"
    written.write_text(json.dumps({"batch": f"{number}", "files": files}))
    os.link(written, folder / f"{number:020d}.json")
    written.unlink()


def _files(folder: Path) -> list[object]:
    commits = (json.loads(path.read_text()) for path in sorted(folder.iterdir()))
    return [file for commit in commits for file in commit["files"]]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def _told(what: str, costs_ms: list[float]) -> None:
    spread = (min(costs_ms), statistics.median(costs_ms), max(costs_ms))
    sys.stdout.write(f"{what:18}" + " / ".join(f"{cost:.1f}" for cost in spread) + " ms\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
