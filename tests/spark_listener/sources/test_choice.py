from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.spark_listener.recordings import STREAMING, log_of

from quotascope.spark_listener.errors import SourceUnusable
from quotascope.spark_listener.job import Job
from quotascope.spark_listener.settings import ListenerSettings
from quotascope.spark_listener.sources import choice
from quotascope.spark_listener.sources.choice import open_sources
from quotascope.spark_listener.sources.event_log import LogPlace

STREAMS = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
SESSION = SimpleNamespace(streams=STREAMS)
REFUSES = SimpleNamespace()
"""A SparkContext that lets no one near its JVM."""
LOG = LogPlace(path=log_of("4.3.0", "plain"))


def _opened(
    source: str = "auto",
    *,
    context: Any = None,
    session: Any = SESSION,
    log: LogPlace | None = None,
    job: Job | None = None,
) -> tuple[list[str], list[str]]:
    """The names of what was opened, and of what could not be."""
    unusable: list[SourceUnusable] = []
    opened = open_sources(
        context=context,
        session=session,
        log=log,
        job=job or Job("app"),
        settings=ListenerSettings(source=source),
        report=unusable.append,
    )
    for each in opened:
        each.close()
    return [each.name for each in opened], [each.source for each in unusable]


@pytest.mark.parametrize(("log", "opened"), [(None, ["streaming"]), (LOG, ["streaming", "event_log"])])
def test_connect_has_queries_and_perhaps_a_log(log: LogPlace | None, opened: list[str]) -> None:
    """Nothing of that is a problem."""
    assert _opened(log=log) == (opened, [])


def test_driver_whose_jvm_is_out_of_reach_has_them_too() -> None:
    """And it is said that the better sources do not work."""
    opened = ["streaming", "event_log"]
    assert _opened(context=REFUSES, log=LOG) == (opened, ["pull", "callbacks"])


@pytest.mark.parametrize(("session", "reported"), [(SESSION, 0), (REFUSES, 1)])
def test_queries_are_reported_once(tmp_path: Path, session: Any, reported: int) -> None:
    """By the streaming listener; by the log only where that does not work."""
    start = f'{{"Event":"{STREAMING}QueryStartedEvent","id":"1","runId":"1","name":null,"timestamp":"2026-01-01T00:00:00Z"}}'
    log = tmp_path / "local-1.inprogress"
    log.write_text(f"{start}\n")
    job = Job("app")
    _opened(session=session, log=LogPlace(path=log), job=job)
    assert len(job.snapshot().queries) == reported


@pytest.mark.parametrize("source", ["pull", "callbacks"])
def test_no_source_is_tried_twice(source: str) -> None:
    """The one of the settings comes first, and each is reported once."""
    _, unusable = _opened(source, context=REFUSES)
    assert unusable[0] == source
    assert sorted(unusable) == ["callbacks", "pull"]


def test_log_alone_is_better_than_nothing() -> None:
    """When streaming queries cannot be listened to."""
    assert _opened(session=REFUSES, log=LOG) == (["event_log"], ["streaming"])


def test_nothing_may_work() -> None:
    """Each way that was tried is reported."""
    assert _opened(session=REFUSES) == ([], ["streaming"])


def test_source_that_was_asked_for_is_alone() -> None:
    """Even where others would work."""
    assert _opened("event_log", log=LOG) == (["event_log"], [])
    assert _opened("streaming", log=LOG) == (["streaming"], [])


@pytest.mark.parametrize("source", ["pull", "callbacks", "event_log"])
def test_source_that_was_asked_for_in_vain_is_replaced(source: str) -> None:
    """By the best that works."""
    assert _opened(source) == (["streaming"], [source])


@pytest.mark.parametrize("successes", [False, True])
def test_successes_are_fetched_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    successes: bool,  # noqa: FBT001 - a case
) -> None:
    """`spark.quotascope.successes`: else they are counted in the JVM and left there. The queue is as long as set."""
    given: list[dict[str, Any]] = []

    def pull(*_: Any, **options: Any) -> SimpleNamespace:
        given.append(options)
        return SimpleNamespace(name="pull", close=lambda: None)

    monkeypatch.setattr(choice, "PullSource", pull)
    open_sources(
        context=SimpleNamespace(),
        session=SESSION,
        log=None,
        job=Job("app"),
        settings=ListenerSettings(source="pull", successes=successes, queue_capacity=123),
        report=lambda _: None,
    )
    assert [(each["thin"], each["capacity"]) for each in given] == [(not successes, 123)]
