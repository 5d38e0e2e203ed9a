"""Over which time a quota is measured, and where a quota manager departs from Kafka on request."""

from dataclasses import dataclass

from .config import MetricConfig
from .errors import InvalidConfig
from .kafka_release import NEWEST_RELEASE, KafkaRelease
from .quota import Quota


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

    def __post_init__(self) -> None:
        if self.samples < 1 or self.window_seconds < 1:
            raise InvalidConfig(
                f"a quota needs at least 1 window of at least 1 s, not {self.samples} of {self.window_seconds} s"
            )

    @property
    def window_ms(self) -> int:
        """Length of one window in ms."""
        return self.window_seconds * 1000

    def metric_config(self, quota: Quota | None) -> MetricConfig:
        """Return the config of a metric under a bound."""
        return MetricConfig(self.samples, self.window_ms, quota=quota)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerConfig(WindowConfig):
    """
    Settings of one quota manager (Kafka: `ClientQuotaManagerConfig`); the options are ours.

    The windows are `quota.window.*`, those of the controller `controller.quota.window.*`.
    """

    release: KafkaRelease = NEWEST_RELEASE
    """The release of Kafka that throttle times are computed as."""

    extra_counters: bool = True
    """Whether to count throttled ms, throttled requests and refused mutations, which Kafka does not."""

    charge_validate_only: bool = True
    """Whether a validate-only mutation costs as much as a real one, as in KRaft and against KIP-599."""
