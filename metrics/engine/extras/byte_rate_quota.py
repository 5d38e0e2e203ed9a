"""A quota on bytes that a broker moves for itself, not for a client."""

import threading

from ...kafka.windows import WindowConfig
from ..client_sensors import INACTIVE_SECONDS
from ..errors import QuotaViolation
from ..quota import Quota
from ..rate import SimpleRate
from ..registry import Registry
from ..sensor import Sensor
from ..window_config import metric_config


class ByteRateQuota:
    """
    One `byte-rate` under a bound that is asked before work and not enforced on recording.

    What replication and tiered storage quotas have in common. The sensor has the group's name and lives an hour after
    its last record; the next call makes a new one. Safe for many threads.

    Args:
        registry: where the sensor and its metric live.
        group: of the metric, and the sensor's name.
        description: of the metric.
        config: windows.
        quota: the first bound, None for none.

    """

    def __init__(
        self, registry: Registry, group: str, description: str, config: WindowConfig | None, quota: Quota | None
    ) -> None:
        self.config: WindowConfig = WindowConfig() if config is None else config
        self.metric_name = registry.metric_name("byte-rate", group, (), description)
        self._registry: Registry = registry
        self._quota: Quota | None = quota
        self._lock = threading.RLock()

    @property
    def quota(self) -> Quota | None:
        """The bound in bytes per second, None if none was ever set."""
        return self._quota

    def update_quota(self, quota: Quota | None) -> None:
        """Set the bound, or remove it; what was recorded is kept."""
        with self._lock:
            self._quota = quota
            metric = self._registry.metric(self.metric_name)
            if metric is not None:
                metric.config = metric_config(self.config, quota)

    def record(self, size: float, now_ms: int) -> None:
        """Record bytes at `now_ms` (epoch ms), whatever the bound."""
        self._sensor(now_ms).record(size, now_ms, check_quotas=False)

    def violation(self, now_ms: int) -> QuotaViolation | None:
        """Return the violation of the bound at `now_ms` (epoch ms), None if there is none; has the effect of a read."""
        try:
            self._sensor(now_ms).check_quotas(now_ms)
        except QuotaViolation as violation:
            return violation
        return None

    def _sensor(self, now_ms: int) -> Sensor:
        with self._lock:
            name = self.metric_name.group
            sensor = self._registry.get_sensor(name)
            if sensor is None:
                sensor = self._registry.sensor(name, now_ms, inactive_seconds=INACTIVE_SECONDS)
                config = metric_config(self.config, self._quota)
                sensor.add(self.metric_name, SimpleRate(), config)
            return sensor
