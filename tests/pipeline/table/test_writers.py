"""
Files that a running process stages and commits later.

No other process cleans them away, and a table is not committed without them.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.pipeline.table.rows import amounts, batch

from quotascope.pipeline.errors import LostCommit
from quotascope.pipeline.table import Table, retried, writing

ROOT = Path(__file__).parents[3]


def _parquet(table: Table) -> set[Path]:
    return set(Path(table.storage.uri).glob("day=*/**/*.parquet"))


def test_clean_leaves_what_a_writer_staged(table: Table) -> None:
    """A cleaning leaves staged files, also with an age of zero: after the commit all rows are there."""
    with writing([table.storage]):
        staged = table.stage(batch(1))
        cleaned = Table.open(table.storage.uri).clean(0)
        assert cleaned.deleted == []
        assert sorted(cleaned.of_writers) == sorted(file.path for file in staged)
        assert [writer.about for writer in cleaned.writers] == [f"process {os.getpid()} of {os.uname().nodename}"]
        table.advance("second", staged, after_epoch=None, epoch=0)
    assert amounts(table.read()) == list(range(2_000))
    assert Table.open(table.storage.uri).clean(0).writers == []


def test_clean_deletes_what_is_older_than_the_writers(table: Table) -> None:
    """A file from a day before the first writer began is of another process."""
    leftover = table.stage(batch(1))
    day_ago = time.time() - 86_400
    for file in leftover:
        os.utime(Path(table.storage.uri, file.path), (day_ago, day_ago))
    with writing([table.storage]):
        staged = table.stage(batch(2))
        cleaned = table.clean(0)
        assert sorted(cleaned.deleted) == sorted(file.path for file in leftover)
        assert len(cleaned.of_writers) == len(staged)


def test_a_commit_looks_for_its_files(table: Table) -> None:
    """If another program deleted staged files, nothing is committed and the rows are staged again."""
    stages: list[int] = []

    def attempt() -> int:
        staged = table.stage(batch(1))
        stages.append(len(staged))
        if len(stages) == 1:
            Path(table.storage.uri, staged[-1].path).unlink()
        return table.advance("second", staged, after_epoch=None, epoch=0)

    files_before = _parquet(table)
    with pytest.raises(LostCommit, match=r"1 files that were written for it are gone, such as day="):
        attempt()
    assert _parquet(table) == files_before
    assert retried(attempt) == 1_000
    assert amounts(table.read()) == list(range(2_000))


KILLED = """
import os, signal, sys
from tests.pipeline.table.rows import batch
from quotascope.pipeline.table import Table, writing
table = Table.open(sys.argv[1])
with writing([table.storage]):
    table.stage(batch(1))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_holds_nothing(table: Table) -> None:
    """The files of a writer whose process on this machine is gone are deleted."""
    files_before = _parquet(table)
    subprocess.run([sys.executable, "-c", KILLED, table.storage.uri], cwd=ROOT, check=False)
    assert _parquet(table) > files_before
    cleaned = table.clean(0)
    assert (len(cleaned.deleted) > 0, cleaned.of_writers, cleaned.writers) == (True, [], [])
    assert _parquet(table) == files_before


def test_a_writer_of_another_machine_is_dead_after_an_hour_of_silence(table: Table) -> None:
    """A writer of another machine, known by its signs of life only, is dead after an hour without any."""
    with writing([table.storage]):
        table.stage(batch(1))
        (sign,) = Path(table.storage.uri, "_writers").iterdir()
        text = sign.read_text().replace('"processes": ', '"processes_of": ')
        sign.write_text(text)
        assert table.clean(0).deleted == []
        hours_ago = time.time() - 4_000
        os.utime(sign, (hours_ago, hours_ago))
        assert len(table.clean(0).deleted) > 0
