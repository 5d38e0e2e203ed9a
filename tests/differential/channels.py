"""
The mute states of Kafka's channels against ours.

Whatever happens to a channel, possible or not, it is in the same of the five states.
"""

from tests.differential.choice import Choice
from tests.differential.comparison import Operation, Twin
from tests.differential.drive import Subject, nothing
from tests.differential.wire import Word

from quotascope.metrics.engine.channel import Channel, MuteEvent
from quotascope.metrics.engine.errors import IllegalMuteTransition


class ChannelTwin(Twin):
    """Our channel behind the operations of `java/ChannelSession.java`."""

    def __init__(self) -> None:
        super().__init__()
        self._channel = Channel()

    def _op_mute(self) -> str:
        self._channel.mute()
        return self._state("null")

    def _op_unmute(self) -> str:
        return self._state(str(self._channel.maybe_unmute()).lower())

    def _op_event(self, name: str) -> str:
        try:
            self._channel.handle(MuteEvent[name])
        except IllegalMuteTransition:
            return self._state("impossible")
        return self._state("ok")

    def _state(self, answer: str) -> str:
        return f"{answer} {self._channel.state.name}"


def operation(choice: Choice, _shape: None) -> Operation:
    match choice.integer(0, 6):
        case 0:
            return Operation("mute", 0)
        case 1:
            return Operation("unmute", 0)
        case _:
            return Operation("event", 0, (Word(choice.of(tuple(MuteEvent)).name),))


SUBJECT = Subject(
    name="channels",
    share=0.05,
    shape=nothing,
    opening=lambda _: "new channel",
    twin=lambda _, __: ChannelTwin(),
    operation=operation,
)
