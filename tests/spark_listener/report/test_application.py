from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.builders.spark_events import ended, executor_removed, lines_of, python_failure, query_terminated
from tests.spark_listener.recordings import VERSIONS, log_of
from tests.spark_listener.report.throttled import QUERY, log

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.errors import UnreadableSummary
from quotascope.spark_listener.event_log import EventLogError
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job, write_summary
from quotascope.spark_listener.report import ReportError, document, page, read_application
from quotascope.spark_listener.report import history as module
from quotascope.spark_listener.report.report import headline, notes


def test_what_an_event_log_lacks(tmp_path: Path) -> None:
    """A report without the listener's summary says that throttle times of successful attempts are missing."""
    path = log(tmp_path / "app-1")
    assert "--summary" in notes(read_application(path))[0]
    reported = ClientTotals(Client("alice", "billing", "write"), 9_000, 30, 500, 0, 2)
    job = Job("nightly")
    job.add_throttles(lambda: [("", reported)])
    write_summary(job.snapshot(), tmp_path / "summary.json")
    application = read_application(path, tmp_path / "summary.json")
    assert application.throttles == (("", reported),)
    assert not [note for note in notes(application) if "--summary" in note]
    with pytest.raises(UnreadableSummary):
        read_application(path, path)
    write_summary(job.snapshot(), tmp_path / "summary.json", "app-2")
    with pytest.raises(UnreadableSummary, match="is the summary of app-2, not of app-1"):
        read_application(path, tmp_path / "summary.json")


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_logs(version: str) -> None:
    """Real logs of three versions report the same; on the critical path, attempts that succeeded count as well."""
    application = read_application(log_of(version, "zstd"))
    assert [row[0] for row in application.causes()] == [FailureCause.KAFKA_QUOTA, FailureCause.OTHER]
    assert len(application.attempts) == 2
    assert all(stage.ended and stage.name for stage in application.stages)
    assert application.finished
    path = log_of(version, "plain")
    events = map(json.loads, path.read_text().splitlines())
    tasks = [event["Task Info"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    took = sum(task["Finish Time"] - task["Launch Time"] for task in tasks) / 1_000
    stages = read_application(path).stages
    assert sum(stage.slots.unnoted + stage.slots.noted for stage in stages) == pytest.approx(took)


def test_application_that_has_not_ended(tmp_path: Path) -> None:
    """A report of a running application says what is unknown and what could not be read."""
    path = log(tmp_path / "app-1.inprogress")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-1], *lines_of([executor_removed("1", 0.001, "exit 137")]), b"{\n"]))
    application = read_application(path)
    reported = " ".join(notes(application))
    assert not application.finished
    assert "has not ended" in reported
    assert "1 line of the log could not be read" in reported
    assert application.snapshot.executors_lost == 1


def test_files_that_are_missing(tmp_path: Path) -> None:
    """A report on a folder that was copied in part names the gap."""
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    log(folder / "events_2_app-1")
    reported = notes(read_application(folder))
    assert "The log is incomplete: it lacks 1 file (by the numbers of those that are there)." in reported
    assert not [text for text in reported if "could not be read" in text]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A log without events is an error that names the missing file."""
    (tmp_path / "empty").touch()
    with pytest.raises(EventLogError, match="no event"):
        read_application(tmp_path / "empty")
    with pytest.raises(ReportError, match=r"summary\.json: No such file"):
        read_application(log(tmp_path / "app-1"), tmp_path / "summary.json")


def test_space_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Very many failures are all counted and not all listed; stages with failures are kept longest."""
    path = log(tmp_path / "app-1")
    assert "not listed" not in page(read_application(path))
    monkeypatch.setattr(module, "_MOST_ATTEMPTS", 3)
    monkeypatch.setattr(module, "_MOST_STAGES", 3)
    monkeypatch.setattr(module, "_MOST_BATCHES", 2)
    application = read_application(path)
    assert len(application.attempts) == 3
    assert [stage.stage for stage in application.stages] == [0, 2, 3]
    assert sum(application.snapshot.failures.values()) == 4
    assert [batch.number for batch in application.batches] == [1, 2]
    assert application.left_out == 3  # a stage, an attempt and a batch
    assert application.throttled_ms == 5_500
    assert "3 stages, attempts or batches are counted but not listed one by one" in page(application)


def test_names_of_exceptions_are_all_that_is_kept() -> None:
    """Only names of exceptions are kept, as texts of failures may hold passwords."""
    reported = module.ApplicationHistory()
    Job("a", watcher=reported).handle(ended(python_failure("ValueError: hunter2")))
    (attempt,) = reported.attempts()
    assert attempt.raised[-1] == "ValueError"
    assert "hunter2" not in repr(attempt)


@pytest.mark.parametrize(
    ("exception", "cause"),
    [
        ("org.apache.kafka.common.errors.ThrottlingQuotaExceededException: The quota is exceeded.\n", "kafka_quota"),
        ("kafkashaded.org.apache.kafka.common.errors.TimeoutException: Topic not present\n", "kafka_timeout"),
        ("java.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)\n", "other"),
        (None, None),
    ],
)
def test_query_that_an_exception_of_the_driver_ended(exception: str | None, cause: str | None, tmp_path: Path) -> None:
    """The cause that ended a query is in headline, table and JSON; a stopped query did not fail."""
    path = log(tmp_path / "app-1")
    *lines, last = path.read_text().splitlines()
    terminated = {**query_terminated(QUERY, "1"), "exception": exception}
    path.write_text("\n".join([*lines, json.dumps(terminated), last]))
    application = read_application(path)
    failed = json.loads(json.dumps(document(application)))["failed_queries"]
    assert [(row["query"], row["cause"]) for row in failed] == ([("clicks", cause)] if cause else [])
    assert (f"clicks failed ({cause})" in headline(application)) == bool(cause)
    assert ("Streaming queries that failed" in page(application)) == bool(cause)
