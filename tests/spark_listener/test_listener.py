import logging
import os
import subprocess
import sys
import threading

import pytest

from quotascope.spark_listener import Listener
from quotascope.spark_listener.job import Job


class _Source:
    """A source that does as its settings say."""

    def __init__(self, name: str = "pull", late: float = 0.0) -> None:
        self.name = name
        self.late = late
        self.ended = False
        self.calls: list[str] = []
        self.error: Exception | None = None

    def collect(self) -> float:
        self.calls.append("collect")
        if self.error is not None:
            raise self.error
        return self.late

    def close(self) -> None:
        self.calls.append("close")
        if self.error is not None:
            raise self.error


def _listener(*sources: _Source, interval_seconds: float = 3_600) -> Listener:
    listener = Listener(Job("app"), interval_seconds)
    listener.start(sources)
    return listener.hold()


def test_source_is_said() -> None:
    """The listener reports its source while that is live, and so do the numbers."""
    listener = _listener(_Source("streaming"), _Source("event_log"))
    sources = [(listener.source, listener.snapshot().sources)]
    listener.close()
    sources.append((listener.source, listener.snapshot().sources))
    assert sources == [("streaming+event_log", ("streaming", "event_log")), ("none", ())]


def test_lag_is_that_of_the_latest_source() -> None:
    """The lag stays until the next fetch, and is 0 at the end; a source that fails is neither late nor early."""
    broken, late, later = _Source("a"), _Source("b", late=0.5), _Source("c", late=2.5)
    broken.error = OSError("gone")
    for sources, lag_seconds in (((broken,), 0.0), ((broken, late), 0.5), ((later, late), 2.5)):
        with _listener(*sources) as listener:
            assert listener.collect().lag_seconds == lag_seconds
        assert listener.snapshot().lag_seconds == 0.0


def test_close_is_counted() -> None:
    """The last of as many calls as there were holders closes; more do nothing."""
    source = _Source()
    listener = _listener(source).hold()
    ended = []
    for _ in range(3):
        listener.close()
        ended.append(listener.ended)
    assert (ended, source.calls) == ([False, True, True], ["close"])


def test_listener_ends_with_its_application() -> None:
    """The listener's numbers stay; its reports are ended by `close` only."""
    source = _Source()
    source.ended = True
    calls: list[str] = []
    listener = _listener(source, interval_seconds=0.001)
    listener.at_end("reporting", lambda: calls.append("last"))
    assert listener._thread is not None
    assert listener._thread.daemon
    listener._thread.join(30)
    assert (listener.ended, source.calls, calls) == (True, ["collect", "close"], [])
    listener.close()
    assert calls == ["last"]


def test_listener_without_a_source_shows_what_others_count() -> None:
    """The listener collects turn by turn, until the application has stopped."""
    turns = threading.Semaphore(0)
    over = threading.Event()

    def stopped() -> bool:
        turns.release()
        return over.is_set()

    listener = Listener(Job("app"), 0.001)
    listener.start((), stopped)
    for _ in range(3):
        assert turns.acquire(timeout=30)
    assert (listener.ended, listener.source) == (False, "none")
    over.set()
    assert listener._thread is not None
    listener._thread.join(30)
    assert listener.ended
    listener.end()


def test_last_numbers_are_shown_after_the_last_fetch() -> None:
    """
    Parts show the last numbers in the order in which they began.

    A part that cannot end is a problem, and does not keep the others from it.
    """
    source = _Source()
    listener = _listener(source)
    listener.at_end("summary", lambda: source.calls.append("summary"))
    listener.at_end("disk", lambda: (_ for _ in ()).throw(OSError("disk full")))
    listener.at_end("reporting", lambda: source.calls.append("reporting"))
    listener.close()
    assert source.calls == ["close", "summary", "reporting"]
    assert [problem.part for problem in listener.problems] == ["disk"]


def test_failures_are_values(caplog: pytest.LogCaptureFixture) -> None:
    """A failure is logged once, counted each time and never raised; ever new words do not fill the memory."""
    source = _Source()
    source.error = OSError("no such\nthing")
    listener = _listener(source)
    with caplog.at_level(logging.WARNING):
        listener.collect()
        listener.collect()
    assert [problem.text for problem in listener.problems] == ["no such thing"]
    assert caplog.messages == ["watching this job, pull: no such thing"]
    assert listener.snapshot().problems == (("pull", 2),)
    listener.close()
    assert listener.snapshot().problems == (("pull", 3),)
    for number in range(1_000):
        listener.problem("pull", str(number))
    assert len(listener.problems) == 50


def test_source_that_goes_on_failing_is_given_up() -> None:
    """The source is closed after three failures in a row; after a success between them the count begins again."""
    source = _Source()
    listener = _listener(source)
    for error in (OSError(), OSError(), None, OSError(), OSError()):
        source.error = error
        listener.collect()
    assert listener.source == "pull"
    listener.collect()
    assert listener.source == "none"
    assert source.calls[-1] == "close"
    listener.close()


def test_forked_process_leaves_spark_alone() -> None:
    """The listener that a fork inherits is the driver's."""
    source = _Source()
    listener = _listener(source)
    listener._pid = os.getpid() + 1
    listener.close()
    assert source.calls == []
    listener._pid = os.getpid()
    listener.end()


def test_tasks_import_nothing_of_the_driver() -> None:
    """A worker that imports the package for its tasks gets neither PySpark's SQL nor the libraries of metrics."""
    heavy = "{'pyspark.sql', 'orjson', 'prometheus_client', 'opentelemetry'}"
    script = f"import sys, quotascope.spark_listener.task; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_package_has_no_other_names() -> None:
    """A name that the package lacks raises Python's own error."""
    import quotascope.spark_listener as package  # noqa: PLC0415 - what is tested

    with pytest.raises(AttributeError, match="has no attribute 'detach'"):
        _ = package.detach
