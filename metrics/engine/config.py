"""Configuration of a metric: its windows, its bound, and its recording level."""

from enum import IntEnum

from ..kafka.errors import InvalidConfig
from ..kafka.jmx import Tags
from ..kafka.numbers import LONG_MAX
from ..kafka.release import NEWEST_RELEASE, KafkaRelease
from .native import i64, mypyc_attr
from .quota import Quota


class RecordingLevel(IntEnum):
    """The amount of detail that is recorded (Kafka: `Sensor.RecordingLevel`, config `metrics.recording.level`)."""

    INFO = 0
    DEBUG = 1
    TRACE = 2

    def should_record(self, configured: "RecordingLevel") -> bool:
        """Return whether a sensor of this level records when that level is configured."""
        return self <= configured


@mypyc_attr(acyclic=True)
class MetricConfig:
    """
    Settings of a metric, never changed in place (Kafka: `MetricConfig`).

    A stat does not own one: it is given with every record and read, so that a metric's new config takes effect
    at once without a loss of data.

    Args:
        samples: how many windows make up the monitored time (`metrics.num.samples`, `quota.window.num`).
        time_window_ms: length of one window (`metrics.sample.window.ms`, `quota.window.size.seconds`).
        event_window: events after which a window is complete even if its time is not over.
        quota: the bound that is checked on recording, if any.
        tags: default tags of every metric name of the registry.
        recording_level: detail that sensors with this config record.
        release: the release of Kafka whose windows statistics have (`KafkaRelease.keeps_overlapping_windows`); in Kafka
            a matter of its code.

    Raises:
        InvalidConfig: samples or time window below 1, or both together above 64 bits. Kafka checks only the
            samples; the rest fails there later, in arithmetic.

    """

    __slots__ = (
        "event_window",
        "keeps_overlapping",
        "quota",
        "recording_level",
        "release",
        "samples",
        "shortest_span_ms",
        "slots",
        "span_ms",
        "tags",
        "time_window_ms",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - as many settings as Kafka's, and the release
        self,
        samples: int = 2,
        time_window_ms: int = 30_000,
        event_window: int = LONG_MAX,
        quota: Quota | None = None,
        tags: Tags = (),
        recording_level: RecordingLevel = RecordingLevel.INFO,
        release: KafkaRelease = NEWEST_RELEASE,
    ) -> None:
        if samples < 1:
            raise InvalidConfig(f"the number of samples must be at least 1, not {samples}")
        if time_window_ms < 1 or samples * time_window_ms > LONG_MAX:
            raise InvalidConfig(f"{samples} windows of {time_window_ms} ms cannot be measured")
        self.samples: int = samples
        self.time_window_ms: int = time_window_ms
        self.event_window: i64 = event_window
        self.quota: Quota | None = quota
        self.tags: tuple[tuple[str, str], ...] = tuple(dict(tags).items())
        self.recording_level: RecordingLevel = recording_level
        self.span_ms: i64 = samples * time_window_ms
        self.release: KafkaRelease = release
        self.keeps_overlapping: bool = release.keeps_overlapping_windows
        self.slots: i64 = samples + 1 if self.keeps_overlapping else samples
        self.shortest_span_ms: i64 = release.shortest_span_ms

    def with_quota(self, quota: Quota | None) -> "MetricConfig":
        """Return the same settings under another bound."""
        return MetricConfig(
            self.samples, self.time_window_ms, self.event_window, quota, self.tags, self.recording_level, self.release
        )

    def with_defaults(self, tags: Tags, recording_level: RecordingLevel) -> "MetricConfig":
        """Return the same settings with these tags added and that recording level."""
        merged = {**dict(self.tags), **dict(tags)}
        return MetricConfig(
            self.samples, self.time_window_ms, self.event_window, self.quota, merged, recording_level, self.release
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetricConfig) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[type["MetricConfig"], tuple[object, ...]]:
        return MetricConfig, self._key()

    def __repr__(self) -> str:
        return (
            f"MetricConfig(samples={self.samples}, time_window_ms={self.time_window_ms},"
            f" event_window={self.event_window}, quota={self.quota}, tags={self.tags},"
            f" recording_level={self.recording_level.name}, release={self.release})"
        )

    def _key(self) -> tuple[int, int, int, Quota | None, tuple[tuple[str, str], ...], RecordingLevel, KafkaRelease]:
        return (
            self.samples,
            self.time_window_ms,
            self.event_window,
            self.quota,
            self.tags,
            self.recording_level,
            self.release,
        )
