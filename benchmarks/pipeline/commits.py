"""
Costs of a commit, and of opening a table.

Deltalake's log beside the plainest possible one, a JSON file for each commit.

::

    python -m benchmarks pipeline-commits 1000

The plain one has no checkpoints, finds no conflicts, forgets nothing and does not look whether its files are there: it
is a lower bound. No rows are written; docs/decisions/0009 has the figures.
"""

import argparse
import json
import os
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.output import say
from benchmarks.timing import spread, timed

from quotascope.pipeline.history import HISTORY
from quotascope.pipeline.history.store import History
from quotascope.pipeline.table import File, Table

FILES = 16
OPENINGS = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("commits", type=int)


def main(options: argparse.Namespace) -> int:
    """Commit as often to both, then open both."""
    commits: int = options.commits
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain")
        plain.mkdir()
        costs = [timed(partial(_commit, plain, number))[0] for number in range(commits)]
        _show("plain commit", costs)
        _show("plain open", [timed(lambda: _files(plain))[0] for _ in range(OPENINGS)])
        table = History.create(folder).detail
        assert table.schema == HISTORY
        costs = []
        for number in range(commits):
            _stage(table, number)
            costs.append(timed(partial(_add, table, number))[0])
        _show("deltalake commit", costs)
        _show("  the last tenth", costs[-commits // 10 :])
        _show("deltalake open", [timed(lambda: Table.open(table.storage.uri).files())[0] for _ in range(OPENINGS)])
    return 0


def _add(table: Table, number: int) -> None:
    table.advance(f"{number}", _named(number), after_epoch=None, epoch=0)


def _stage(table: Table, number: int) -> None:
    """Write files for a commit, which looks whether they are there."""
    for file in _named(number):
        path = Path(table.storage.uri, file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(file.size))


def _named(number: int) -> list[File]:
    return [
        File(path=f"day=1/shard={shard}/{number:020d}-0.parquet", day=1, shard=shard, rows=1, size=728, first_ms=1, last_ms=2)
        for shard in range(FILES)
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


def _show(name: str, costs: list[float]) -> None:
    say(f"{name:18}{spread(costs, '.1f', 1e3)} ms")
