"""Throttled channels, and the queue of their deadlines."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import DelayQueue, ThrottleCallback, ThrottledChannel

MS = 1_000_000


class Calls(ThrottleCallback):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def start_throttling(self) -> None:
        """Note the start."""
        self.told.append("start")

    def end_throttling(self) -> None:
        """Note the end."""
        self.told.append("end")


def test_start_is_told_at_once() -> None:
    """The channel is silent from the moment the throttle is made."""
    calls = Calls()
    channel = ThrottledChannel(10, calls, 0)
    assert calls.told == ["start"]
    channel.notify_throttling_done()
    assert calls.told == ["start", "end"]


def test_delay_runs_down() -> None:
    """The rest of the delay is in whole ms, cut toward zero, and goes below it."""
    channel = ThrottledChannel(20, ThrottleCallback(), 5 * MS)
    now_and_left = [(5, 20), (15, 10), (25, 0), (35, -10)]
    assert [channel.delay_ms(now * MS) for now, _ in now_and_left] == [
        left for _, left in now_and_left
    ]
    assert channel.delay_ms(24 * MS + 1) == 0
    assert channel.delay_ms(25 * MS + 1) == 0


def test_due_at_the_deadline() -> None:
    """A channel is due when nothing is left, not before."""
    channel = ThrottledChannel(20, ThrottleCallback(), 0)
    assert not channel.is_due(20 * MS - 1)
    assert channel.is_due(20 * MS)


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


def test_nobody_has_to_listen() -> None:
    """By itself a callback does nothing."""
    callback = ThrottleCallback()
    callback.start_throttling()
    callback.end_throttling()
