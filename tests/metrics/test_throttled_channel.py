"""One throttle of one channel."""

from quotascope.metrics import ThrottleCallback, ThrottledChannel

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
