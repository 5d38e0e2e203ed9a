"""Mute states of a channel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import (
    Channel,
    ChannelThrottle,
    IllegalMuteTransition,
    MuteEvent,
    MuteState,
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
    assert str(caught.value) == (
        f"{event.name} cannot happen to a channel that is {state.name}"
    )


def state_of(channel: Channel) -> MuteState:
    """The state now; a type checker would take an attribute for unchanged."""
    return channel.state


def test_an_unthrottled_request() -> None:
    """The channel is read again when the response is sent."""
    channel = Channel()
    channel.request_received()
    assert not channel.maybe_unmute()
    assert channel.response_sent()
    assert state_of(channel) is MuteState.NOT_MUTED


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


def test_throttle_over_before_the_response() -> None:
    """A short throttle leaves the channel waiting for its response only."""
    channel = Channel()
    channel.request_received()
    channel.throttle_started()
    assert not channel.throttle_ended()
    assert channel.response_sent()


def test_muting_twice() -> None:
    """A channel that is muted stays in the state it is in."""
    channel = Channel()
    channel.request_received()
    channel.mute()
    assert channel.state is MuteState.MUTED_AND_RESPONSE_PENDING


def test_reading_goes_on() -> None:
    """A channel that nothing holds back is being read."""
    assert Channel().maybe_unmute()


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
