import itertools
import logging
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import accumulators
from tests.spark_listener.threads import in_threads

from quotascope.clients.accounting import OVERFLOW, Client, ClientTotals
from quotascope.spark_listener.task import JobThrottles, attempt, throttle_scope, throttles
from quotascope.spark_listener.task.throttles import Adding, ThrottleLedger

ROW = ("alice", "etl", "write", 250, 2, 200, 1)


class Context:
    """SparkContext with the attributes that `JobThrottles` uses."""

    numbers = itertools.count(1)  # a process of PySpark gives none twice

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.files: list[str] = []

    def accumulator(self, value: object, param: Any) -> Any:
        return accumulators.Accumulator(self.number, value, param)

    def addPyFile(self, path: str) -> None:  # noqa: N802 - Spark's name
        self.files.append(path)


class Session:
    def __init__(self, context: Any) -> None:
        self.sparkContext = context


class Connected:
    """A session of Spark Connect, which has no context."""

    def __init__(self) -> None:
        self.artifacts: list[str] = []

    def addArtifacts(self, path: str, *, pyfile: bool) -> None:  # noqa: N802 - Spark's name
        assert pyfile
        self.artifacts.append(path)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulators, "_accumulatorRegistry", {})


def test_an_application_has_one() -> None:
    """All sessions of an application share one `JobThrottles`, which sends modules once if the cluster lacks them."""
    context, provided = Context(), Context()
    throttles, same = (JobThrottles.of(Session(context)) for _ in range(2))
    assert throttles is same
    assert throttles.carries_successes
    assert [path.rpartition("/")[2] for path in context.files] == ["quotascope_tasks.zip"]
    assert JobThrottles.of(Session(provided), ship_task_files=False) is not throttles
    assert provided.files == []


def test_what_arrives_in_a_task_knows_its_driver() -> None:
    """The object is pickled as a number, whatever it has counted; in the driver it becomes itself again."""
    context = Context()
    throttles = JobThrottles.of(Session(context))
    assert pickle.loads(pickle.dumps(throttles)) is throttles  # noqa: S301 - as Spark does
    del context
    stranger = pickle.loads(pickle.dumps(JobThrottles(5)))  # noqa: S301
    assert (stranger.accumulator, stranger.totals()) == (5, ())


def test_the_driver_counts_at_once() -> None:
    """A failure after a count loses nothing there."""
    throttles = JobThrottles.of(Session(Context()))

    def fail() -> None:
        with throttles.scope() as account:
            account.client("alice", "etl", "admin").retried()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no") as raised:
        fail()
    assert not hasattr(raised.value, "__notes__")
    ((query, totals),) = throttles.totals()
    assert (query, totals.quota_retries) == ("", 1)


def test_under_connect_only_failures_report(caplog: pytest.LogCaptureFixture) -> None:
    """Under Connect, a warning says that only failures report, and modules are sent unless the session refuses."""
    session = Connected()
    with caplog.at_level(logging.WARNING):
        throttles, refused = JobThrottles.of(session), JobThrottles.of(object())
    assert not throttles.carries_successes
    assert not refused.carries_successes
    assert "only attempts that fail report" in caplog.messages[0]
    assert len(session.artifacts) == 1
    assert "could not be sent" in caplog.messages[-1]


def test_without_spark_a_scope_still_counts(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark a scope counts, and a warning says that no listener is attached."""
    monkeypatch.setattr(throttles, "active_context", lambda: None)
    with caplog.at_level(logging.WARNING), throttle_scope() as account:
        account.client("alice", "etl", "write").throttled(7)
    assert account.totals()[0].throttled_ms == 7
    assert "no listener is attached" in caplog.text


def test_driver_that_has_lost_its_jvm_still_counts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scope raises nothing that the program would not have met without it."""

    def refuse() -> str:
        raise ConnectionRefusedError("of py4j")

    monkeypatch.setattr(throttles, "query_of_thread", refuse)
    job_throttles = JobThrottles()
    with caplog.at_level(logging.WARNING), job_throttles.scope() as account:
        account.client("alice", "etl", "write").throttled(7)
    assert [(query, client_totals.throttled_ms) for query, client_totals in job_throttles.totals()] == [("", 7)]
    assert "ConnectionRefusedError" in caplog.text


@pytest.mark.parametrize(
    ("properties", "query"),
    [({"sql.streaming.queryId": "q"}, "q"), ({"sql.streaming.queryId": ""}, ""), ({}, ""), (None, "")]
)  # fmt: skip
def test_the_streaming_query_of_a_driver(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str] | None, query: str
) -> None:
    """A driver's streaming query is named by a local property of foreachBatch's thread; without Spark there is none."""
    context = None if properties is None else SimpleNamespace(getLocalProperty=properties.get)
    monkeypatch.setattr(attempt, "active_context", lambda: context)
    assert attempt.query_of_thread() == query


def test_tasks_are_summed_by_query_and_client() -> None:
    """Tasks are summed by query and client; the longest throttle counts as recent when it arrives."""
    ledger = ThrottleLedger()
    for query, throttled_ms in (("", 250), ("q", 30), ("", 70)):
        ledger.add((1, 3, query, ((*ROW[:3], throttled_ms, 2, throttled_ms, 1),)))
    client = Client("alice", "etl", "write")
    assert ledger.totals() == (
        ("", ClientTotals(client, 320, 4, 250, recent_longest_ms=250, quota_retries=2)),
        ("q", ClientTotals(client, 30, 2, 30, recent_longest_ms=30, quota_retries=1)),
    )


def test_stages_are_remembered() -> None:
    """
    Stages in which a scope was open are remembered, so that attempts without a report can be counted.

    In bounded space.
    """
    ledger = ThrottleLedger()
    for stage in range(10_001):
        ledger.add((1, stage, "", ()))
    assert ledger.stages() == frozenset(range(1, 10_001))


@pytest.mark.parametrize(
    "sent",
    [
        None,
        5,
        (2, 3, "", ()),
        (1, 3, ""),
        (1, "3", "", ()),
        (1, 3, None, ()),
        (1, 3, "", (ROW[:-1],)),
        (1, 3, "", ((*ROW[:3], -1, 2, 3, 4),)),
        (1, 3, "", 7),
    ],
)
def test_what_cannot_be_read_is_left_out(sent: object, caplog: pytest.LogCaptureFixture) -> None:
    """An unreadable update is left out, as an exception would end the thread of all accumulators."""
    ledger, adding = ThrottleLedger(), Adding()
    with caplog.at_level(logging.WARNING):
        assert adding.addInPlace(ledger, adding.zero(ledger)) is ledger
        assert caplog.messages == []
        assert adding.addInPlace(ledger, sent) is ledger
    assert ledger.totals() == ()
    assert "not counted" in caplog.text


def test_too_many_queries_are_counted_as_one() -> None:
    """Queries beyond the maximum are counted as one, in bounded memory and with true sums."""
    ledger = ThrottleLedger()
    for number in range(150):
        ledger.add((1, 3, f"query-{number:03}", (ROW,)))
    ledger.add((1, 3, "query-000", (ROW,)))
    totals = dict(ledger.totals())
    assert len(totals) == 101
    assert totals[OVERFLOW].throttled_ms == 50 * 250
    assert totals["query-000"].throttled_ms == 2 * 250


def test_threads_do_not_lose_counts() -> None:
    """No count is lost when the accumulators' server and the driver's own scopes count at the same time."""
    ledger = ThrottleLedger()

    def work() -> None:
        for _ in range(500):
            ledger.add((1, 3, "", (ROW,)))
            ledger.account("").client("alice", "etl", "write").throttled(1)

    in_threads(work)
    ((_, totals),) = ledger.totals()
    assert totals.throttled_ms == 4 * 500 * 251
