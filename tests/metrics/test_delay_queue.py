"""Channels by deadline."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import DelayQueue, ThrottleCallback, ThrottledChannel

MS = 1_000_000


def channel(ms: int, now_ns: int = 0) -> ThrottledChannel:
    """A throttle nobody listens to."""
    return ThrottledChannel(ms, ThrottleCallback(), now_ns)


@given(st.lists(st.integers(1, 50)), st.integers(0, 60))
def test_due_channels_leave_in_order(delays: list[int], now: int) -> None:
    """Those that are due leave by deadline, equals as they came; the others stay."""
    queue = DelayQueue()
    channels = [channel(ms) for ms in delays]
    for each in channels:
        queue.add(each)
    left = list(iter(lambda: queue.poll(now * MS), None))
    due = [each for each in channels if each.throttle_time_ms <= now]
    assert left == sorted(due, key=lambda each: each.deadline_ns)
    assert len(queue) == len(channels) - len(due)


def test_empty() -> None:
    """There is nothing to take from an empty queue."""
    assert DelayQueue().poll(10**18) is None


def test_wait_does_not_block_on_a_due_channel() -> None:
    """Waiting is over at once when something is due."""
    queue = DelayQueue()
    queue.add(channel(1))
    queue.wait(1 * MS, timeout_s=100.0)
    assert queue.poll(1 * MS) is not None


def test_wait_ends_with_the_delay() -> None:
    """Nobody waits longer than for the first deadline."""
    queue = DelayQueue()
    queue.add(channel(1))
    queue.wait(0, timeout_s=100.0)
    assert len(queue) == 1


def test_wake_before_the_wait() -> None:
    """A wake that comes too early is not lost."""
    queue = DelayQueue()
    queue.wake()
    queue.wait(0, timeout_s=100.0)
    assert len(queue) == 0


def test_an_earlier_channel_ends_the_wait() -> None:
    """Whoever waits looks again when a channel comes in."""
    queue = DelayQueue()
    waiter = threading.Thread(target=queue.wait, args=(0, 100.0))
    waiter.start()
    while waiter.is_alive():
        queue.add(channel(1))
        waiter.join(timeout=0.001)
    assert len(queue) > 0
