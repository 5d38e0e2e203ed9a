"""What connection rates are measured with."""

from .client_sensors import INACTIVE_SECONDS
from .errors import QuotaViolation
from .metric_name import MetricName
from .numbers import to_i32
from .quota import Quota
from .rate import Rate
from .registry import Registry
from .sensor import Sensor
from .throttle_time import bounded_rate_throttle_time_ms
from .window_config import WindowConfig
from .windowed import Avg

GROUP = "socket-server-metrics"
RATE = "connection-accept-rate"
IP_TAG = "ip"
LISTENER_TAG = "listener"
_SENSOR = "Connection-Accept-Rate"


class RateEntity:
    """
    A broker, one of its listeners or an address, as the sensor of its rate has it (Kafka: `ConnectionQuotaEntity`).

    Without a name it is the broker.
    """

    __slots__ = ("inactive_seconds", "metric", "sensor", "tags")

    def __init__(self, tag: str = "", name: str = "") -> None:
        self.sensor: str = f"{_SENSOR}-{name}" if tag else _SENSOR
        self.metric: str = RATE if tag else f"broker-{RATE}"
        self.tags: dict[str, str] = {tag: name} if tag else {}
        self.inactive_seconds: int | None = INACTIVE_SECONDS if tag == IP_TAG else None


class ConnectionRates:
    """
    Makes the sensors of connection rates, records in them, and changes their bounds.

    Args:
        registry: where sensors and metrics live.
        config: windows, `quota.window.*`.

    """

    __slots__ = ("_config", "_registry")

    def __init__(self, registry: Registry, config: WindowConfig) -> None:
        self._registry: Registry = registry
        self._config: WindowConfig = config

    def sensor(self, entity: RateEntity, limit: int, now_ms: int) -> Sensor:
        """Return the sensor of an entity, made now under `limit` (connections per second) if there is none."""
        sensor = self._registry.get_sensor(entity.sensor)
        if sensor is None:
            sensor = self._registry.sensor(
                entity.sensor,
                now_ms,
                self._config.metric_config(Quota(limit)),
                entity.inactive_seconds,
            )
            sensor.add(self.metric_name(entity), Rate())
        return sensor

    def throttle_time_sensor(self, prefix: str, listener: str, now_ms: int) -> Sensor:
        """Return the sensor of a listener's throttle times, averaged over the registry's windows."""
        sensor = self._registry.sensor(
            f"{prefix}ConnectionRateThrottleTime-{listener}", now_ms
        )
        about = "Tracking average throttle-time, out of non-zero throttle times, per listener"
        name = f"{prefix}connection-accept-throttle-time"
        tags = {LISTENER_TAG: listener}
        sensor.add(self._registry.metric_name(name, GROUP, tags, about), Avg())
        return sensor

    def record(self, sensor: Sensor, now_ms: int) -> int:
        """Record a connection and return the ms to wait: at most one window, also under a bound of 0."""
        try:
            sensor.record(1.0, now_ms)
        except QuotaViolation as violation:
            most_ms = self._config.window_ms
            return to_i32(bounded_rate_throttle_time_ms(violation, most_ms, now_ms))
        return 0

    def update(self, entity: RateEntity, limit: int) -> None:
        """Change the bound of an entity's rate, if that is measured."""
        metric = self._registry.metric(self.metric_name(entity))
        if metric is not None:
            metric.config = self._config.metric_config(Quota(limit))

    def metric_name(self, entity: RateEntity) -> MetricName:
        """Return the name of an entity's metric."""
        about = "Tracking rate of accepting new connections (per second)"
        return self._registry.metric_name(entity.metric, GROUP, entity.tags, about)

    def measured_ips(self) -> list[tuple[str, float]]:
        """Return the addresses with a measured rate, each with its bound."""
        return [
            (name.tags[IP_TAG], metric.config.quota.bound)
            for name, metric in self._registry.metrics().items()
            if name.name == RATE and name.group == GROUP and IP_TAG in name.tags
            if metric.config.quota is not None
        ]

    def remove(self, *sensors: Sensor) -> None:
        """Remove sensors and their metrics."""
        for sensor in sensors:
            self._registry.remove_sensor(sensor.name)
