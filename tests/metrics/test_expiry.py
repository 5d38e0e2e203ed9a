"""The thread that expires sensors."""

import threading

from quotascope.metrics import ExpiryThread


def test_expires_at_the_clocks_time_until_closed() -> None:
    """Each call gets the time of that moment; after closing there are none."""
    times: list[int] = []
    twice = threading.Event()

    def expire(now_ms: int) -> None:
        times.append(now_ms)
        if len(times) == 2:
            twice.set()

    ticks = iter(range(1_000_000))
    thread = ExpiryThread(expire, lambda: next(ticks), period_s=0.0)
    assert twice.wait(60)
    thread.close()
    assert not thread._thread.is_alive()
    assert times[:2] == [0, 1]


def test_waits_before_the_first_time() -> None:
    """Closed within its period it never expires anything."""
    times: list[int] = []
    ExpiryThread(times.append, lambda: 0, period_s=3_600.0).close()
    assert times == []


def test_can_be_closed_from_within() -> None:
    """A reporter that closes the registry when it hears of a removal does not wait for itself."""
    closed = threading.Event()

    def expire(_now_ms: int) -> None:
        thread.close()
        closed.set()

    started = threading.Event()
    thread = ExpiryThread(expire, lambda: int(started.wait(60)), period_s=0.0)
    started.set()
    assert closed.wait(60)
    thread.close()


def test_goes_on_after_an_error() -> None:
    """One failure is logged and does not end the expiry of sensors for good."""
    calls: list[int] = []
    again = threading.Event()

    def expire(_now_ms: int) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("once")
        again.set()

    thread = ExpiryThread(expire, lambda: 0, period_s=0.0)
    assert again.wait(60)
    thread.close()
