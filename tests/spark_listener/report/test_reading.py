from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark_listener.recordings import VERSIONS, ended, log_of, python_failure
from tests.spark_listener.report.throttled import BEGAN, log

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.event_log import EventLogError
from quotascope.spark_listener.events import Cause
from quotascope.spark_listener.job import Job, UnreadableSummary, write_summary
from quotascope.spark_listener.report import ReportError, read_account, story
from quotascope.spark_listener.report.totals import (
    causes,
    longest_waits,
    missing,
    stages_hit,
    waits,
)


def test_throttled_application(tmp_path: Path) -> None:
    """Who waited, what failed by which cause, and where, is told in the order in which it matters."""
    account = read_account(log(tmp_path / "app-1"))
    assert (account.app, account.app_id) == ("nightly", "app-1")
    assert (account.began, account.ended) == (BEGAN, BEGAN + 60)
    assert account.finished
    assert [
        (query, row.client.client_id, row.throttled_ms) for query, row in waits(account)
    ] == [
        ("", "billing", 4_000),
        ("clicks", "clicks-reader", 1_500),
    ]
    assert causes(account) == [
        (Cause.KAFKA_QUOTA, 1, 0),
        (Cause.KAFKA_TIMEOUT_THROTTLED, 2, 1),
        (Cause.EXECUTOR_LOST, 1, 0),
    ]
    hit = stages_hit(account, 10)
    assert [(stage.stage, stage.query, stage.failed_attempts) for stage in hit] == [
        (0, "", 3),
        (2, "clicks", 1),
    ]
    longest = longest_waits(account, 10)
    assert [(attempt.stage, attempt.throttled_ms) for attempt in longest] == [
        (0, 4_000),
        (2, 1_500),
    ]
    assert [batch.query for batch in account.batches] == ["clicks"] * 3


def test_what_an_event_log_lacks(tmp_path: Path) -> None:
    """Throttle times of successful attempts are not in it: that is said, unless the listener's summary is there."""
    path = log(tmp_path / "app-1")
    assert "--summary" in missing(read_account(path))[0]
    told = ClientTotals(Client("alice", "billing", "write"), 9_000, 30, 500, 0, 2)
    job = Job("nightly")
    job.add_throttles(lambda: [("", told)])
    write_summary(job.snapshot(), tmp_path / "summary.json")
    account = read_account(path, tmp_path / "summary.json")
    assert account.throttles == (("", told),)
    assert not [each for each in missing(account) if "--summary" in each]
    with pytest.raises(UnreadableSummary):
        read_account(path, path)


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_logs(version: str) -> None:
    """Real logs of three versions tell the same."""
    account = read_account(log_of(version, "zstd"))
    assert [row[0] for row in causes(account)] == [Cause.KAFKA_QUOTA, Cause.OTHER]
    assert len(account.attempts) == 2
    assert all(stage.ended and stage.name for stage in account.stages)
    assert account.finished


def test_application_that_has_not_ended(tmp_path: Path) -> None:
    """What cannot be known of it is said, and so is what could not be read."""
    path = log(tmp_path / "app-1.inprogress")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], "{"]) + "\n")
    account = read_account(path)
    told = " ".join(missing(account))
    assert not account.finished
    assert "has not ended" in told
    assert "1 line of the log could not be read" in told


def test_file_without_events(tmp_path: Path) -> None:
    """There is nothing to report."""
    (tmp_path / "empty").touch()
    with pytest.raises(EventLogError, match="no event"):
        read_account(tmp_path / "empty")


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """It is said which, and why."""
    with pytest.raises(ReportError, match=r"summary\.json: No such file"):
        read_account(log(tmp_path / "app-1"), tmp_path / "summary.json")


def test_space_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many failures not all are listed, but all are counted; stages that were hit are kept longest."""
    monkeypatch.setattr(story, "_MOST_ATTEMPTS", 3)
    monkeypatch.setattr(story, "_MOST_STAGES", 2)
    path = log(tmp_path / "app-1")
    account = read_account(path)
    assert len(account.attempts) == 3
    assert [stage.stage for stage in account.stages] == [0, 2]
    assert sum(account.snapshot.failures.values()) == 4
    assert account.left_out >= 3
    assert "not listed" in " ".join(missing(account))


def test_names_of_exceptions_are_all_that_is_kept() -> None:
    """Texts of failures may hold passwords."""
    told = story.Story()
    Job("a", watcher=told).handle(ended(python_failure("ValueError: hunter2")))
    (attempt,) = told.attempts()
    assert attempt.raised[-1] == "ValueError"
    assert "hunter2" not in repr(attempt)
