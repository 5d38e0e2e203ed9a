"""The driver's handling of batches and errors, without Spark."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, PySparkRuntimeError
from tests.builders.requests import line
from tests.pipeline.ingest.accounts import balanced
from tests.pipeline.ingest.ingesting import another_run

from quotascope.pipeline.engine import Local
from quotascope.pipeline.errors import DamagedFile, LostCommit, NotWritten, PipelineError, SparkFailed, UnreadableLog
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions, IngestReport, IngestTables
from quotascope.pipeline.ingest.committing import Batch, Ingest, Staged
from quotascope.pipeline.request_log.parsing import LogSource, parse_lines
from quotascope.pipeline.runs import ingest as runs
from quotascope.pipeline.spark import arrow, ingest
from quotascope.pipeline.spark.engine import Spark
from quotascope.pipeline.table import Table
from quotascope.pipeline.table.table import ATTEMPTS

FRAME: Any = SimpleNamespace(isEmpty=lambda: False)


class Others:
    """A stand-in for workers that stage a request and a line of nonsense, and for runs that commit before them."""

    def __init__(self, tables: IngestTables, table: Table, often: int) -> None:
        self.tables, self.table, self.often = tables, table, often
        self.looked = 0

    def stage(self, *_: object) -> Staged:
        self.looked += 1
        result = parse_lines([line(), b"nonsense"], range(1, 3), LogSource(file="t-0"))
        staged = Ingest(self.tables).stage([result])
        if self.looked <= self.often:
            another_run(self.table)
        return staged


others_change = pytest.mark.parametrize("table", ["requests", "quarantine"])


def streamed(monkeypatch: pytest.MonkeyPatch, folder: Path, staged: Any) -> list[IngestReport]:
    """Return the reports on the only batch of a stream, whose workers stage rows."""

    def once(*arguments: Any) -> None:
        *_, add, _ = arguments
        add(FRAME, Batch("stream q", 0))

    monkeypatch.setattr(ingest, "lines_of_topic", lambda *_: FRAME)
    monkeypatch.setattr(ingest, "stream", once)
    monkeypatch.setattr(ingest, "staged_lines", staged)
    monkeypatch.setattr(runs, "on_spark", lambda: Spark(FRAME))
    monkeypatch.setattr(Spark, "map", Local().map)
    done: list[IngestReport] = []
    runs.ingest_topic(
        {}, str(folder), "c", IngestOptions(broker="1"), shards=1, done=lambda _, report: done.append(report)
    )
    return done


@pytest.fixture(params=["a stream's batch", "an ingest"])
def add(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that adds what `Others` stage, in one of the two ways, and returns the report."""

    def added(other_runs: Others) -> IngestReport:
        if request.param == "an ingest":
            monkeypatch.setattr(ingest, "lines_of_files", lambda *_: FRAME)
            monkeypatch.setattr(ingest, "staged_lines", other_runs.stage)
            return ingest.ingest(FRAME, ["a.log"], str(tmp_path))
        return streamed(monkeypatch, tmp_path, other_runs.stage)[0]

    return added


@others_change
def test_others_commit_first(add: Any, table: str, tmp_path: Path) -> None:
    """
    A commit that another one overtakes looks for new rows again.

    Each line is in the report once, whichever of the two commits was lost.
    """
    tables = IngestTables.create(str(tmp_path))
    other_runs = Others(tables, getattr(tables, table), ATTEMPTS - 1)
    report = add(other_runs)
    assert (report.read, report.kept, report.quarantined, report.duplicates) == (2, 1, 1, 0)
    assert balanced(report)
    assert other_runs.looked == ATTEMPTS
    assert [len(each.read()) for each in tables] == [1, 1]
    for each in tables:
        files_of_table = Path(each.storage.uri).glob("day=*/**/*.parquet")
        assert len(list(files_of_table)) == len(each.files()), "nothing of lost attempts is left"


@others_change
def test_others_always_commit_first(add: Any, table: str, tmp_path: Path) -> None:
    """A commit that is overtaken twenty times ends with what to do."""
    tables = IngestTables.create(str(tmp_path))
    other_runs = Others(tables, getattr(tables, table), ATTEMPTS)
    with pytest.raises(LostCommit, match="run this again"):
        add(other_runs)
    assert other_runs.looked == ATTEMPTS == 20


def test_a_batch_that_comes_again_reaches_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that ended between its tables and the history continues there, and adds each row once."""
    tables = IngestTables.create(str(tmp_path))
    staged = Others(tables, tables.requests, 0).stage
    with monkeypatch.context() as ended:
        ended.setattr(History, "update", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            streamed(monkeypatch, tmp_path, staged)
    assert len(tables.requests.read()) == 1
    for _ in range(2):
        assert streamed(monkeypatch, tmp_path, staged) == [IngestReport()]
        assert len(History.open(str(tmp_path)).detail.read()) == 1


WORKER = 'An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File "a.py"'


def _of_worker(error: Exception) -> str:
    with pytest.raises(RuntimeError) as raised, arrow.errors_marked():
        raise error
    return f"{WORKER}\nRuntimeError: {raised.value}\n\tat org.apache.spark.Task.run"


def test_errors_of_workers_arrive_as_they_were_raised() -> None:
    """
    A worker's error arrives with kind, message and fields, whatever characters a path has.

    An error of an unknown kind arrives with its message.
    """
    damaged = DamagedFile("/u/é\n\"'", "day=1/<x>.parquet", "it has 4 bytes")
    result = arrow.error_of(_of_worker(damaged))
    assert (type(result), str(result), vars(result)) == (DamagedFile, str(damaged), vars(damaged))
    text = _of_worker(damaged).replace('["DamagedFile"', '["Newer"')
    assert (type(arrow.error_of(text)), str(arrow.error_of(text))) == (PipelineError, str(damaged))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{WORKER}, line 9\nModuleNotFoundError: No module named 'quotascope'", (
            "ModuleNotFoundError: No module named 'quotascope'")),
        ((f'{WORKER}, line 9\nValueError: the tool said\nTraceback (most recent call last):\n  File '
            '"c.py"\nOSError: x'), "ValueError: the tool said"),
        ((f'{WORKER}, line 9\nKeyError: 1\n\nDuring handling of the above exception, another exception '
            'occurred:\n\nTraceback (most recent call last):\n  File "c.py"\nOSError: x'), "OSError: x"),
        (("An error occurred while calling o1.collectToPython.\n: a.SparkException: exited unexpectedly\n\tat "
            "a.B.c(B.scala:1)"), "a.SparkException: exited unexpectedly"),
        ('KafkaException: bad login: username="me" password="hunter2";', (
            'KafkaException: bad login: username="me" '
            'password=[hidden];')),
        ("", "no reason"),
    ]
)  # fmt: skip
def test_what_spark_gives_up_for(text: str, reason: str) -> None:
    """An error of Spark is one line with its reason, without passwords."""
    result = arrow.error_of(text)
    assert type(result) is SparkFailed
    assert str(result) == f"Spark gave up: {reason}; what it logged before says more"


def _raised_by_spark(error: Exception) -> None:
    exec("raise error", {"__name__": "pyspark.core", "error": error})  # noqa: S102 - as a module of Spark


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"), (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited; ")),
        (Py4JNetworkError("Answer from Java side is empty"), "its JVM is gone (Answer from Java side is empty); "),
        (ConnectionRefusedError(111, "Connection refused"), "its JVM is gone ([Errno 111] Connection refused); "),
        (EOFError(), "its JVM is gone (no reason); "),
        (AssertionError("no context"), "no context; "),
    ],
)  # fmt: skip
def test_the_end_of_spark_is_spark_s(error: Exception, reason: str) -> None:
    """An end of Spark is called so wherever it shows: no Java, or a JVM killed before, in or after a job."""
    with pytest.raises(SparkFailed, match=re.escape(f"Spark gave up: {reason}")), arrow.errors_restored():
        _raised_by_spark(error)
    with pytest.raises(ConnectionRefusedError), arrow.errors_restored():
        raise ConnectionRefusedError(111, "of another library")


class _Query:
    """
    A stand-in for Spark, its reader, a frame and a query, whose last method ends with an error.

    A query that runs has called the batch function before.
    """

    version = "4.2.0"

    def __init__(self, error: str, last_progress: str) -> None:
        self._error, self._last = error, last_progress
        self._add: Any = None

    def __getattr__(self, name: str) -> Any:
        if name == self._last == "awaitTermination":
            with pytest.raises(RuntimeError) as raised:
                self._add(self, 0)
            self._error += f": An exception was raised by the Python Proxy. Return Message: {raised.value}"
        if name == self._last:
            raise PySparkException(self._error)
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        return self

    def foreachBatch(self, add: Any) -> Any:  # noqa: N802 - Spark's name
        self._add = add
        return self


@pytest.mark.parametrize(
    ("error", "last", "reported"),
    [
        ("[STREAM_FAILED] Py4JException", "awaitTermination", "table /u: nothing was committed: no space"),
        ("Failed to find the data source: kafka. Make sure", "load", "spark-sql-kafka-0-10_2.13:4.2.0"),
        ("[STREAM_FAILED] no such option", "load", "Spark gave up: [STREAM_FAILED] no such option; "),
        ("[STREAM_FAILED] no such topic", "start", "Spark gave up: [STREAM_FAILED] no such topic; "),
    ]
)  # fmt: skip
def test_how_a_stream_ends(error: str, last: str, reported: str) -> None:
    """A stream ends with the error of its batch, or with Spark's."""
    spark: Any = _Query(error, last)

    def refuse(*_: object) -> None:
        raise NotWritten("/u", "no space")

    with pytest.raises(PipelineError) as raised:
        ingest.stream(ingest.lines_of_topic(spark, {}), "/c", refuse)
    assert reported in str(raised.value)


def test_paths_that_spark_does_not_know(tmp_path: Path) -> None:
    """A path with an unknown scheme or without credentials is an error with Spark's own reason."""
    why = 'UnsupportedFileSystemException: No FileSystem for scheme "KAFKA"'
    spark: Any = _Query(f"An error occurred while calling o1.load.\n: {why}", "load")
    with pytest.raises(SparkFailed, match=f"gave up: {why}; what it logged"):
        ingest.ingest(spark, ["KAFKA://b:9092/t"], str(tmp_path / "usage"))


@pytest.mark.parametrize(
    ("scheme", "default"), [("", None), ("", "file:///"), ("file://", None), ("file://", "hdfs://name")]
)
def test_links_out_of_a_folder_are_refused(tmp_path: Path, scheme: str, default: str | None) -> None:
    """
    Links out of a folder, which Spark would follow, are refused.

    Without a setting, paths are of this machine (Hadoop: `fs.defaultFS`).
    """
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
    ingest._check_links(spark, [str(tmp_path)], IngestOptions(broker="1"))
