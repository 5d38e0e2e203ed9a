"""Quotas on the traffic with tiered storage (KIP-956), and how long they let transfers wait."""

from ...kafka.node_quota_types import RLMQuotaType
from ...kafka.numbers import LONG_MAX
from ...kafka.windows import WindowConfig
from ..client_sensors import INACTIVE_SECONDS
from ..quota import Quota
from ..registry import Registry
from ..throttle_time import rate_throttle_time_ms
from ..windowed import Avg, Max
from .byte_rate_quota import ByteRateQuota


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


class RLMQuotaMetrics:
    """
    Average and maximum of how long transfers had to wait, in ms (Kafka: `RLMQuotaMetrics`).

    The metrics are `remote-<copy or fetch>-throttle-time-avg` and `-max` of the group `RemoteLogManager`, over the
    registry's windows. They exist from the first wait on.
    """

    def __init__(self, registry: Registry, quota_type: RLMQuotaType) -> None:
        self._registry: Registry = registry
        self._name: str = f"remote-{quota_type.label}-throttle-time"
        self._what: str = "fetches" if quota_type is RLMQuotaType.FETCH else "copies"

    def record(self, throttle_time_ms: int, now_ms: int) -> None:
        """Record a wait."""
        sensor = self._registry.sensor(self._name, now_ms, inactive_seconds=INACTIVE_SECONDS)
        if not sensor.has_metrics():
            for suffix, word, stat in ("avg", "average", Avg()), ("max", "maximum", Max()):
                about = f"The {word} time in millis remote {self._what} was throttled by a broker"
                name = self._registry.metric_name(f"{self._name}-{suffix}", "RemoteLogManager", (), about)
                sensor.add(name, stat)
        sensor.record(float(throttle_time_ms), now_ms)

    def close(self) -> None:
        """Remove the metrics."""
        self._registry.remove_sensor(self._name)


class TieredStorageQuotas:
    """
    Both directions over one registry, with the metrics of their waits (Kafka: `RemoteLogManager`).

    Args:
        registry: where sensors and metrics live.
        copy: bound and windows of copying.
        fetch: bound and windows of fetching.

    """

    def __init__(
        self,
        registry: Registry,
        copy: tuple[int, WindowConfig] = (LONG_MAX, WindowConfig()),
        fetch: tuple[int, WindowConfig] = (LONG_MAX, WindowConfig()),
    ) -> None:
        self.copy = RLMQuotaManager(registry, RLMQuotaType.COPY, *copy)
        self.fetch = RLMQuotaManager(registry, RLMQuotaType.FETCH, *fetch)
        self._metrics = {quota_type: RLMQuotaMetrics(registry, quota_type) for quota_type in RLMQuotaType}

    def of(self, quota_type: RLMQuotaType) -> RLMQuotaManager:
        """Return the manager of a direction."""
        return self.copy if quota_type is RLMQuotaType.COPY else self.fetch

    def wait_ms(self, quota_type: RLMQuotaType, now_ms: int) -> int:
        """
        Return how long a transfer has to wait at `now_ms` (epoch ms), and record that it waits; 0 to go ahead.

        Ask again after the wait, and record the bytes of what goes ahead with the manager.
        """
        wait_ms = self.of(quota_type).throttle_time_ms(now_ms)
        if wait_ms > 0:
            self._metrics[quota_type].record(wait_ms, now_ms)
        return wait_ms

    def close(self) -> None:
        """Remove the metrics of waits."""
        for metrics in self._metrics.values():
            metrics.close()
