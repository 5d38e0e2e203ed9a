"""Throttled channels, their mute states, the end of throttles, and of sensors."""

import logging
import threading
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import Signal, metric_of

from quotascope.metrics.engine.channel import Channel, ChannelThrottle, MuteEvent, MuteState
from quotascope.metrics.engine.delay_queue import DelayQueue, ThrottledChannel
from quotascope.metrics.engine.errors import IllegalMuteTransition
from quotascope.metrics.engine.expiry import ExpiryThread
from quotascope.metrics.engine.reaper import ThrottledChannelReaper
from quotascope.metrics.engine.reaper_thread import ReaperThread
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.throttle_callback import ThrottleCallback
from quotascope.metrics.kafka.entities import QuotaType

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
    next_state = LEGAL.get((state, event))
    if next_state is not None:
        channel.handle(event)
        assert channel.state is next_state
        return
    with pytest.raises(IllegalMuteTransition) as caught:
        channel.handle(event)
    assert channel.state is state
    assert str(caught.value) == (f"{event.name} cannot happen to a channel that is {state.name}")


def test_response_before_the_end_of_the_throttle() -> None:
    """The response leaves at once, and the channel is silent until the delay ends (KIP-219), also if muted twice."""
    channel = Channel()
    throttle = ChannelThrottle(channel)
    channel.request_received()
    channel.mute()
    states = [channel.state]
    throttle.start_throttling()
    assert not channel.response_sent()
    states.append(channel.state)
    throttle.end_throttling()
    states.append(channel.state)
    assert states == [S.MUTED_AND_RESPONSE_PENDING, S.MUTED_AND_THROTTLED, S.NOT_MUTED]


@given(st.lists(st.sampled_from(MuteEvent)))
def test_only_muted_channels_are_unmuted(events: list[MuteEvent]) -> None:
    """Whatever happens, a channel with something pending is not read."""
    channel = Channel()
    channel.mute()
    for event in events:
        next_state = LEGAL.get((channel.state, event))
        if next_state is not None:
            channel.handle(event)
    old_state = channel.state
    assert channel.maybe_unmute() == (old_state is MuteState.MUTED)


MS = 1_000_000


def channel(ms: int, now_ns: int = 0) -> ThrottledChannel:
    return ThrottledChannel(ms, ThrottleCallback(), now_ns)


@given(st.lists(st.integers(1, 50)), st.integers(0, 60))
def test_due_channels_leave_in_order(delays: list[int], now: int) -> None:
    """Due channels leave by deadline, equal ones in their order of arrival; the others stay."""
    queue = DelayQueue()
    channels = [channel(ms) for ms in delays]
    for each in channels:
        queue.add(each)
    polled = list(iter(lambda: queue.poll(now * MS), None))
    due = [channel for channel in channels if channel.throttle_time_ms <= now]
    assert polled == sorted(due, key=lambda channel: channel.deadline_ns)
    assert len(queue) == len(channels) - len(due)


@pytest.mark.parametrize(
    ("throttles_ms", "now_ns", "left"),
    [([1], 1 * MS, 0), ([1], 0, 1), ([], 0, 0)],
    ids=["something is due", "with the first delay", "a wake that came too early is not lost"],
)
def test_a_wait_ends(throttles_ms: list[int], now_ns: int, left: int) -> None:
    """A wait ends as soon as its channel is due."""
    queue = DelayQueue()
    for ms in throttles_ms:
        queue.add(channel(ms))
    if not throttles_ms:
        queue.wake()
    queue.wait(now_ns, timeout_s=10_000.0)
    queue.poll(now_ns)
    assert len(queue) == left


def test_an_earlier_channel_ends_the_wait() -> None:
    """Anyone who waits looks again when a channel comes in."""
    queue = DelayQueue()
    waiter = threading.Thread(target=queue.wait, args=(0, 100.0))
    waiter.start()
    while waiter.is_alive():
        queue.add(channel(1))
        waiter.join(timeout=0.001)
    assert len(queue) > 0


def test_the_deadline_is_monotonic() -> None:
    """Before its deadline a channel stays where it is: a wall clock that is set forward ends no throttle."""
    reaper = ThrottledChannelReaper(Registry(), QuotaType.PRODUCE, 0)
    reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert [reaper.reap(now_ms, now_ns) for now_ms, now_ns in ((3_600_000, 10 * MS - 1), (10, 10 * MS))] == [
        False,
        True,
    ]


def test_reapers_of_one_registry_share_the_metric() -> None:
    """A combined node shows the channels of both its roles in one number, for good."""
    registry = Registry()
    for _ in range(2):
        reaper = ThrottledChannelReaper(registry, QuotaType.PRODUCE, 0)
        reaper.throttle(10, ThrottleCallback(), now_ms=0, now_ns=0)
    assert registry.expire_sensors(86_400_000) == ()
    assert metric_of(registry, "queue-size", "Produce", {}).value(0) == 2.0


class Failing(ThrottleCallback):
    def end_throttling(self) -> None:
        raise OSError("the connection is gone")


class ClosesItself(ThrottleCallback):
    def __init__(self) -> None:
        self.thread: Future[ReaperThread] = Future()
        self.closed = threading.Event()

    def end_throttling(self) -> None:
        self.thread.result(60).close()
        self.closed.set()


def reaper() -> ThrottledChannelReaper:
    return ThrottledChannelReaper(Registry(), QuotaType.FETCH, 0)


def test_close_ends_a_wait() -> None:
    """Closing does not wait for channels, which stay in the queue."""
    channels = reaper()
    thread = ReaperThread(channels, "FetchReaper", monotonic_ns=lambda: 0)
    channels.throttle(3_600_000, ThrottleCallback(), now_ms=0, now_ns=0)
    thread.close()
    assert len(channels.queue) == 1


def test_a_failing_callback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A failing callback is logged, and does not leave other channels muted."""
    channels, signal = reaper(), Signal()
    channels.throttle(1, Failing(), now_ms=0, now_ns=0)
    channels.throttle(2, signal, now_ms=0, now_ns=0)
    with caplog.at_level(logging.ERROR):
        thread = ReaperThread(channels, "FetchReaper")
        assert signal.ended.wait(60)
        thread.close()
    assert "a throttle callback failed" in caplog.text
    assert "the connection is gone" in caplog.text


def test_a_callback_may_close_the_thread() -> None:
    """Closing from inside does not wait for itself."""
    channels, callback = reaper(), ClosesItself()
    channels.throttle(1, callback, now_ms=0, now_ns=0)
    callback.thread.set_result(ReaperThread(channels, "FetchReaper"))
    assert callback.closed.wait(60)


class TestExpiry:
    """The thread that expires sensors."""

    def test_expires_at_the_clocks_time_until_closed(self) -> None:
        """The thread calls with the clock's time, logs a failure and goes on until it is closed."""
        times: list[int] = []
        twice = threading.Event()

        def expire(now_ms: int) -> None:
            times.append(now_ms)
            if len(times) == 1:
                raise RuntimeError("once")
            twice.set()

        ticks = iter(range(1_000_000))
        thread = ExpiryThread(expire, lambda: next(ticks), period_s=0.0)
        assert twice.wait(60)
        thread.close()
        assert not thread._thread.is_alive()
        assert times[:2] == [0, 1]

    def test_waits_before_the_first_time(self) -> None:
        """A thread that is closed within its first period expires nothing."""
        times: list[int] = []
        ExpiryThread(times.append, lambda: 0, period_s=3_600.0).close()
        assert times == []

    def test_can_be_closed_from_within(self) -> None:
        """A reporter that closes the registry when it hears of a removal does not wait for itself."""
        closed, started = threading.Event(), threading.Event()

        def expire(_now_ms: int) -> None:
            thread.close()
            closed.set()

        thread = ExpiryThread(expire, lambda: int(started.wait(60)), period_s=0.0)
        started.set()
        assert closed.wait(60)
        thread.close()
