"""Quotas on the rate of new connections (KIP-612)."""

import threading

from ...kafka.host_address import host_address
from ...kafka.numbers import INT_MAX, to_i32
from ...kafka.windows import WindowConfig
from ..client_sensors import INACTIVE_SECONDS
from ..errors import ConnectionThrottled, QuotaViolation
from ..metric_name import MetricName
from ..quota import Quota
from ..rate import Rate
from ..registry import Registry
from ..sensor import Sensor
from ..throttle_time import bounded_rate_throttle_time_ms
from ..window_config import metric_config
from ..windowed import Avg
from .connection_counts import ConnectionCounts

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
                entity.sensor, now_ms, metric_config(self._config, Quota(limit)), entity.inactive_seconds
            )
            sensor.add(self.metric_name(entity), Rate())
        return sensor

    def throttle_time_sensor(self, prefix: str, listener: str, now_ms: int) -> Sensor:
        """Return the sensor of a listener's throttle times, averaged over the registry's windows."""
        sensor = self._registry.sensor(f"{prefix}ConnectionRateThrottleTime-{listener}", now_ms)
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
            metric.config = metric_config(self._config, Quota(limit))

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


class _Listener:
    """Sensors of a listener (Kafka: `ListenerConnectionQuota`)."""

    __slots__ = ("ip_throttle_time", "rate", "throttle_time")

    def __init__(self, rates: ConnectionRates, listener: str, now_ms: int) -> None:
        entity = RateEntity(LISTENER_TAG, listener)
        self.rate: Sensor = rates.sensor(entity, INT_MAX, now_ms)
        self.throttle_time: Sensor = rates.throttle_time_sensor("", listener, now_ms)
        self.ip_throttle_time: Sensor = rates.throttle_time_sensor("ip-", listener, now_ms)


class ConnectionQuotas:
    """
    Limits new connections per second of a broker, of its listeners and of addresses (Kafka: `ConnectionQuotas`).

    Past the broker's or the listener's limit the acceptor waits before it continues; past the limit of its address a
    connection is refused, slowly. No wait exceeds one window. All limits are the largest 32-bit number unless set, and
    addresses are measured only while they have another.

    A broker does for each connection of a listener: `accept`, wait so long and until `counts.has_slot`, then `admit`;
    what that refuses goes into `DelayedClose`. Safe for many threads.

    Args:
        registry: where sensors and metrics live.
        now_ms: epoch ms.
        config: windows, `quota.window.*`.
        max_rate: connections per second of the broker, `max.connection.creation.rate`.
        counts: numbers of connections, with the listener that is protected; its connections do not count for the
            broker's rate.

    """

    def __init__(
        self,
        registry: Registry,
        now_ms: int,
        config: WindowConfig | None = None,
        max_rate: int = INT_MAX,
        counts: ConnectionCounts | None = None,
    ) -> None:
        self.counts: ConnectionCounts = ConnectionCounts() if counts is None else counts
        self._rates = ConnectionRates(registry, WindowConfig() if config is None else config)
        self._lock = threading.RLock()
        self._max_rate: int = max_rate
        self._broker: Sensor = self._rates.sensor(RateEntity(), max_rate, now_ms)
        self._listeners: dict[str, _Listener] = {}
        self._default_ip_limit: int = INT_MAX
        self._ip_limits: dict[str, int] = {}

    def add_listener(
        self, listener: str, now_ms: int, max_rate: int | None = None, max_connections: int | None = None
    ) -> None:
        """
        Start to measure a listener; one that is measured already stays as it is.

        A limit that is not given is the broker's, as in Kafka, where the listener's config falls back to the broker's:
        thus the protected listener has a limit of its own after all.

        Args:
            listener: its name in upper case, as Kafka has it.
            now_ms: epoch ms.
            max_rate: connections per second, `listener.name.<listener>.max.connection.creation.rate`.
            max_connections: `listener.name.<listener>.max.connections`.

        """
        rate = self._max_rate if max_rate is None else max_rate
        max_connections_now = self.counts.max_connections if max_connections is None else max_connections
        with self._lock:
            if listener not in self._listeners:
                self._listeners[listener] = _Listener(self._rates, listener, now_ms)
                self.counts.set_listener(listener, max_connections_now)
                self.update_listener_rate(listener, rate)

    def remove_listener(self, listener: str) -> None:
        """Stop to measure a listener; one that is not measured is fine."""
        with self._lock:
            quota = self._listeners.pop(listener, None)
            if quota is not None:
                self.counts.remove_listener(listener)
                self._remove(quota)

    def update_broker_rate(self, max_rate: int) -> None:
        """
        Limit the broker's connections per second.

        When a broker's config changes, Kafka applies it also to the listeners without a limit of their own: see
        `update_listener_rate`.
        """
        self._max_rate = max_rate
        self._rates.update(RateEntity(), max_rate)

    def update_listener_rate(self, listener: str, max_rate: int) -> None:
        """Limit a listener's connections per second."""
        self._rates.update(RateEntity(LISTENER_TAG, listener), max_rate)

    def update_ip_rate(self, ip: str | None, max_rate: int | None) -> None:
        """
        Limit an address, or with None all that have no limit of their own; a limit of None removes it.

        Raises:
            MalformedName: it is no address.

        """
        with self._lock:
            if ip is None:
                self._update_default_ip_rate(INT_MAX if max_rate is None else max_rate)
            else:
                self._update_ip_rate(host_address(ip), max_rate)

    def rate_for_ip(self, ip: str) -> int:
        """Return the limit of an address in connections per second; raises `MalformedName` for what is none."""
        return self._ip_limits.get(host_address(ip), self._default_ip_limit)

    def accept(self, listener: str, now_ms: int) -> int:
        """
        Record a connection for the broker and its listener, and return the ms to wait.

        As in Kafka the wait for the broker's sake is lost for a listener that was never added.
        """
        with self._lock:
            protected = self.counts.is_protected(listener)
            wait_ms = 0 if protected else self._rates.record(self._broker, now_ms)
            quota = self._listeners.get(listener)
            if quota is None:
                return 0
            wait_ms = max(wait_ms, self._rates.record(quota.rate, now_ms))
            if wait_ms > 0:
                quota.throttle_time.record(float(wait_ms), now_ms)
            return max(wait_ms, 0)

    def admit(self, listener: str, ip: str, now_ms: int) -> None:
        """
        Record a connection for its address and count it.

        Raises:
            ConnectionThrottled: its address is past its limit. The connection is taken back everywhere it was
                recorded, and is not counted.
            TooManyConnections: its address has as many as it may; it is recorded and counted.

        """
        with self._lock:
            self._record_ip(listener, host_address(ip), now_ms)
            self.counts.add(listener, ip)

    def closed(self, listener: str, ip: str) -> None:
        """Count a connection that was closed; raises `UnknownConnection` if its address has none."""
        with self._lock:
            self.counts.remove(listener, ip)

    def close(self) -> None:
        """Remove the sensors of broker and listeners; those of addresses expire."""
        with self._lock:
            self._rates.remove(self._broker)
            for quota in self._listeners.values():
                self._remove(quota)

    def _record_ip(self, listener: str, ip: str, now_ms: int) -> None:
        limit = self._ip_limits.get(ip, self._default_ip_limit)
        if limit == INT_MAX:
            return
        sensor = self._rates.sensor(RateEntity(IP_TAG, ip), limit, now_ms)
        throttle_ms = self._rates.record(sensor, now_ms)
        if throttle_ms > 0:
            sensor.record(-1.0, now_ms, check_quotas=False)
            self._take_back(listener, throttle_ms, now_ms)
            raise ConnectionThrottled(ip, now_ms, throttle_ms)

    def _take_back(self, listener: str, throttle_ms: int, now_ms: int) -> None:
        if not self.counts.is_protected(listener):
            self._broker.record(-1.0, now_ms, check_quotas=False)
        quota = self._listeners.get(listener)
        if quota is not None:
            quota.ip_throttle_time.record(float(throttle_ms), now_ms)
            quota.rate.record(-1.0, now_ms, check_quotas=False)

    def _update_ip_rate(self, ip: str, max_rate: int | None) -> None:
        if max_rate is None:
            self._ip_limits.pop(ip, None)
        else:
            self._ip_limits[ip] = max_rate
        limit = self._ip_limits.get(ip, self._default_ip_limit)
        self._rates.update(RateEntity(IP_TAG, ip), limit)

    def _update_default_ip_rate(self, max_rate: int) -> None:
        self._default_ip_limit = max_rate
        for ip, bound in self._rates.measured_ips():
            limit = self._ip_limits.get(ip, max_rate)
            if limit != bound:
                self._rates.update(RateEntity(IP_TAG, ip), limit)

    def _remove(self, quota: _Listener) -> None:
        self._rates.remove(quota.rate, quota.throttle_time, quota.ip_throttle_time)
