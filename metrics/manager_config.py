"""How a quota manager measures, and where it departs from Kafka on request."""

from dataclasses import dataclass

from .window_config import WindowConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerConfig(WindowConfig):
    """
    Settings of one quota manager (Kafka: `ClientQuotaManagerConfig`); the options are ours.

    The windows are `quota.window.*`, those of the controller `controller.quota.window.*`.
    """

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
