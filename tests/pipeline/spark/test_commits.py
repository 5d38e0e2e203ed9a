"""What the driver makes of batches and of errors, without Spark."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.pipeline.log_lines import line

from quotascope.pipeline.errors import (
    DamagedFile,
    LostCommit,
    NotWritten,
    PipelineError,
    SparkFailed,
    UnreadableLog,
)
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions, IngestReport, IngestTables
from quotascope.pipeline.ingest.committing import Staged, next_run
from quotascope.pipeline.request_log.parsing import LogSource, parse_lines
from quotascope.pipeline.spark import arrow, ingest, stream
from quotascope.pipeline.table import Table, run_here
from quotascope.pipeline.table.table import ATTEMPTS

FRAME: Any = None


class Others:
    """
    Stands for the workers, who stage a request and a line of nonsense, and for other runs that commit before they are committed.

    Args:
        tables: of all of them.
        table: the one that other runs commit to.
        often: how often they are quicker.

    """

    def __init__(self, tables: IngestTables, table: Table, often: int) -> None:
        self.tables, self.table, self.often = tables, table, often
        self.looked = 0

    def stage(self, *_: object) -> list[Staged]:
        """As `staged_lines`."""
        self.looked += 1
        found = parse_lines([line(), b"nonsense"], range(1, 3), LogSource(file="t-0"))
        known = self.tables.requests.read().num_rows
        requests = found.requests.slice(known)
        quarantine = found.quarantine
        staged = Staged(
            lines=2,
            requests=self.tables.requests.stage(requests),
            quarantine=self.tables.quarantine.stage(quarantine),
            duplicates=known,
        )
        if self.looked <= self.often:
            run = next_run(self.table)
            self.table.commit(run.name, [], run.epoch)
        return [staged]


@pytest.fixture(params=["requests", "quarantine"])
def table(request: pytest.FixtureRequest) -> str:
    """The table that others change meanwhile."""
    return str(request.param)


@pytest.fixture(params=["a stream's batch", "an ingest"])
def add(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Adds what `Others` stage, in one of the two ways; returns the report."""

    def added(others: Others) -> IngestReport:
        into, done = str(tmp_path), list[IngestReport]()
        if request.param == "an ingest":
            monkeypatch.setattr(ingest, "lines_of_files", lambda *_: FRAME)
            monkeypatch.setattr(ingest, "staged_lines", others.stage)
            return ingest.ingest(FRAME, ["a.log"], into)
        monkeypatch.setattr(stream, "staged_lines", others.stage)
        monkeypatch.setattr(stream, "_query_id", lambda _: "q")
        monkeypatch.setattr(stream, "SparkRun", lambda _: run_here)
        batches = stream._Batches(FRAME, into, IngestOptions(), 1, lambda _, report: done.append(report))  # fmt: skip
        batches.add(FRAME, 0)
        return done[0]

    return added


def test_others_commit_first(add: Any, table: str, tmp_path: Path) -> None:
    """Each time it is found out again what is new; each line is in the report once, whichever of the two commits was lost."""
    tables = IngestTables.create(str(tmp_path))
    others = Others(tables, getattr(tables, table), ATTEMPTS - 1)
    report = add(others)
    assert (report.read, report.kept, report.quarantined, report.duplicates) == (2, 1, 1, 0)  # fmt: skip
    assert report.balanced
    assert others.looked == ATTEMPTS
    assert [len(each.read()) for each in tables] == [1, 1]


def test_others_always_commit_first(add: Any, table: str, tmp_path: Path) -> None:
    """After twenty times it ends with what to do."""
    tables = IngestTables.create(str(tmp_path))
    others = Others(tables, getattr(tables, table), ATTEMPTS)
    with pytest.raises(LostCommit, match="run this again"):
        add(others)
    assert others.looked == ATTEMPTS == 20


def test_a_batch_that_comes_again_reaches_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that ended between its tables and the history goes on there; and what is in the history comes once."""
    tables = IngestTables.create(str(tmp_path))
    others = Others(tables, tables.requests, 0)
    monkeypatch.setattr(stream, "staged_lines", others.stage)
    monkeypatch.setattr(stream, "_query_id", lambda _: "q")
    monkeypatch.setattr(stream, "SparkRun", lambda _: run_here)
    reports: list[IngestReport] = []

    def add() -> int:
        batches = stream._Batches(FRAME, str(tmp_path), IngestOptions(), 1, lambda _, report: reports.append(report))  # fmt: skip
        batches.add(FRAME, 0)
        return len(History.open(str(tmp_path)).detail.read())

    with monkeypatch.context() as ended:
        ended.setattr(History, "update", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            add()
    assert len(tables.requests.read()) == 1
    assert [add(), add()] == [1, 1]
    assert reports == [IngestReport(), IngestReport()]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_two_updates_of_a_history_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that loses finds that there is nothing left to do."""
    tables = IngestTables.create(str(tmp_path))
    tables.requests.append("log", parse_lines([line()], range(1, 2), LogSource(file="a")).requests)  # fmt: skip
    one, other = (History.create(str(tmp_path), 1) for _ in range(2))
    advance = Table.advance
    went_before: list[int] = []

    def late(table: Table, *arguments: Any, **more: Any) -> int:
        if not went_before:
            went_before.append(1)
            went_before.append(other.update(tables.requests))
        return advance(table, *arguments, **more)

    monkeypatch.setattr(Table, "advance", late)
    assert one.update(tables.requests) == 0
    assert went_before == [1, 1]
    assert one.detail.read().num_rows == 1


def _of_worker(error: Exception) -> str:
    """What Spark says of a worker that raised this."""

    def work(_: object) -> Any:
        raise error

    with pytest.raises(RuntimeError) as raised:
        list(arrow._marked(work, iter(())))
    return f'An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File "a.py"\nRuntimeError: {raised.value}\n\tat org.apache.spark.Task.run'  # fmt: skip


def test_errors_of_workers_arrive_as_they_were_raised() -> None:
    """Kind, message and fields, whatever characters a path has; of a kind that this driver does not know the message."""
    damaged = DamagedFile("/u/é\n\"'", "day=1/<x>.parquet", "it has 4 bytes")
    found = arrow.error_of(_of_worker(damaged))
    assert type(found) is DamagedFile
    assert str(found) == str(damaged)
    assert (found.table, found.file) == (damaged.table, damaged.file)
    text = _of_worker(damaged).replace('["DamagedFile"', '["Newer"')
    assert (type(arrow.error_of(text)), str(arrow.error_of(text))) == (PipelineError, str(damaged))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File \"a.py\", line 9\nModuleNotFoundError: No module named 'quotascope'",
            "ModuleNotFoundError: No module named 'quotascope'",
        ),
        (
            "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: Python worker exited unexpectedly\n\tat a.B.c(B.scala:1)",
            "org.apache.spark.SparkException: Python worker exited unexpectedly",
        ),
        (
            'org.apache.kafka.KafkaException: bad login: username="me" password="hunter2";',
            'org.apache.kafka.KafkaException: bad login: username="me" password=[hidden];',
        ),
        ("", "no reason"),
    ],
)
def test_what_spark_gives_up_for(text: str, reason: str) -> None:
    """One line that says why, without passwords."""
    found = arrow.error_of(text)
    assert type(found) is SparkFailed
    assert str(found) == f"Spark gave up: {reason}; what it logged before says more"


class _Stream:
    """A source of Spark that ends with an error once its batch function was called."""

    version = "4.2.0"

    def __init__(self, error: Exception, *, called: bool) -> None:
        self._error, self._called = error, called
        self._add: Any = None

    def __getattr__(self, _: str) -> Any:
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        return self

    def foreachBatch(self, add: Any) -> Any:  # noqa: N802 - Spark's name
        self._add = add
        return self

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        if self._called:
            with pytest.raises(PipelineError):
                self._add(FRAME, 0)
        raise self._error


@pytest.mark.parametrize(
    ("error", "called", "told"),
    [
        pytest.param("[STREAM_FAILED] Py4JException", True, "table /u: nothing was committed: no space", id="an error of a batch"),
        pytest.param("Failed to find the data source: kafka. Make sure", False, "spark-sql-kafka-0-10_2.13:4.2.0", id="no connector"),
        pytest.param("[STREAM_FAILED] no such topic", False, "Spark gave up: [STREAM_FAILED] no such topic; ", id="any other"),
    ],
)  # fmt: skip
def test_how_a_stream_ends(
    error: str, called: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: FBT001 - a case
) -> None:  # fmt: skip
    """With what a batch could not do, or with what Spark says."""
    query: Any = _Stream(PySparkException(error), called=called)
    monkeypatch.setattr(stream, "lines_of_topic", lambda _: query)

    def refuse(*_: object) -> None:
        raise NotWritten("/u", "no space")

    monkeypatch.setattr(stream._Batches, "_report", refuse)
    with pytest.raises(PipelineError) as raised:
        stream.stream(query, {}, str(tmp_path), "/c")
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("scheme", "default"),
    [("", None), ("", "file:///"), ("file://", None), ("file://", "hdfs://name")],
)
def test_links_out_of_a_folder_are_refused(
    tmp_path: Path, scheme: str, default: str | None
) -> None:
    """Spark would follow them. Without a setting, paths are of this machine (Hadoop: `fs.defaultFS`)."""
    folder, secret = tmp_path / "logs", tmp_path / "secret.log"
    folder.mkdir()
    secret.write_bytes(line())
    (folder / "link.log").symlink_to(secret)
    settings = {} if default is None else {"spark.hadoop.fs.defaultFS": default}
    spark: Any = SimpleNamespace(conf=settings)
    with pytest.raises(UnreadableLog, match=r"link\.log: a link out"):
        ingest.ingest(spark, [f"{scheme}{folder}"], str(tmp_path / "usage"))


def test_folders_elsewhere_are_not_checked_here(tmp_path: Path) -> None:
    """A path without a scheme is of the cluster's file system where one is set."""
    (tmp_path / "link.log").symlink_to("/etc/hostname")
    spark: Any = SimpleNamespace(conf={"spark.hadoop.fs.defaultFS": "hdfs://nn:8020"})
    ingest._check_links(spark, [str(tmp_path)], IngestOptions())
