"""State of a connection that a client holds back while it is throttled (KIP-219), and the metrics of its throttles."""

from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.sensor import Sensor
from quotascope.metrics.engine.windowed import Avg, Max
from quotascope.metrics.kafka.numbers import LONG_MAX
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease

from .waiting import client_waits

NodeT = TypeVar("NodeT")


class ClientConnection:
    """
    Requests under way to a node, and the time before which no other may be sent to it.

    Kafka: the throttling of `NetworkClient`, `ClusterConnectionStates` and `InFlightRequests`. A lost connection is no
    way out: the throttle belongs to the node and outlives a reconnection to the same host, so this object is kept for
    as long. All times are ms of one clock.

    Args:
        throttle_time: receives the throttle time of every response (`throttle_time_sensor`); None to keep no metrics.
        release: of Kafka's Java client that this one behaves as.

    """

    __slots__ = ("_in_flight", "_release", "_throttle_time", "throttled_until_ms")

    def __init__(self, throttle_time: Sensor | None = None, release: KafkaRelease = NEWEST_RELEASE) -> None:
        self._release = release
        self._throttle_time = throttle_time
        self._in_flight: deque[_InFlight] = deque()
        self.throttled_until_ms: int = 0

    def sent(self, timeout_ms: int, now_ms: int) -> None:
        """Record a sent request, to be answered within `timeout_ms` (`request.timeout.ms`)."""
        self._in_flight.append(_InFlight(now_ms, timeout_ms))

    def received(self, api: ApiKey, version: int, throttle_time_ms: int, now_ms: int) -> bool:
        """
        Record the response to the oldest request; return whether it makes the client wait.

        The metrics also record responses of versions for which a client does not wait, and throttle times of 0. A
        response without that field counts as 0.
        """
        if self._in_flight:
            self._in_flight.popleft()
        if self._throttle_time is not None:
            self._throttle_time.record(float(throttle_time_ms), now_ms)
        if throttle_time_ms <= 0 or not client_waits(api, version, self._release):
            return False
        for request in self._in_flight:
            request.throttle_time_ms += throttle_time_ms
        until_ms = now_ms + throttle_time_ms
        self.throttled_until_ms = max(self.throttled_until_ms, until_ms)
        return True

    def disconnected(self) -> None:
        """Forget the requests under way, which will not be answered; the throttle stays."""
        self._in_flight.clear()

    @property
    def in_flight(self) -> int:
        """Number of requests without a response."""
        return len(self._in_flight)

    def ready(self, now_ms: int) -> bool:
        """Return whether the throttle allows another request."""
        return self.throttled_until_ms <= now_ms

    def throttle_delay_ms(self, now_ms: int) -> int:
        """Return the rest of the throttle in ms, 0 without one."""
        return max(0, self.throttled_until_ms - now_ms)

    def poll_delay_ms(self, now_ms: int, otherwise_ms: int = LONG_MAX) -> int:
        """Return the longest wait for the node in ms: the rest of its throttle; `otherwise_ms` without a throttle."""
        return self.throttle_delay_ms(now_ms) or otherwise_ms

    def timed_out(self, now_ms: int) -> bool:
        """Return whether a request is unanswered for longer than its timeout plus the throttle times since then."""
        return any(request.timed_out(now_ms) for request in self._in_flight)


class _InFlight:
    """A request without its response."""

    __slots__ = ("sent_ms", "throttle_time_ms", "timeout_ms")

    def __init__(self, sent_ms: int, timeout_ms: int) -> None:
        self.sent_ms = sent_ms
        self.timeout_ms = timeout_ms
        self.throttle_time_ms = 0

    def timed_out(self, now_ms: int) -> bool:
        """Return whether the request has timed out; if the clock went back, no time has passed."""
        elapsed_ms = max(0, now_ms - self.sent_ms)
        return elapsed_ms - self.throttle_time_ms > self.timeout_ms


def least_loaded(connections: Mapping[NodeT, ClientConnection], now_ms: int) -> NodeT | None:
    """
    Return the node with the fewest requests under way among those that are not throttled, the first of equals.

    None if all are throttled.

    Kafka's `leastLoadedNode` looks also at what a connection is otherwise ready for, and starts at a random node.
    """
    ready = (node for node, connection in connections.items() if connection.ready(now_ms))
    return min(ready, key=lambda node: connections[node].in_flight, default=None)


class ClientKind(Enum):
    """
    Kind of client that measures its throttles: sensor, group and descriptions of its metrics. Admin clients do not.

    Kafka: `SenderMetricsRegistry`, `FetchMetricsRegistry`, `ShareFetchMetricsRegistry`.
    """

    PRODUCER = (
        "produce-throttle-time",
        "producer-metrics",
        "time in ms a request was throttled by a broker",
    )
    CONSUMER = (
        "fetch-throttle-time",
        "consumer-fetch-manager-metrics",
        "throttle time in ms",
    )
    SHARE_CONSUMER = (
        "fetch-throttle-time",
        "consumer-share-fetch-manager-metrics",
        "throttle time in ms",
    )

    def __init__(self, sensor_name: str, group: str, about: str) -> None:
        self.sensor_name = sensor_name
        self.group = group
        self.about = about


def throttle_time_sensor(registry: Registry, kind: ClientKind, client_id: str, now_ms: int) -> Sensor:
    """
    Return the sensor for throttle times in ms, created at the first call; `now_ms` is epoch ms.

    It wants the throttle time of every response of every API, zeros included: so `…-throttle-time-avg` is diluted by
    what was not throttled, and 0, not NaN, for a client that is active and unthrottled. Raises `DuplicateMetric` when
    another sensor of the registry has such a metric; one registry is for one client.
    """
    sensor = registry.sensor(kind.sensor_name, now_ms)
    tags = {"client-id": client_id}
    for suffix, adjective, stat in (("avg", "average", Avg()), ("max", "maximum", Max())):
        name = f"{kind.sensor_name}-{suffix}"
        about = f"The {adjective} {kind.about}"
        sensor.add(registry.metric_name(name, kind.group, tags, about), stat)
    return sensor
