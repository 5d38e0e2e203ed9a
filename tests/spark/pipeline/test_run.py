"""Work on tables that Spark's workers do, and what comes back of it."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.blame.logs import BEGIN_MS, row, saturated, stored
from tests.pipeline.table.rows import LAYOUT, SCHEMA, append, batch
from tests.spark.settling import settle
from tests.spark.versions import BY_GROUPS

from quotascope.pipeline.blame import summing
from quotascope.pipeline.engine import Engine
from quotascope.pipeline.errors import DamagedFile, SparkFailed
from quotascope.pipeline.request_log.schema import TOPIC_ID
from quotascope.pipeline.runs.blame import blame
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.spark.engine import Spark
from quotascope.pipeline.spark.session import session
from quotascope.pipeline.table import File, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _rows_of(table: Table, files: Sequence[File]) -> list[Any]:
    return [row for each in table.batches(files) for row in each["amount"].to_pylist()]


@pytest.mark.real
def test_session_that_is_there_is_taken_as_it_is(spark: "SparkSession") -> None:
    """An existing session is used without renaming its application, which monitors know by its name."""
    with ThreadPoolExecutor(1) as another:  # where no session is the active one
        there = another.submit(session).result()
    assert there.sparkContext is session().sparkContext is spark.sparkContext
    assert spark.conf.get("spark.app.name") == "tests"


def test_an_engine_reads_and_merges_a_table(engine: Engine, tmp_path: Path) -> None:
    """An engine gives its answers in the order of the items, compacts a table, and reports the damage that it finds."""
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    assert list(engine.map(partial(_rows_of, table), [])) == []
    for number in range(2):
        append(table, f"{number}", batch(number))
    shards = list(table.shards().values())
    here = [_rows_of(table, files) for files in shards]
    assert list(engine.map(partial(_rows_of, table), shards)) == here
    replaced = table.compact(map_items=engine.map)
    assert replaced == sum(len(files) for files in shards)
    assert [_rows_of(table, files) for files in table.shards().values()] == here
    damaged = table.files()[0]
    Path(table.storage.uri, damaged.path).write_bytes(b"PAR1")
    with pytest.raises(DamagedFile, match="it has 4 bytes") as raised:
        list(engine.map(partial(_rows_of, table), [[damaged]]))
    assert raised.value.file == damaged.path


def _fails_after_writing(table: Table, number: int) -> list[File]:
    files = table.stage(batch(number))
    if number:
        raise RuntimeError("the worker died")
    return files


@pytest.mark.real
def test_a_failed_job_commits_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    """A job with a failed task commits nothing, and a cleaning deletes the files of all its tasks."""
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    with pytest.raises(SparkFailed, match="RuntimeError: the worker died;"):
        list(Spark(spark).map(partial(_fails_after_writing, table), [0, 1]))
    assert table.version == 0
    assert table.read().num_rows == 0
    assert len(table.clean(0).deleted) > 0
    assert not list(Path(table.storage.uri).glob("day=*/**/*.parquet"))


def _jobs(spark: "SparkSession", before: int) -> list[tuple[str, int]]:
    """Return the jobs that Spark's pages show since there were `before`, and their tasks."""
    settle(spark)
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    new = [jobs.apply(place) for place in range(jobs.size() - before)]
    return [(stage.description().get(), stage.numTasks()) for stage in new]


def _count(spark: "SparkSession") -> int:
    settle(spark)
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    count: int = store.jobsList(None).size()
    return count


@pytest.mark.real
def test_jobs_have_names(spark: "SparkSession", tmp_path: Path) -> None:
    """A job describes its tasks, and then restores the program's own description, also after an error."""
    table = Table.create(str(tmp_path / "table"), SCHEMA, LAYOUT)
    append(table, "0", batch(0))
    shards, before = list(table.shards().values()), _count(spark)
    spark.sparkContext.setJobDescription("mine")
    engine = Spark(spark, "replay of shards")
    list(engine.map(partial(_rows_of, table), shards))
    count = len(shards)
    assert _jobs(spark, before) == [(f"quotascope: replay of shards 1 to {count}", count)]
    with pytest.raises(SparkFailed):
        list(engine.map(partial(_fails_after_writing, table), [0, 1]))
    spark.range(1).rdd.count()
    assert _jobs(spark, before)[0][0] == "mine"
    spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type] # unsets it


def _wait_for(file: Path | None) -> bool:
    deadline = time.monotonic() + 60
    while file and not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return file is None or file.exists()


@pytest.mark.real
def test_tasks_are_reported(spark: "SparkSession", tmp_path: Path) -> None:
    """Finished tasks of a running job are reported with the total; at last all of them."""
    reports: list[tuple[int, int]] = []
    reported = tmp_path / "reported"

    def report(done: int, count: int) -> None:
        reports.append((done, count))
        if done == 3:
            reported.touch()

    assert all(Spark(spark).map(_wait_for, [None, None, None, reported], report))
    assert (3, 4) in reports
    assert reports[-1] == (4, 4)
    assert reports == sorted(reports)


@pytest.mark.real
@BY_GROUPS
def test_pieces_of_workers_add_up(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Pieces of Spark's workers add up to one process's sums, over brokers, files and waits across a cut.

    One of the topics has its name in another file.
    """
    assert spark
    monkeypatch.setattr(summing, "_PIECE_ROWS", 1)
    by_id = {"traffic": [{"topic": None, "id": "QQ", "bytes": 1}]}
    first = [{**request, **by_id} for request in saturated(seconds=150)]
    across = row(70_000, 14_000.0, 3, "late", broker="3")
    named = row(0, 0.1, 1, "admin", broker="3", topic_ids=[{"topic": "orders", "id": "QQ"}])
    assert set(named["topic_ids"][0]) == {each.name for each in TOPIC_ID}
    folder = stored(tmp_path, first, [across, named, row(61_000, 0.1, 8_500, "slow", broker="3")])
    for span in ((None, None), (BEGIN_MS / 1_000 + 20.5, BEGIN_MS / 1_000 + 65.25)):
        compared(folder, span)


def compared(folder: str, span: tuple[float | None, float | None]) -> None:
    """Require that one process and Spark give equal sums, in all or in a period within slots and pieces."""
    here, there = (blame(folder, span, engine=engine) for engine in (EngineChoice.LOCAL, EngineChoice.SPARK))
    assert there.plan.piece_us < 70_000_000
    assert here.plan.head.names == there.plan.head.names
    assert here.plan.threads == there.plan.threads
    assert {name.topic for name in here.plan.head.names} == {"", "orders"}
    for once, pieces in zip(here.sums, there.sums, strict=True):
        assert once.equals(pieces)
