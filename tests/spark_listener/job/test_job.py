from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest
from tests.builders.spark_events import (
    TIMEOUT,
    Event,
    application_ended,
    ended,
    environment,
    executor_added,
    executor_removed,
    log_started,
    python_failure,
    query_idle,
    query_progressed,
    query_started,
    query_terminated,
    stage_submitted,
    started,
)
from tests.spark_listener.recordings import after
from tests.spark_listener.threads import in_threads

from quotascope.clients.accounting import OVERFLOW, Client, ClientTotals
from quotascope.spark_listener.errors import UnreadableSummary
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job, QuerySnapshot, read_summary, write_summary
from quotascope.spark_listener.task import note

WRITER = Client("alice", "billing", "write")
TOTALS = ClientTotals(WRITER, 600, 3, 300, 300, 1)
NOW = 1_000.0
LOST = {"Reason": "ExecutorLostFailure"}


def noted(
    totals: ClientTotals = TOTALS, reported: tuple[ClientTotals, ...] = (), query: str = "", **numbers: Any
) -> Event:
    """Return the end of an attempt by a timeout, with a note."""
    ids = {"stage": 0, "number": 0, "task": 0, **numbers}
    attempt = note.AttemptKey(ids["stage"], ids["number"], ids["task"])
    text = note.text_of(attempt, note.Note(query, (totals,), reported))
    return ended(python_failure(TIMEOUT, text), **numbers)


@pytest.mark.parametrize(
    "event", [{}, {"Event": None}, [], None, 7, {"Event": "SparkListenerTaskEnd"}, ended({"Reason": []}, task="x")]
)
def test_odd_event(event: Any) -> None:
    """An event of any content raises nothing in the job's program."""
    snapshot = after([event])
    assert snapshot.events + snapshot.lost_events == 1


def test_events_are_counted() -> None:
    """Events are counted as handled, left out or missed."""
    job = Job("app")
    job.handle({"Event": "SparkListenerBlockUpdated"})
    job.handle(ended())
    job.passed(40)
    job.lost(3)
    job.handle({"Event": "SparkListenerTaskEnd"})
    snapshot = job.snapshot()
    assert (snapshot.events, snapshot.lost_events) == (42, 4)


def test_problems() -> None:
    """Problems are counted by part, and their number is bounded."""
    job = Job("app")
    for part in range(80):
        job.problem(f"part {part}", "x")
        job.problem("part 0", "y" * 100_000)
    problems = dict(job.snapshot().problems)
    assert len(problems) == 50
    assert problems["part 0"] == 81


def test_note_of_a_timeout() -> None:
    """A timeout with throttle times in the attempt's note may be their effect; without a note that is unknown."""
    without = ended(python_failure(TIMEOUT), task=3)
    failures = after([noted(task=1), noted(ClientTotals(WRITER), task=2), without]).failures
    assert failures[FailureCause.KAFKA_TIMEOUT_THROTTLED] == 1
    assert failures[FailureCause.KAFKA_TIMEOUT] == 2


@pytest.mark.parametrize(("plugin", "throttled_ms"), [(True, 7), (False, 607)])
def test_note_of_an_attempt_that_reported(*, plugin: bool, throttled_ms: int) -> None:
    """Counts of an attempt that reported come from the plugin if it is read, and otherwise from the note."""
    job = Job("app")
    if plugin:
        job.add_throttles(list, "jvm")
    job.handle(noted(ClientTotals(WRITER, 7, 1, 7), (TOTALS,)))
    snapshot = job.snapshot()
    ((_, totals),) = snapshot.throttles
    assert totals.throttled_ms == throttled_ms
    assert snapshot.failures[FailureCause.KAFKA_TIMEOUT_THROTTLED] == 1


def test_throttles_are_summed() -> None:
    """Notes and all readers together give one number for each query and client; queries have their names."""
    job = Job("app", lambda: NOW)
    job.handle(query_started("id-1", name="clicks"))
    job.handle(stage_submitted(4, query="id-1"))
    job.handle(noted(stage=4, task=1))
    job.handle(noted(stage=5, task=2, query="id-2"))
    other_totals = ClientTotals(Client("", "x", "read"), 1, 1, 1, 1)
    job.add_throttles(lambda: [("id-1", TOTALS), ("", other_totals)])
    job.add_throttles(lambda: [("id-1", TOTALS._replace(longest_ms=900))])
    assert job.snapshot().throttles == (
        ("", other_totals),
        ("clicks", ClientTotals(WRITER, 1_800, 9, 900, 300, 3)),
        ("id-2", TOTALS),
    )


def test_readers_that_fail() -> None:
    """The last throttle times stay, for counts never go down, and the stages are left out; each failure is counted."""
    job = Job("app")
    job.add_throttles(Mock(side_effect=[[("", TOTALS)], OSError, OSError]))
    job.add_scoped_stages(Mock(side_effect=OSError))
    for problems in (1, 3, 5):
        snapshot = job.snapshot()
        assert (snapshot.throttles, snapshot.problems) == ((("", TOTALS),), (("throttles", problems),))


def test_too_many_queries() -> None:
    """Late queries are counted together, so that the sum is right."""
    throttles = after(noted(task=number, query=f"id-{number}") for number in range(300)).throttles
    assert len(throttles) == 201
    assert sum(totals.throttled_ms for _, totals in throttles) == 300 * 600
    assert dict(throttles)[OVERFLOW].throttled_ms == 100 * 600


def test_attempts_without_a_report() -> None:
    """Attempts without a report count in stages with reports, by a note or a reader, now or later."""
    job = Job("app")
    for number in (1, 2, 3):
        job.handle(ended(LOST, stage=number, task=number))
    for reason in ("Success", "Resubmitted"):
        job.handle(ended(reason, stage=2, task=4))
    job.handle(noted(stage=4, task=7))
    assert job.snapshot().unknown_attempts == 0
    job.add_scoped_stages(lambda: {2})
    assert job.snapshot().unknown_attempts == 1
    job.handle(noted(stage=1, task=5))
    job.handle(ended(LOST, stage=1, task=6))
    assert job.snapshot().unknown_attempts == 3


@pytest.mark.parametrize(
    ("source", "lost", "others_lost", "seen_clients"),
    [("streaming", 0, 0, ("jvm",)), ("pull", 1, 0, ("jvm",)), ("pull", 0, 1, ("jvm", "python"))],
)
def test_python_clients_are_not_all_seen(
    source: str, lost: int, others_lost: int, seen_clients: tuple[str, ...]
) -> None:
    """
    If events of tasks are missing, so may be notes on failed attempts of Python tasks.

    The plugin needs no events.
    """
    job = Job("app")
    job.add_throttles(lambda: [("", TOTALS)], "python")
    job.add_throttles(list, "jvm")
    job.source(source)
    job.lost(lost)
    job.lost(others_lost, ends=False)
    assert job.snapshot().seen_clients == seen_clients


def query_after(job: Job, *events: Event) -> QuerySnapshot:
    """Return the only query of the job after these further events."""
    for event in events:
        job.handle(event)
    (query,) = job.snapshot().queries
    return query


def test_trigger_of_a_query() -> None:
    """A query's trigger is requested once in each run, and known while the query runs."""
    trigger = Mock(side_effect=[300.0, 600.0])
    job = Job("app", trigger=trigger)
    assert query_after(job, query_started(), query_progressed()).trigger_seconds == 300
    assert query_after(job, query_progressed(run="run-2")).trigger_seconds == 600
    assert query_after(job, query_terminated(run="run-2")).trigger_seconds is None
    assert trigger.mock_calls == [call("id-1")] * 2


@pytest.mark.parametrize(
    ("trigger", "reports", "expected"),
    [
        pytest.param(None, [(50, 2), (600, 30), (1_200, 0)], 600, id="batches that end early"),
        pytest.param(None, [(50, 2), (600, 0), (1_200, 0)], 600, id="idle, the last time"),
        pytest.param(None, [(50, 2), (60, 0), (71, 0), (90, 0)], None, id="no trigger, which reports that it is idle"),
        pytest.param(None, [(50, 300), (351, 400), (752, 500)], None, id="slow batches one after the other"),
        pytest.param(600, [(500, 2), (600, 2), (700, 2)], 600, id="Spark knows it"),
    ]
)  # fmt: skip
def test_trigger_is_measured(trigger: float | None, reports: list[tuple[int, int]], expected: float | None) -> None:
    """
    The interval is the time between triggers of one run that a query waits for.

    It is measured where no client can ask, as under Spark Connect.
    """
    job = Job("app", trigger=lambda _: trigger)
    events = [
        query_progressed(began=began, durationMs={"triggerExecution": took * 1_000}) if took else query_idle(began)
        for began, took in reports
    ]
    assert query_after(job, *events).trigger_seconds == expected
    assert query_after(job, query_started(run="run-2")).trigger_seconds == trigger


@pytest.mark.parametrize("ahead", [-3_600, 0, 3_600])
def test_age_of_the_progress(ahead: int) -> None:
    """The age begins with each report of the query, whatever the driver's clock says, and ends with the query."""
    clock = Mock(return_value=NOW)
    job = Job("app", clock)

    began = NOW + ahead
    source = {"metrics": {"maxOffsetsBehindLatest": "7", "avgOffsetsBehindLatest": "2"}}
    for event, age in (
        (query_started(name="clicks", began=began), 60),
        (stage_submitted(0), 120),
        (query_progressed(source, began=began), 60),
        (query_idle(began + 60), 60),
        (query_terminated(), None),
    ):
        job.handle(event)
        clock.return_value += 60
        (query,) = job.snapshot().queries
        assert query.progress_age_seconds == age
    assert (query.name, query.phases) == ("clicks", {"triggerExecution": 2.5, "addBatch": 2.0})
    assert (query.max_offsets_behind, query.avg_offsets_behind) == (7.0, 2.0)


def clicks(query: str = "id-1", run: str = "run-1") -> Event:
    return query_started(query, run, "clicks")


@pytest.mark.parametrize(
    ("events", "active", "restarts", "phases"),
    [
        pytest.param(
            [clicks(), clicks(run="run-2"), query_terminated()],
            True,
            1,
            0,
            id="the end of a run that was followed",
        ),
        pytest.param([clicks(), query_terminated()], False, 0, 0, id="the end"),
        pytest.param([clicks(), query_terminated(), clicks(run="run-2")], True, 1, 0, id="started again"),
        pytest.param(
            [query_progressed(name="clicks"), query_terminated("unseen")],
            True,
            0,
            2,
            id="began before the listener",
        ),
        pytest.param(
            [clicks(), clicks("id-2", "run-2"), query_progressed(name="clicks"), query_terminated()],
            True, 0, 0, id="a new checkpoint gives a new id, which is no restart"),
    ]
)  # fmt: skip
def test_runs_of_a_query(
    events: list[Event],
    active: bool,  # noqa: FBT001 - of a table
    restarts: int,
    phases: int,
) -> None:
    """A query is active until its last run ends; of queries with one name, the active one has the numbers."""
    (query,) = after(events).queries
    assert (query.name, query.active, query.restarts, len(query.phases)) == ("clicks", active, restarts, phases)


def test_very_many_queries() -> None:
    """The oldest of the ended queries are forgotten; one that runs stays."""
    job = Job("app")
    job.handle(query_started("runs", "r", "the one"))
    for number in range(1_500):
        job.handle(query_started(f"id-{number}", f"run-{number}"))
        job.handle(query_terminated(f"id-{number}", f"run-{number}"))
    names = [query.name for query in job.snapshot().queries]
    assert len(names) == 1_000
    assert "the one" in names
    assert job.snapshot().problems == (("queries", 501),)


def test_lost_executors() -> None:
    """
    Executors that the driver gave back do not count, nor removals after the end of the application.

    A removal 300 ms before the end counts.
    """
    job = Job("app", lambda: NOW)
    for event in (
        executor_removed("1", 5),
        executor_removed("2", 6, "Executor killed by driver."),
        executor_removed("3", 6, "Executor decommission: spot"),
        executor_removed("3", 7, "Command exited with code 1"),
        executor_removed("1", 7),
        executor_removed("4", 19.7),
        executor_removed("5", 19.9),
        application_ended(20),
        executor_removed("6", 20),
    ):
        job.handle(event)
    assert job.snapshot().executors_lost == 3


def test_executor_that_failed_an_attempt() -> None:
    """
    The executor was lost even if its removal is reported as requested, as after missing heartbeats, or is not reported.

    It counts once.
    """
    job = Job("app", lambda: NOW)
    silent, given_back = "Executor heartbeat timed out after 154321 ms", "Executor killed by driver."
    job.handle(ended({**LOST, "Loss Reason": silent}, executor="1", task=1))
    job.handle(ended({**LOST, "Loss Reason": silent}, executor="1", task=2))
    job.handle(executor_removed("1", 5, "Container c_1 exited from explicit termination request."))
    job.handle(ended({**LOST, "Loss Reason": given_back}, executor="2", task=3))
    job.handle(executor_removed("2", 5, given_back))
    job.handle(ended({**LOST, "Loss Reason": silent}, executor="3", task=4))
    assert job.snapshot().executors_lost == 2


@pytest.mark.parametrize(
    ("version", "properties", "idle", "lost"),
    [
        pytest.param("2.4.8", {}, 60.1, 0, id="idle for the timeout"),
        pytest.param("3.0.1-amzn-0", {}, 60.1, 0, id="a vendor's version"),
        pytest.param("2.4.8", {}, 59.0, 1, id="not idle for long enough"),
        pytest.param("2.4.8", {"executorIdleTimeout": "2min"}, 60.1, 1, id="a longer timeout"),
        pytest.param("2.4.8", {"executorIdleTimeout": "10s"}, 10.5, 0, id="a shorter timeout"),
        pytest.param("2.4.8", {"enabled": "false"}, 600, 1, id="no dynamic allocation"),
        pytest.param("3.1.1", {}, 600, 1, id="a version that reports what it gives back"),
        pytest.param("", {}, 600, 1, id="an unknown version"),
    ],
)
def test_executor_that_was_idle(version: str, properties: dict[str, str], idle: float, lost: int) -> None:
    """
    Before Spark 3.1, a removed idle executor is taken for given back, as its connection ends like a lost one's.

    A busy one is lost in any version.
    """
    job = Job("app", lambda: NOW)
    settings = {f"spark.dynamicAllocation.{name}": value for name, value in {"enabled": "true", **properties}.items()}
    job.handle(log_started(version))
    job.handle(environment(settings))
    for executor in ("1", "2"):
        job.handle(executor_added(executor))
    job.handle(ended(executor="1", over=100))
    job.handle(executor_removed("1", 100 + idle, "Remote RPC client disassociated. Likely due to …"))
    job.handle(ended(executor="2", over=100 + idle))
    job.handle(executor_removed("2", 100 + idle, "Remote RPC client disassociated. Likely due to …"))
    snapshot = job.snapshot()
    assert (snapshot.executors_lost, snapshot.executors_inferred) == (lost + 1, 1 - lost)


def test_threads() -> None:
    """Events of many threads are all counted, while others look."""
    job = Job("app")
    job.add_throttles(lambda: [("", TOTALS)])

    def work() -> None:
        for number in range(500):
            job.handle(ended(python_failure("ValueError: x"), task=number))
            job.handle(started(number=1, task=number))
            if number % 50 == 0:
                job.snapshot()

    in_threads(work)
    snapshot = job.snapshot()
    assert snapshot.failures[FailureCause.OTHER] == 2_000
    assert snapshot.events == 4_000


REPORTED = (
    ("", ClientTotals(Client("", "a\n\ud800", "read"), 5, 1, 4)),
    ("clicks", ClientTotals(Client("alice", "b", "write"), 700, 3, 300, 0, 2)),
)
REPORTING = replace(after([]), throttles=REPORTED, unknown_attempts=8, seen_clients=("python", "jvm"))


def test_summary_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Names of all kinds come back, as do the attempts that are missing in the sums; an older file is replaced."""
    path = tmp_path / "summary.json"
    write_summary(REPORTING, path, "app-1")
    assert read_summary(path) == (REPORTED, 8, ("python", "jvm"), "app-1")
    write_summary(after([]), path)
    assert read_summary(path) == ((), 0, (), "")
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


@pytest.mark.parametrize(
    "document", [b"\xff", b"[]", b"{", b"[" * 100_000, b'{"quotascope_summary": 2, "throttles": []}']
)
def test_file_that_is_no_summary(document: bytes, tmp_path: Path) -> None:
    """A file that is no summary is an error with its name."""
    path = tmp_path / "other.json"
    path.write_bytes(document)
    with pytest.raises(UnreadableSummary, match=r"other\.json is not a summary of a Spark job"):
        read_summary(path)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ('"quotascope_summary": 2', '"quotascope_summary": 1'),
        ('"quotascope_summary"', '"x"'),
        ('"unknown_attempts"', '"x"'),
        ('"unknown_attempts": 8', '"unknown_attempts": -8'),
        ('"seen_clients"', '"x"'),
        ('"seen_clients": [', '"seen_clients": 7, "x": ['),
        ('"throttles"', '"x"'),
        ('"throttles": [', '"throttles": 7, "x": ['),
        ('"throttles": [', '"throttles": [{},'),
        ('"clicks"', "7"),
        ('"alice"', "7"),
        ('"b"', "7"),
        ('"write"', '"both"'),
        ("700", "true"),
        (": 3,", ": -1,"),
        ("300", "1.5"),
        (": 4", ': "4"'),
    ],
)
def test_summary_with_one_thing_wrong(written: str, instead: str, tmp_path: Path) -> None:
    """Every name and every count is looked at."""
    path = tmp_path / "summary.json"
    write_summary(REPORTING, path)
    text = path.read_text()
    assert written in text
    path.write_text(text.replace(written, instead))
    with pytest.raises(UnreadableSummary, match=r"summary\.json"):
        read_summary(path)
