import itertools
import logging
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import accumulators

from quotascope.clients.accounting import ThrottleAccount
from quotascope.spark_listener.task import (
    JobThrottles,
    attempt,
    throttle_scope,
    throttles,
)


class Context:
    """As far as `JobThrottles` looks, a `SparkContext`."""

    numbers = itertools.count(1)  # a process of PySpark gives none twice

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.files: list[str] = []

    def accumulator(self, value: object, param: Any) -> Any:
        """As Spark's."""
        return accumulators.Accumulator(self.number, value, param)

    def addPyFile(self, path: str) -> None:  # noqa: N802 - Spark's name
        """Note it."""
        self.files.append(path)


class Session:
    """A classic one."""

    def __init__(self, context: Any) -> None:
        self.sparkContext = context


class Connected:
    """One of Spark Connect, which has no context."""

    def __init__(self) -> None:
        self.artifacts: list[str] = []

    def addArtifacts(self, path: str, *, pyfile: bool) -> None:  # noqa: N802 - Spark's name
        """Note it."""
        assert pyfile
        self.artifacts.append(path)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulators, "_accumulatorRegistry", {})


def test_an_application_has_one() -> None:
    """Whoever asks, and the modules are sent once."""
    context = Context()
    one, other = (JobThrottles.of(Session(context)) for _ in range(2))
    assert one is other
    assert one.carries_successes
    assert [each.rpartition("/")[2] for each in context.files] == ["quotascope_tasks.zip"]  # fmt: skip
    assert JobThrottles.of(Session(Context())) is not one


def test_files_are_sent_only_if_wanted() -> None:
    """A cluster may have them already."""
    context = Context()
    JobThrottles.of(Session(context), ship_task_files=False)
    assert context.files == []


def test_what_arrives_in_a_task_knows_its_driver() -> None:
    """It is a number, whatever was counted so far; back in the driver it is itself."""
    context = Context()
    made = JobThrottles.of(Session(context))
    assert pickle.loads(pickle.dumps(made)) is made  # noqa: S301 - as Spark does
    del context
    stranger = pickle.loads(pickle.dumps(JobThrottles(5)))  # noqa: S301
    assert (stranger.accumulator, stranger.totals()) == (5, ())


def test_the_driver_counts_at_once() -> None:
    """Nothing is lost there when something fails."""
    made = JobThrottles.of(Session(context := Context()))
    error = ValueError("no")
    with pytest.raises(ValueError, match="no"), made.scope() as account:
        raise _retried(account, error)
    assert not hasattr(error, "__notes__")
    ((query, totals),) = made.totals()
    assert (query, totals.quota_retries) == ("", 1)
    assert context.files


def _retried(account: ThrottleAccount, error: ValueError) -> ValueError:
    account.client("alice", "etl", "admin").retried()
    return error


def test_under_connect_only_failures_tell(caplog: pytest.LogCaptureFixture) -> None:
    """A warning says so, and the modules are sent all the same."""
    session = Connected()
    with caplog.at_level(logging.WARNING):
        made = JobThrottles.of(session)
    assert not made.carries_successes
    assert "only attempts that fail report" in caplog.text
    assert len(session.artifacts) == 1


def test_a_session_that_refuses_is_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever it is."""
    with caplog.at_level(logging.WARNING):
        assert not JobThrottles.of(object()).carries_successes
    assert "could not be sent" in caplog.text


def test_without_spark_a_scope_still_counts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program runs as it would with one, and a warning says that nobody listens."""
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
    made = JobThrottles()
    with caplog.at_level(logging.WARNING), made.scope() as account:
        account.client("alice", "etl", "write").throttled(7)
    assert [(query, each.throttled_ms) for query, each in made.totals()] == [("", 7)]
    assert "ConnectionRefusedError" in caplog.text


@pytest.mark.parametrize(
    ("properties", "query"),
    [({"sql.streaming.queryId": "q"}, "q"), ({"sql.streaming.queryId": ""}, ""), ({}, "")],
)  # fmt: skip
def test_the_streaming_query_of_a_driver(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], query: str
) -> None:
    """Spark names it in a local property of the thread that runs foreachBatch."""
    context = SimpleNamespace(getLocalProperty=properties.get)
    monkeypatch.setattr(attempt, "active_context", lambda: context)
    assert attempt.query_of_thread() == query


def test_no_streaming_query_without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no error either."""
    monkeypatch.setattr(attempt, "active_context", lambda: None)
    assert attempt.query_of_thread() == ""
