import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent
from tests.builders.spark_events import STREAMING
from tests.spark_listener.recordings import NEWEST, Remembered, recorded

from quotascope.spark_listener.errors import SourceUnusable
from quotascope.spark_listener.sources import streaming
from quotascope.spark_listener.sources.streaming import StreamingSource

_KINDS: dict[str, tuple[Any, str]] = {
    "QueryStartedEvent": (QueryStartedEvent, "onQueryStarted"),
    "QueryProgressEvent": (QueryProgressEvent, "onQueryProgress"),
    "QueryTerminatedEvent": (QueryTerminatedEvent, "onQueryTerminated"),
}


class _Streams:
    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def addListener(self, listener: Any) -> None:  # noqa: N802 - PySpark's name
        self.listeners.append(listener)

    def removeListener(self, listener: Any) -> None:  # noqa: N802 - PySpark's name
        self.listeners.remove(listener)


def test_events_are_as_the_jvm_writes_them() -> None:
    """An event of PySpark is turned back without loss; one of another PySpark is lost, and raises nothing."""
    streams, books = _Streams(), Remembered()
    source = StreamingSource(SimpleNamespace(streams=streams), books)
    (listener,) = streams.listeners
    for event in recorded(NEWEST, "restarted"):
        if not event["Event"].startswith(STREAMING):
            continue
        event_class, method = _KINDS[event["Event"].rpartition("$")[2]]
        getattr(listener, method)(event_class.fromJson(event))
        actual = dict(books.events[-1])
        assert actual["Event"] == event["Event"]
        progress, expected = actual.pop("progress", {}), event.get("progress", {})
        assert actual.items() <= event.items()
        for key in ("id", "runId", "name", "batchId", "durationMs"):
            assert progress.get(key) == expected.get(key)
    assert {kind.rpartition("$")[2] for kind in books.kinds} == {*_KINDS}
    events_before = len(books.events)
    listener.onQueryTerminated(object())
    assert (len(books.events) - events_before, books.lost_events, source.collect()) == (0, 1, 0.0)
    source.close()
    assert streams.listeners == []


def test_stopped_session_is_left_alone() -> None:
    """The source ends then, and nothing can be removed from the session."""
    streams = _Streams()
    session = SimpleNamespace(streams=streams, is_stopped=False)
    source = StreamingSource(session, Remembered())
    ended = [source.ended]
    session.is_stopped = True
    source.close()
    assert [*ended, source.ended] == [False, True]
    assert len(streams.listeners) == 1


@pytest.mark.parametrize("answer", [None, RuntimeError("no such session")])
def test_server_that_is_gone_keeps_no_one_waiting(monkeypatch: pytest.MonkeyPatch, answer: Exception | None) -> None:
    """
    A server that is gone keeps no caller waiting: a thread goes on with PySpark's attempts to remove the listener.

    It ends with the program.
    """
    monkeypatch.setattr(streaming, "_PATIENCE_SECONDS", 0.01 if answer is None else 30)
    reached = threading.Event()

    class Lost(_Streams):
        def removeListener(self, _: Any) -> None:  # noqa: N802 - PySpark's name
            if answer is not None:
                raise answer
            reached.wait(30)

    source = StreamingSource(SimpleNamespace(streams=Lost()), Remembered())
    with pytest.raises(Exception, match="no such session" if answer else "Spark does not answer") as raised:
        source.close()
    assert raised.type is (RuntimeError if answer else TimeoutError)
    waiting = [thread for thread in threading.enumerate() if thread.name == "quotascope-streaming"]
    reached.set()
    assert [thread.daemon for thread in waiting] == ([] if answer else [True])
    for thread in waiting:
        thread.join(30)


def test_session_without_streams_cannot_be_used() -> None:
    """A session without streams is unusable as a source, with the reason."""
    with pytest.raises(SourceUnusable, match=r"streaming: .*no attribute 'streams'"):
        StreamingSource(SimpleNamespace(), Remembered())
