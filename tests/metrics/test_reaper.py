"""Throttled channels, their mute states, and the end of throttles."""

import logging
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.threads import Signal

from quotascope.metrics import (
    Channel,
    ChannelThrottle,
    DelayQueue,
    IllegalMuteTransition,
    MuteEvent,
    MuteState,
    QuotaType,
    ReaperThread,
    Registry,
    ThrottleCallback,
    ThrottledChannel,
    ThrottledChannelReaper,
)

S, E = MuteState, MuteEvent
LEGAL = {
    (S.MUTED, E.REQUEST_RECEIVED): S.MUTED_AND_RESPONSE_PENDING,
    (S.MUTED_AND_RESPONSE_PENDING, E.THROTTLE_STARTED): S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
    (S.MUTED_AND_RESPONSE_PENDING, E.RESPONSE_SENT): S.MUTED,
    (S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, E.RESPONSE_SENT): S.MUTED_AND_THROTTLED,
    (S.MUTED_AND_THROTTLED, E.THROTTLE_ENDED): S.MUTED,
    (S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, E.THROTTLE_ENDED): S.MUTED_AND_RESPONSE_PENDING,
}  # fmt: skip


@pytest.mark.parametrize("state", MuteState)
@pytest.mark.parametrize("event", MuteEvent)
def test_transitions(state: MuteState, event: MuteEvent) -> None:
    """Six transitions exist; everything else is an error that changes nothing."""
    channel = Channel()
    channel.state = state
    after = LEGAL.get((state, event))
    if after is not None:
        channel.handle(event)
        assert channel.state is after
        return
    with pytest.raises(IllegalMuteTransition) as caught:
        channel.handle(event)
    assert channel.state is state
    assert str(caught.value) == (f"{event.name} cannot happen to a channel that is {state.name}")


def state_of(channel: Channel) -> MuteState:
    """The state now; a type checker would take an attribute for unchanged."""
    return channel.state


def test_response_before_the_end_of_the_throttle() -> None:
    """The response leaves at once, and the channel stays silent for the rest of the delay (KIP-219)."""
    channel = Channel()
    throttle = ChannelThrottle(channel)
    channel.request_received()
    throttle.start_throttling()
    assert not channel.response_sent()
    assert state_of(channel) is MuteState.MUTED_AND_THROTTLED
    throttle.end_throttling()
    assert state_of(channel) is MuteState.NOT_MUTED


def test_muting_twice() -> None:
    """A channel that is muted stays in the state it is in."""
    channel = Channel()
    channel.request_received()
    channel.mute()
    assert channel.state is MuteState.MUTED_AND_RESPONSE_PENDING


@given(st.lists(st.sampled_from(MuteEvent)))
def test_only_muted_channels_are_unmuted(events: list[MuteEvent]) -> None:
    """Whatever happens, a channel with something pending is not read."""
    channel = Channel()
    channel.mute()
    for event in events:
        after = LEGAL.get((channel.state, event))
        if after is not None:
            channel.handle(event)
    before = channel.state
    assert channel.maybe_unmute() == (before is MuteState.MUTED)


MS = 1_000_000


def channel(ms: int, now_ns: int = 0) -> ThrottledChannel:
    """A throttle without a listener."""
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


def test_wait_does_not_block_on_a_due_channel() -> None:
    """Waiting is over at once when something is due."""
    queue = DelayQueue()
    queue.add(channel(1))
    queue.wait(1 * MS, timeout_s=100.0)
    assert queue.poll(1 * MS) is not None


def test_wait_ends_with_the_delay() -> None:
    """No one waits longer than for the first deadline."""
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
    """Anyone who waits looks again when a channel comes in."""
    queue = DelayQueue()
    waiter = threading.Thread(target=queue.wait, args=(0, 100.0))
    waiter.start()
    while waiter.is_alive():
        queue.add(channel(1))
        waiter.join(timeout=0.001)
    assert len(queue) > 0


def size(registry: Registry) -> float:
    """The metric `queue-size` of Produce."""
    metric = registry.metric(registry.metric_name("queue-size", "Produce"))
    assert metric is not None
    return metric.value(0)


def test_nothing_is_due() -> None:
    """Before its deadline a channel stays where it is."""
    reaper = ThrottledChannelReaper(Registry(), QuotaType.PRODUCE, 0)
    reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert not reaper.reap(9, 10 * MS - 1)
    assert reaper.reap(10, 10 * MS)


def test_the_deadline_is_monotonic() -> None:
    """A wall clock that is set forward ends no throttle."""
    reaper = ThrottledChannelReaper(Registry(), QuotaType.PRODUCE, 0)
    reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert not reaper.reap(3_600_000, 1 * MS)


def test_reapers_of_one_registry_share_the_metric() -> None:
    """A combined node shows the channels of both its roles in one number."""
    registry = Registry()
    for _ in range(2):
        reaper = ThrottledChannelReaper(registry, QuotaType.PRODUCE, 0)
        reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert size(registry) == 2.0


def test_the_metric_outlives_an_idle_day() -> None:
    """The size of the queue is shown for good."""
    registry = Registry()
    ThrottledChannelReaper(registry, QuotaType.PRODUCE, 0)
    assert registry.expire_sensors(86_400_000) == ()


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
    """A throttle ends without a call."""
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
