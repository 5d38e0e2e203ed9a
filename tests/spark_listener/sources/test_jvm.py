"""The sources that reach into the driver's JVM, with a stand-in at py4j's border."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from tests.spark_listener.books import Remembered

from quotascope.spark_listener.sources.callbacks import CallbackSource
from quotascope.spark_listener.sources.pull import source as pull
from quotascope.spark_listener.sources.pull.batches import EventBatch
from quotascope.spark_listener.sources.pull.handles import Handles
from quotascope.spark_listener.sources.pull.listener import QueueingListener

TASK_START = "org.apache.spark.scheduler.SparkListenerTaskStart"
TASK_END = "org.apache.spark.scheduler.SparkListenerTaskEnd"
JOB_END = "org.apache.spark.scheduler.SparkListenerJobEnd"


class _Bus:
    """Remembers in what order it was used."""

    def __init__(self, calls: list[str]) -> None:
        self.java = None
        self.drops = None
        self.add = lambda _: calls.append("add")
        self.remove = lambda _: calls.append("remove")
        self.settle = lambda _: calls.append("settle")


class _Queue:
    """Gives batches: of each the texts, and how much was skipped, refused and dropped so far."""

    def __init__(self, *batches: EventBatch) -> None:
        self._batches = [EventBatch(texts=(), counts=(0, 0, 0)), *batches]

    def take(self) -> EventBatch:
        return self._batches.pop(0)


def _pulling(
    monkeypatch: pytest.MonkeyPatch, *batches: EventBatch
) -> tuple[pull.PullSource, Remembered, list[str]]:
    calls: list[str] = []
    books, queue = Remembered(), _Queue(*batches)
    monkeypatch.setattr(pull, "ListenerBus", lambda _: _Bus(calls))
    monkeypatch.setattr(pull, "Handles", MagicMock())
    monkeypatch.setattr(pull, "QueueingListener", MagicMock())
    monkeypatch.setattr(pull, "Batches", lambda *_: queue)
    made = pull.PullSource(MagicMock(), books, wanted=(), capacity=1_000)
    return made, books, calls


def _text(kind: str) -> str:
    return json.dumps({"Event": kind})


def test_what_is_in_the_queue_at_the_end_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that Spark has posted first; then the listener leaves the bus."""
    last = EventBatch(texts=(_text("SparkListenerJobEnd"),), counts=(5, 1, 2))
    source, books, calls = _pulling(monkeypatch, last)
    source.close()
    assert calls == ["add", "settle", "remove"]
    assert books.kinds == ["SparkListenerJobEnd"]
    assert (books.passed_events, books.lost_events) == (5, 3)


def test_a_bus_that_has_ended_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the event with which an application ends there is no other."""
    end = EventBatch(texts=(_text("SparkListenerApplicationEnd"),), counts=(5, 1, 2))
    rest = EventBatch(texts=(), counts=(7, 1, 2))
    source, books, calls = _pulling(monkeypatch, end, rest)
    source.collect()
    assert source.ended
    source.close()
    assert calls == ["add", "remove"]
    assert (books.passed_events, books.lost_events) == (7, 3)


def test_an_array_holds_its_values() -> None:
    """In their order."""
    gateway = MagicMock()
    gateway.new_array = lambda _kind, length: [None] * length
    assert Handles(gateway).array("int", "a", "b", "c") == ["a", "b", "c"]


class _Function:
    """A method handle, as Python has it."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def bindTo(self, first: Any) -> _Function:  # noqa: N802 - Java's name
        return _Function(partial(self._call, first))


class _Functions:
    """As `Handles`, but what it makes runs here."""

    def kind(self, name: str) -> MagicMock:
        return MagicMock(newInstance=_Count, jvm_name=name)

    def array(self, _kind: Any, *values: Any) -> list[Any]:
        return [*values]

    def method(self, _owner: str, name: str, *_types: str) -> _Function:
        return _Function(lambda of, *given: getattr(of, name)(*given))

    def static(self, *_names: str) -> _Function:
        return _Function(lambda one, other: one == other)  # Objects.equals

    def constant(self, _kind: str, value: Any) -> _Function:
        return _Function(lambda: value)

    def cast(self, function: _Function, *_types: str) -> _Function:
        return function

    def bind(self, function: _Function, _position: int, value: Any) -> _Function:
        return function.bindTo(value)

    def ignoring(self, function: _Function, *kinds: str) -> _Function:
        return _Function(lambda *given: function(*given[len(kinds) :]))

    def of(self, outer: _Function, inner: _Function) -> _Function:
        return _Function(lambda *given: outer(inner(*given)))

    def either(self, test: _Function, then: _Function, other: _Function) -> _Function:
        return _Function(lambda *given: then(*given) if test(*given) else other(*given))

    def is_a(self, name: str) -> _Function:
        return _Function(lambda found: found.getClass() == name)

    def guarded(self, function: _Function, fallback: _Function) -> _Function:
        def call(*given: Any) -> Any:
            try:
                return function(*given)
            except Exception as error:  # noqa: BLE001 - as Java's Throwable
                return fallback(error, *given)

        return _Function(call)


class _Count:
    """A counter of Spark's."""

    def __init__(self) -> None:
        self.count = 0

    def inc(self) -> None:
        """One more."""
        self.count += 1


class _Places:
    """Java's queue of so many places."""

    def __init__(self, places: int) -> None:
        self.held: list[Any] = []
        self._places = places

    def offer(self, event: Any) -> bool:
        """Whether there was a place."""
        if len(self.held) == self._places:
            return False
        self.held.append(event)
        return True


def _started(stage_attempt: int, number: int) -> Any:
    task = SimpleNamespace(attemptNumber=lambda: number)
    return SimpleNamespace(getClass=lambda: TASK_START, stageAttemptId=lambda: stage_attempt, taskInfo=lambda: task)  # fmt: skip


def _ended(reason: str) -> Any:
    told = SimpleNamespace(getClass=lambda: reason)
    return SimpleNamespace(getClass=lambda: TASK_END, reason=lambda: told)


FIRST, REPEATED, RESUBMITTED = _started(0, 0), _started(0, 1), _started(1, 0)
SUCCEEDED = _ended("org.apache.spark.Success$")
FAILED = _ended("org.apache.spark.ExceptionFailure")
OTHER = SimpleNamespace(getClass=lambda: JOB_END)
UNWANTED = SimpleNamespace(getClass=lambda: "org.apache.spark.Other")
EVENTS = [FIRST, SUCCEEDED, REPEATED, RESUBMITTED, FAILED, OTHER, UNWANTED]


@pytest.mark.parametrize(
    ("thin", "places", "kept", "skipped", "refused"),
    [
        (True, 99, [REPEATED, RESUBMITTED, FAILED, OTHER], 2, 0),
        (False, 99, [FIRST, SUCCEEDED, REPEATED, RESUBMITTED, FAILED, OTHER], 0, 0),
        (True, 3, [REPEATED, RESUBMITTED, FAILED], 2, 1),
        (False, 1, [FIRST], 0, 5),
    ],
)
def test_the_queue_holds_what_is_worth_it(
    monkeypatch: pytest.MonkeyPatch,
    thin: bool,  # noqa: FBT001 - a case
    places: int,
    kept: list[Any],
    skipped: int,
    refused: int,
) -> None:
    """First starts and successes are only counted when `thin`, unwanted events not at all, and what finds no place is lost."""
    monkeypatch.setattr(QueueingListener, "_handler", lambda _self, _jvm, made: made)
    jvm, functions = MagicMock(), _Functions()
    jvm.java.util.concurrent.LinkedBlockingQueue = _Places
    jvm.java.lang.reflect.Proxy.newProxyInstance = lambda *given: given[-1]
    names = {TASK_START, TASK_END, JOB_END}
    wanted = SimpleNamespace(contains=names.__contains__)
    made: Any = QueueingListener(cast("Handles", functions), jvm, capacity=places, wanted=wanted, thin=thin)  # fmt: skip
    for event in EVENTS:
        made.java(event)
    assert made.queue.held == kept
    assert (made.skipped.java.count, made.refused.java.count) == (skipped, refused)


def _calling(monkeypatch: pytest.MonkeyPatch) -> tuple[CallbackSource, Remembered]:
    monkeypatch.setattr("pyspark.java_gateway.ensure_callback_server_started", lambda _: None)  # fmt: skip
    context, books = MagicMock(), Remembered()
    bus = context._jsc.sc.return_value.listenerBus.return_value
    bus.metrics().metricRegistry().counter.return_value.getCount.return_value = 0
    named = [SimpleNamespace(getName=lambda: "addToQueue", invoke=lambda *_: None)]
    bus.getClass.return_value.getMethods.return_value = named
    to_json = context._jvm.org.apache.spark.util.JsonProtocol.sparkEventToJsonString
    to_json.side_effect = lambda event: _text(event.getClass().getName())
    return CallbackSource(context, books, wanted=(TASK_START, TASK_END)), books


def _event(kind: str, **values: Any) -> SimpleNamespace:
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: kind), **values)  # fmt: skip


@pytest.mark.parametrize(
    ("stage_attempt", "number", "fetched"),
    [(0, 0, False), (0, 1, True), (1, 0, True), (1, 1, True)],
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
    event = _event(TASK_START, stageAttemptId=lambda: stage_attempt, taskInfo=lambda: task)  # fmt: skip
    source._on_event(event)
    assert (books.kinds, books.passed_events) == (([TASK_START], 0) if fetched else ([], 1))  # fmt: skip


@pytest.mark.parametrize("successful", [False, True])
def test_successful_tasks_are_passed(
    monkeypatch: pytest.MonkeyPatch,
    successful: bool,  # noqa: FBT001 - a case
) -> None:
    """Failed ones are fetched."""
    source, books = _calling(monkeypatch)
    task = SimpleNamespace(successful=lambda: successful)
    source._on_event(_event(TASK_END, taskInfo=lambda: task))
    assert (books.kinds, books.passed_events) == (([], 1) if successful else ([TASK_END], 0))  # fmt: skip


def test_an_event_that_cannot_be_read_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """And counted; an unwanted one is not."""
    source, books = _calling(monkeypatch)
    source._on_event(object())
    source._on_event(_event("org.apache.spark.Other"))
    assert (books.kinds, books.passed_events, books.lost_events) == ([], 0, 1)
