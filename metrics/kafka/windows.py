"""Over which time Kafka measures."""

from dataclasses import dataclass, field
from typing import Final

from .errors import InvalidConfig
from .release import NEWEST_RELEASE, KafkaRelease

EPISODE_PAUSE_SECONDS: Final = 60.0
"""
Longest pause within a throttle episode.

It is the longest time for which a broker reports a throttle: two windows of 30 s (Kafka: `MetricConfig`, the sensor of
throttle times).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowConfig:
    """
    The windows of one kind of quota; each kind has its own pair of broker configs.

    Raises:
        InvalidConfig: a number of windows or a length below 1.

    """

    samples: int = 11
    """Windows that make up the measured time: `[<kind>.]quota.window.num`."""

    window_seconds: int = 1
    """Length of one window in s: `[<kind>.]quota.window.size.seconds`."""

    release: KafkaRelease = field(default=NEWEST_RELEASE, repr=False)
    """The release of Kafka whose windows they are, and whose throttle times a manager computes."""

    def __post_init__(self) -> None:
        if self.samples < 1 or self.window_seconds < 1:
            raise InvalidConfig(
                f"a quota needs at least 1 window of at least 1 s, not {self.samples} of {self.window_seconds} s"
            )

    @property
    def window_ms(self) -> int:
        """Length of one window in ms."""
        return self.window_seconds * 1000
