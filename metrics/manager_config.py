"""How a quota manager measures, and where it departs from Kafka on request."""

from dataclasses import dataclass

from .errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerConfig:
    """
    Settings of one quota manager (Kafka: `ClientQuotaManagerConfig`); the options are ours.

    Raises:
        InvalidConfig: a number of windows or a length below 1.

    """

    samples: int = 11
    """Windows that make up the measured time: `[controller.]quota.window.num`."""

    window_seconds: int = 1
    """Length of one window in s: `[controller.]quota.window.size.seconds`."""

    saturate_throttle_time: bool = False
    """
    Whether a throttle above 24.8 days stays that long.

    Kafka cuts it to 32 bits: it turns negative, which counts as not throttled, or into any other number. At 1 B/s a
    request of 3 MB is enough.
    """

    extra_counters: bool = True
    """Whether to count throttled ms, throttled requests and refused mutations, which Kafka does not."""

    charge_validate_only: bool = True
    """Whether a validate-only mutation costs as much as a real one, as in KRaft and against KIP-599."""

    def __post_init__(self) -> None:
        if self.samples < 1 or self.window_seconds < 1:
            raise InvalidConfig(
                f"a quota needs at least 1 window of at least 1 s,"
                f" not {self.samples} of {self.window_seconds} s"
            )

    @property
    def window_ms(self) -> int:
        """Length of one window in ms."""
        return self.window_seconds * 1000
