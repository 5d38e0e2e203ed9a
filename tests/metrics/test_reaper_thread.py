"""The thread around the reaper."""

import logging
import threading

import pytest
from tests.metrics.threads import Signal

from quotascope.metrics import (
    QuotaType,
    ReaperThread,
    Registry,
    ThrottleCallback,
    ThrottledChannelReaper,
)


class Failing(ThrottleCallback):
    """Raises at the end of a throttle."""

    def end_throttling(self) -> None:
        """Raise."""
        raise OSError("the connection is gone")


class ClosesItself(ThrottleCallback):
    """Closes the thread that it is called from."""

    def __init__(self) -> None:
        self.thread: ReaperThread | None = None
        self.ready = threading.Event()
        self.closed = threading.Event()

    def end_throttling(self) -> None:
        """Close the thread."""
        self.ready.wait(10)
        assert self.thread is not None
        self.thread.close()
        self.closed.set()


def reaper() -> ThrottledChannelReaper:
    """A reaper of its own registry."""
    return ThrottledChannelReaper(Registry(), QuotaType.FETCH, 0)


def test_throttles_end_by_themselves() -> None:
    """Nobody has to call for a throttle to end."""
    channels, signal = reaper(), Signal()
    thread = ReaperThread(channels, "FetchReaper")
    now_ns = 0  # long ago on the machine's monotonic clock
    channels.throttle(1, signal, now_ms=0, now_ns=now_ns)
    assert signal.ended.wait(10)
    thread.close()
    assert len(channels.queue) == 0


def test_close_ends_a_wait() -> None:
    """Closing does not wait for channels, which stay in the queue."""
    channels = reaper()
    thread = ReaperThread(channels, "FetchReaper", monotonic_ns=lambda: 0)
    channels.throttle(3_600_000, ThrottleCallback(), now_ms=0, now_ns=0)
    thread.close()
    assert len(channels.queue) == 1


def test_a_failing_callback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """One lost connection does not leave the other channels muted."""
    channels, signal = reaper(), Signal()
    channels.throttle(1, Failing(), now_ms=0, now_ns=0)
    channels.throttle(2, signal, now_ms=0, now_ns=0)
    with caplog.at_level(logging.ERROR):
        thread = ReaperThread(channels, "FetchReaper")
        assert signal.ended.wait(10)
        thread.close()
    assert "a throttle callback failed" in caplog.text
    assert "the connection is gone" in caplog.text


def test_a_callback_may_close_the_thread() -> None:
    """Closing from inside does not wait for itself."""
    channels, callback = reaper(), ClosesItself()
    channels.throttle(1, callback, now_ms=0, now_ns=0)
    callback.thread = ReaperThread(channels, "FetchReaper")
    callback.ready.set()
    assert callback.closed.wait(10)
