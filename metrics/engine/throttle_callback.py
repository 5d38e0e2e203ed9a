"""
The callback of a throttle.

In a file of its own, which a compiled build leaves alone: programs that embed the engine inherit from it.
"""


class ThrottleCallback:
    """Mutes and unmutes something (Kafka: `ThrottleCallback`); this one does nothing."""

    __slots__ = ()

    def start_throttling(self) -> None:
        """Stop reading requests from the channel."""

    def end_throttling(self) -> None:
        """Go on reading."""
