"""Quotas on the traffic with tiered storage (KIP-956)."""

from enum import Enum

from .byte_rate_quota import ByteRateQuota
from .numbers import LONG_MAX
from .quota import Quota
from .registry import Registry
from .throttle_time import rate_throttle_time_ms
from .window_config import WindowConfig


class RLMQuotaType(Enum):
    """A direction of the traffic; the value is Kafka's name for it, the metric group and the MBean type."""

    COPY = "RLMCopy"
    """Bytes per second that one broker copies to the remote storage."""

    FETCH = "RLMFetch"
    """Bytes per second that one broker fetches from it."""

    @property
    def label(self) -> str:
        """The value of our label `direction`: `copy` or `fetch`."""
        return self.name.lower()

    @property
    def rate_key(self) -> str:
        """The broker config that sets the bound in bytes per second, dynamic as well."""
        return f"remote.log.manager.{self.label}.max.bytes.per.second"


class RLMQuotaManager(ByteRateQuota):
    """
    A bound on bytes to or from the remote storage (Kafka: `RLMQuotaManager`).

    Ask `throttle_time_ms` before a transfer and `record` its bytes; recording never refuses.

    Args:
        registry: where the sensor and its metric live.
        quota_type: which direction.
        bytes_per_second: the bound, `quota_type.rate_key`.
        config: windows, `remote.log.manager.<copy or fetch>.quota.window.*`.

    """

    def __init__(
        self,
        registry: Registry,
        quota_type: RLMQuotaType,
        bytes_per_second: int = LONG_MAX,
        config: WindowConfig | None = None,
    ) -> None:
        about = f"Tracking {quota_type.label} byte-rate for Remote Log Manager"
        quota = Quota(bytes_per_second)
        super().__init__(registry, quota_type.value, about, config, quota)
        self.quota_type: RLMQuotaType = quota_type

    def throttle_time_ms(self, now_ms: int) -> int:
        """Return the ms to wait before the next transfer, 0 within the bound; in 64 bits and without an upper limit."""
        violation = self.violation(now_ms)
        return 0 if violation is None else rate_throttle_time_ms(violation, now_ms)
