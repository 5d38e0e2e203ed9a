"""How a quota manager measures, and where it departs from Kafka on request."""

from dataclasses import dataclass

from .kafka_release import NEWEST_RELEASE, KafkaRelease
from .window_config import WindowConfig


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
