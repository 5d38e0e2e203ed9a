"""Work on tables that Spark's workers do, and what comes back of it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.table.rows import LAYOUT, SCHEMA, batch

from quotascope.pipeline.errors import DamagedFile, SparkFailed
from quotascope.pipeline.spark.run import SparkRun
from quotascope.pipeline.spark.session import session
from quotascope.pipeline.table import File, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real


def _rows_of(table: Table, files: Sequence[File]) -> list[Any]:
    return [row for each in table.batches(files) for row in each["amount"].to_pylist()]


def test_session_that_is_there_is_taken_as_it_is(spark: "SparkSession") -> None:
    """Its application is not renamed: in a monitor it would look like another one."""
    with ThreadPoolExecutor(1) as another:  # where no session is the active one
        there = another.submit(session).result()
    assert there.sparkContext is session().sparkContext is spark.sparkContext
    assert spark.conf.get("spark.app.name") == "tests"


def test_workers_read_and_merge_a_table(spark: "SparkSession", tmp_path: Path) -> None:
    """Workers give their answers in the order of the items, compact as one process does, and what damage they find is told here."""
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    run = SparkRun(spark)
    assert list(run(partial(_rows_of, table), [])) == []
    for number in range(2):
        table.append(f"{number}", batch(number))
    buckets = list(table.buckets().values())
    here = [_rows_of(table, files) for files in buckets]
    assert list(run(partial(_rows_of, table), buckets)) == here
    replaced = table.compact(run=run)
    assert replaced == sum(len(files) for files in buckets)
    assert [_rows_of(table, files) for files in table.buckets().values()] == here
    damaged = table.files()[0]
    Path(table.storage.uri, damaged.path).write_bytes(b"PAR1")
    with pytest.raises(DamagedFile, match="it has 4 bytes") as raised:
        list(run(partial(_rows_of, table), [[damaged]]))
    assert raised.value.file == damaged.path


def _fails_after_writing(table: Table, number: int) -> list[File]:
    files = table.stage(batch(number))
    if number:
        raise RuntimeError("the worker died")
    return files


def test_a_failed_job_commits_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    """When a task fails for good, nothing of the others is read; what all of them wrote is deleted by a cleaning."""
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    with pytest.raises(SparkFailed, match="RuntimeError: the worker died;"):
        list(SparkRun(spark)(partial(_fails_after_writing, table), [0, 1]))
    assert table.version == 0
    assert table.read().num_rows == 0
    assert len(table.clean(0)) > 0
    assert not list(Path(table.storage.uri).glob("day=*/**/*.parquet"))
