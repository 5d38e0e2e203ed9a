"""The sources that reach into the driver's JVM, with a stand-in at py4j's border."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.builders.spark_events import ended, executor_removed, stage_completed, started
from tests.spark_listener.recordings import Remembered

from quotascope.spark_listener.sources import pull
from quotascope.spark_listener.sources.callbacks import CallbackSource
from quotascope.spark_listener.sources.source import lateness

TASK_START = "org.apache.spark.scheduler.SparkListenerTaskStart"
TASK_END = "org.apache.spark.scheduler.SparkListenerTaskEnd"


class _Bus:
    def __init__(self, calls: list[str]) -> None:
        self.drops = SimpleNamespace(getCount=lambda: 7)  # of an earlier listener
        self.add = lambda _: calls.append("add")
        self.remove = lambda _: calls.append("remove")
        self.settle = lambda: calls.append("settle")


class _Queue:
    """A queue that gives batches: texts, and how much was skipped and refused so far."""

    def __init__(self, *batches: tuple[list[str], int, int]) -> None:
        self._batches = [*batches]

    def take(self, _most: int) -> str:
        texts, *counts = self._batches.pop(0)
        return "\n".join([*texts, *map(str, counts)])


def _pulling(
    monkeypatch: pytest.MonkeyPatch, *batches: tuple[list[str], int, int]
) -> tuple[pull.PullSource, Remembered, list[str]]:
    calls: list[str] = []
    books, queue = Remembered(), _Queue(*batches)
    monkeypatch.setattr(pull, "ListenerBus", lambda _: _Bus(calls))
    monkeypatch.setattr(pull, "_event_queue", lambda *_, **__: queue)
    source = pull.PullSource(MagicMock(), books, event_names=(), capacity=1_000)
    return source, books, calls


def _text(kind: str) -> str:
    return json.dumps({"Event": kind})


def test_what_is_in_the_queue_at_the_end_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """All events that Spark has posted are fetched at the end, before the listener leaves the bus."""
    last_answer = ([_text("SparkListenerJobEnd"), ""], 5, 1)
    source, books, calls = _pulling(monkeypatch, last_answer)
    source.close()
    assert calls == ["add", "settle", "remove"]
    assert books.kinds == ["SparkListenerJobEnd"]
    assert (books.passed_events, books.lost_events) == (5, 2)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ('{"Event":"SparkListenerStageSubmitted","Stage Info":{"RDD Info":[', 0),
        ('{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progress":{', 0),
        ('{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task End Reason":{"Description":"', 1),
        ("", 1),
    ],
)
def test_event_that_is_too_long(monkeypatch: pytest.MonkeyPatch, text: str, ends: int) -> None:
    """An event that is too long is lost, and its beginning says if it may have been an attempt's end."""
    source, books, _ = _pulling(monkeypatch, ([text], 0, 0))
    source.collect()
    assert (books.lost_events, books.lost_ends) == (1, ends)


def test_a_bus_that_has_ended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bus that has ended is not waited for, as no event follows the application's end."""
    end = ([_text("SparkListenerApplicationEnd")], 5, 3)
    remainder: tuple[list[str], int, int] = ([], 7, 3)
    source, books, calls = _pulling(monkeypatch, end, remainder)
    source.collect()
    assert source.ended
    source.close()
    assert calls == ["add", "remove"]
    assert (books.passed_events, books.lost_events) == (7, 3)


def _calling(monkeypatch: pytest.MonkeyPatch) -> tuple[CallbackSource, Remembered]:
    monkeypatch.setattr("pyspark.java_gateway.ensure_callback_server_started", lambda _: None)
    context, books = MagicMock(), Remembered()
    bus = context._jsc.sc.return_value.listenerBus.return_value
    bus.metrics().metricRegistry().counter.return_value.getCount.return_value = 0
    named = [SimpleNamespace(getName=lambda: "addToQueue", invoke=lambda *_: None)]
    bus.getClass.return_value.getMethods.return_value = named
    to_json = context._jvm.org.apache.spark.util.JsonProtocol.sparkEventToJsonString
    to_json.side_effect = lambda event: _text(event.getClass().getName())
    return CallbackSource(context, books, event_names=(TASK_START, TASK_END)), books


def _event(kind: str, **values: Any) -> SimpleNamespace:
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: kind), **values)


def _started(stage_attempt: int, number: int) -> SimpleNamespace:
    task = SimpleNamespace(attemptNumber=lambda: number)
    return _event(TASK_START, stageAttemptId=lambda: stage_attempt, taskInfo=lambda: task)


def _ended(reason: str, *, successful: bool) -> SimpleNamespace:
    ending = SimpleNamespace(productPrefix=lambda: reason)
    return _event(TASK_END, reason=lambda: ending, taskInfo=lambda: SimpleNamespace(successful=lambda: successful))


FAILED = _ended("ExceptionFailure", successful=False)
LOST = _ended("Resubmitted", successful=True)
"""The output of a task that had succeeded."""


@pytest.mark.parametrize("event", [_started(0, 1), _started(1, 0), _started(1, 1), FAILED, LOST])
def test_repeated_and_failed_tasks_are_fetched(monkeypatch: pytest.MonkeyPatch, event: SimpleNamespace) -> None:
    """A repetition of a task, or of an attempt at its stage, counts as a retry."""
    source, books = _calling(monkeypatch)
    source._on_event(event)
    assert (books.kinds, books.passed_events) == ([event.getClass().getName()], 0)


@pytest.mark.parametrize("event", [_started(0, 0), _ended("Success", successful=True)])
def test_first_starts_and_successes_are_passed(monkeypatch: pytest.MonkeyPatch, event: SimpleNamespace) -> None:
    """First starts and successes are counted and not passed on."""
    source, books = _calling(monkeypatch)
    source._on_event(event)
    assert (books.kinds, books.passed_events) == ([], 1)


def test_an_event_that_cannot_be_read_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A malformed event is counted as lost without an exception on the bus. An unwanted one is not counted."""
    source, books = _calling(monkeypatch)
    source._on_event(object())
    source._on_event(_event("org.apache.spark.Other"))
    assert (books.kinds, books.passed_events, books.lost_events) == ([], 0, 1)
    monkeypatch.setattr(books, "handle", lambda _: 1 / 0)
    source._on_event(FAILED)
    assert books.lost_events == 2


NOW = 1_000.0


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        (ended(over=997.5), 2.5),
        (stage_completed(1, info={"Completion Time": 997_500}), 2.5),
        ({"Event": "SparkListenerJobStart", "Submission Time": 997_500}, 2.5),
        (executor_removed("1", 997.5), 2.5),
        ({}, 0),
        (started(), 0),
        ({"Event": "SparkListenerTaskEnd"}, 0),
        (ended("Resubmitted", over=1), 0),
        ({"Event": "SparkListenerTaskEnd", "Task Info": None}, 0),
        ({"Event": "SparkListenerTaskEnd", "Task Info": {"Finish Time": 0}}, 0),
        ({"Event": "SparkListenerTaskEnd", "Task Info": {"Finish Time": "x"}}, 0),
        ({"Event": "SparkListenerJobEnd", "Completion Time": 1_000_500}, 0),
    ],
)
def test_lateness_is_since_the_event_was_posted(event: dict[str, Any], seconds: float) -> None:
    """An event's lateness counts from its own time field, and is 0 if that is missing or ahead."""
    assert lateness(event, NOW) == seconds
