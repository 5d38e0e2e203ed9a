"""The mute states of Kafka's channels against ours."""

from tests.differential.budget import Budget, marks
from tests.differential.choice import Choice
from tests.differential.drive import Subject, drive_seeded, drive_shrinkable
from tests.differential.kafka import Kafka
from tests.differential.operation import Operation, Twin
from tests.differential.wire import Word

from quotascope.metrics import Channel, IllegalMuteTransition, MuteEvent

pytestmark = marks()
SHARE = 0.05


class ChannelTwin:
    """Our channel behind the operations of `java/ChannelSession.java`."""

    def __init__(self) -> None:
        self._channel = Channel()

    def step(self, ms: int) -> None:
        """Channels know no time."""

    def mute(self) -> str:
        """Mute."""
        self._channel.mute()
        return self._state("null")

    def unmute(self) -> str:
        """Unmute if nothing is pending."""
        return self._state(str(self._channel.maybe_unmute()).lower())

    def event(self, name: str) -> str:
        """Take in an event."""
        try:
            self._channel.handle(MuteEvent[name])
        except IllegalMuteTransition:
            return self._state("impossible")
        return self._state("ok")

    def _state(self, answer: str) -> str:
        return f"{answer} {self._channel.state.name}"


def operation(choice: Choice, _shape: None) -> Operation:
    """Draw what happens next."""
    match choice.integer(0, 6):
        case 0:
            return Operation("mute", 0)
        case 1:
            return Operation("unmute", 0)
        case _:
            return Operation("event", 0, (Word(choice.of(tuple(MuteEvent)).name),))


def shape(_choice: Choice) -> None:
    """Nothing stays the same."""


def opening(_shape: None) -> str:
    """The line that creates Kafka's side."""
    return "new channel"


def twin(_shape: None) -> Twin:
    """Our side."""
    return ChannelTwin()


CHANNELS = Subject(
    name="channels", shape=shape, opening=opening, twin=twin, operation=operation
)


def test_short_sessions(kafka: Kafka, budget: Budget) -> None:
    """Whatever happens to a channel, possible or not, it is in the same of the five states."""
    drive_shrinkable(kafka, budget, CHANNELS, budget.shrinkable(SHARE))


def test_long_sessions(kafka: Kafka, budget: Budget) -> None:
    """The same over up to a thousand events."""
    drive_seeded(kafka, budget, CHANNELS, budget.seeded(SHARE))
