"""Muting of a connection's channel: times at which its requests are read."""

from enum import Enum

from .errors import IllegalMuteTransition
from .throttle_callback import ThrottleCallback


class MuteState(Enum):
    """State of a channel between muted and read again (Kafka: `KafkaChannel.ChannelMuteState`)."""

    NOT_MUTED = "not muted"
    MUTED = "muted"
    MUTED_AND_RESPONSE_PENDING = "muted, response pending"
    MUTED_AND_THROTTLED = "muted, throttled"
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = "muted, throttled, response pending"


class MuteEvent(Enum):
    """Event of a muted channel (Kafka: `KafkaChannel.ChannelMuteEvent`)."""

    REQUEST_RECEIVED = "request received"
    RESPONSE_SENT = "response sent"
    THROTTLE_STARTED = "throttle started"
    THROTTLE_ENDED = "throttle ended"


class Channel:
    """
    The mute state of one connection (Kafka: `KafkaChannel`).

    A broker mutes a channel when it has read a request, and unmutes it when the response is sent and no throttle
    is left (KIP-219): a throttled client gets its response at once, and its next request is not even read. One
    thread at a time; a broker leaves a channel to its network thread.
    """

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: MuteState = MuteState.NOT_MUTED

    def mute(self) -> None:
        """Stop reading; without an effect on a channel that is muted already."""
        if self.state is MuteState.NOT_MUTED:
            self.state = MuteState.MUTED

    def handle(self, event: MuteEvent) -> None:
        """
        Take in an event.

        Raises:
            IllegalMuteTransition: it cannot happen in this state, which is kept.

        """
        next_state = _TRANSITIONS.get((self.state, event))
        if next_state is None:
            raise IllegalMuteTransition(self.state.name, event.name)
        self.state = next_state

    def maybe_unmute(self) -> bool:
        """Read again unless something is pending; return whether the channel is being read now."""
        if self.state is MuteState.MUTED:
            self.state = MuteState.NOT_MUTED
        return self.state is MuteState.NOT_MUTED

    def request_received(self) -> None:
        """Mute the channel, for the time of one request."""
        self.mute()
        self.handle(MuteEvent.REQUEST_RECEIVED)

    def response_sent(self) -> bool:
        """Note that the response left, or that none is due; return whether the channel is being read again."""
        self.handle(MuteEvent.RESPONSE_SENT)
        return self.maybe_unmute()

    def throttle_started(self) -> None:
        """Note a throttle; it comes before the response is sent."""
        self.handle(MuteEvent.THROTTLE_STARTED)

    def throttle_ended(self) -> bool:
        """Note the end of the throttle; return whether the channel is being read again."""
        self.handle(MuteEvent.THROTTLE_ENDED)
        return self.maybe_unmute()


class ChannelThrottle(ThrottleCallback):
    """Mutes and unmutes a channel as a throttle starts and ends."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def start_throttling(self) -> None:
        """Note the throttle on the channel."""
        self._channel.throttle_started()

    def end_throttling(self) -> None:
        """Take it off and read again if the response has left."""
        self._channel.throttle_ended()


_TRANSITIONS = {
    (
        MuteState.MUTED,
        MuteEvent.REQUEST_RECEIVED,
    ): MuteState.MUTED_AND_RESPONSE_PENDING,
    (MuteState.MUTED_AND_RESPONSE_PENDING, MuteEvent.RESPONSE_SENT): MuteState.MUTED,
    (
        MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
        MuteEvent.RESPONSE_SENT,
    ): MuteState.MUTED_AND_THROTTLED,
    (
        MuteState.MUTED_AND_RESPONSE_PENDING,
        MuteEvent.THROTTLE_STARTED,
    ): MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
    (MuteState.MUTED_AND_THROTTLED, MuteEvent.THROTTLE_ENDED): MuteState.MUTED,
    (
        MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
        MuteEvent.THROTTLE_ENDED,
    ): MuteState.MUTED_AND_RESPONSE_PENDING,
}
