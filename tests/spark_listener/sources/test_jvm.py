"""The sources that reach into the driver's JVM, with a stand-in at py4j's border."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from tests.spark_listener.books import Remembered

from quotascope.spark_listener.sources import pull
from quotascope.spark_listener.sources.callbacks import CallbackSource

TASK_START = "org.apache.spark.scheduler.SparkListenerTaskStart"
TASK_END = "org.apache.spark.scheduler.SparkListenerTaskEnd"


class _Bus:
    """Remembers in what order it was used."""

    def __init__(self, calls: list[str]) -> None:
        self.drops = SimpleNamespace(getCount=lambda: 7)  # of an earlier listener
        self.add = lambda _: calls.append("add")
        self.remove = lambda _: calls.append("remove")
        self.settle = lambda: calls.append("settle")


class _Queue:
    """Gives batches: of each the texts, and how much was skipped and refused so far."""

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
    made = pull.PullSource(MagicMock(), books, wanted=(), capacity=1_000)
    return made, books, calls


def _text(kind: str) -> str:
    return json.dumps({"Event": kind})


def test_what_is_in_the_queue_at_the_end_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that Spark has posted first; then the listener leaves the bus."""
    last = ([_text("SparkListenerJobEnd"), ""], 5, 1)
    source, books, calls = _pulling(monkeypatch, last)
    source.close()
    assert calls == ["add", "settle", "remove"]
    assert books.kinds == ["SparkListenerJobEnd"]
    assert (books.passed_events, books.lost_events) == (5, 2)


def test_a_bus_that_has_ended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the event with which an application ends there is no other."""
    end = ([_text("SparkListenerApplicationEnd")], 5, 3)
    rest: tuple[list[str], int, int] = ([], 7, 3)
    source, books, calls = _pulling(monkeypatch, end, rest)
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
    return CallbackSource(context, books, wanted=(TASK_START, TASK_END)), books


def _event(kind: str, **values: Any) -> SimpleNamespace:
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: kind), **values)


@pytest.mark.parametrize(
    ("stage_attempt", "number", "fetched"), [(0, 0, False), (0, 1, True), (1, 0, True), (1, 1, True)]
)
def test_only_first_starts_of_tasks_are_passed(
    monkeypatch: pytest.MonkeyPatch,
    stage_attempt: int,
    number: int,
    fetched: bool,  # noqa: FBT001 - a case
) -> None:
    """Of a task in the first attempt at its stage; a repetition of either counts as a retry."""
    source, books = _calling(monkeypatch)
    task = SimpleNamespace(attemptNumber=lambda: number)
    event = _event(TASK_START, stageAttemptId=lambda: stage_attempt, taskInfo=lambda: task)
    source._on_event(event)
    assert (books.kinds, books.passed_events) == (([TASK_START], 0) if fetched else ([], 1))


@pytest.mark.parametrize("successful", [False, True])
def test_successful_tasks_are_passed(
    monkeypatch: pytest.MonkeyPatch,
    successful: bool,  # noqa: FBT001 - a case
) -> None:
    """Failed ones are fetched."""
    source, books = _calling(monkeypatch)
    task = SimpleNamespace(successful=lambda: successful)
    source._on_event(_event(TASK_END, taskInfo=lambda: task))
    assert (books.kinds, books.passed_events) == (([], 1) if successful else ([TASK_END], 0))


def test_an_event_that_cannot_be_read_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """And counted; an unwanted one is not."""
    source, books = _calling(monkeypatch)
    source._on_event(object())
    source._on_event(_event("org.apache.spark.Other"))
    assert (books.kinds, books.passed_events, books.lost_events) == ([], 0, 1)
