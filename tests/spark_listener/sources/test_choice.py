import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders.spark_events import query_started
from tests.spark_listener.recordings import NEWEST, log_of

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
LOG = LogPlace(path=log_of(NEWEST, "plain"))


def _opened(
    source: str = "auto",
    *,
    context: Any = None,
    session: Any = SESSION,
    log: LogPlace | None = None,
    job: Job | None = None,
) -> tuple[list[str], list[str]]:
    unusable: list[SourceUnusable] = []
    opened = open_sources(
        context=context,
        session=session,
        log=log,
        job=job or Job("app"),
        settings=ListenerSettings(source=source),
        report=unusable.append,
    )
    for event_source in opened:
        event_source.close()
    return [event_source.name for event_source in opened], [error.source for error in unusable]


BOTH = ["streaming", "event_log"]


@pytest.mark.parametrize(
    ("source", "options", "opened", "unusable"),
    [
        pytest.param("auto", {}, ["streaming"], [], id="connect"),
        pytest.param("auto", {"log": LOG}, BOTH, [], id="connect with a log"),
        pytest.param("auto", {"context": REFUSES, "log": LOG}, BOTH, ["pull", "callbacks"], id="JVM out of reach"),
        pytest.param("auto", {"session": REFUSES, "log": LOG}, ["event_log"], ["streaming"], id="no queries"),
        pytest.param("auto", {"session": REFUSES}, [], ["streaming"], id="nothing works"),
        pytest.param("event_log", {"log": LOG}, ["event_log"], [], id="what was asked for is alone"),
        pytest.param("streaming", {"log": LOG}, ["streaming"], [], id="without the log, too"),
        pytest.param("streaming", {"session": REFUSES, "log": LOG}, ["event_log"], ["streaming"], id="queries in vain"),
        pytest.param("pull", {}, ["streaming"], ["pull"], id="pull in vain"),
        pytest.param("callbacks", {}, ["streaming"], ["callbacks"], id="callbacks in vain"),
        pytest.param("event_log", {}, ["streaming"], ["event_log"], id="log in vain"),
        pytest.param("pull", {"context": REFUSES}, ["streaming"], ["pull", "callbacks"], id="pull first"),
        pytest.param("callbacks", {"context": REFUSES}, ["streaming"], ["callbacks", "pull"], id="callbacks first"),
    ],
)
def test_the_best_that_works_is_opened(
    source: str, options: dict[str, Any], opened: list[str], unusable: list[str]
) -> None:
    """The requested source is tried first, and each that does not work is reported once."""
    assert _opened(source, **options) == (opened, unusable)


@pytest.mark.parametrize(("session", "reported"), [(SESSION, 0), (REFUSES, 1)])
def test_queries_are_reported_once(tmp_path: Path, session: Any, reported: int) -> None:
    """The streaming listener reports queries; the log does so only where that does not work."""
    log = tmp_path / "local-1.inprogress"
    log.write_text(f"{json.dumps(query_started())}\n")
    job = Job("app")
    _opened(session=session, log=LogPlace(path=log), job=job)
    assert len(job.snapshot().queries) == reported


@pytest.mark.parametrize("successes", [False, True])
def test_successes_are_fetched_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    successes: bool,  # noqa: FBT001 - a case
) -> None:
    """
    `spark.quotascope.successes` fetches successes, which are otherwise counted in the JVM only.

    The queue has the set length.
    """
    calls: list[dict[str, Any]] = []

    def pull(*_: Any, **options: Any) -> SimpleNamespace:
        calls.append(options)
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
    assert [(call["thin"], call["capacity"]) for call in calls] == [(not successes, 123)]
