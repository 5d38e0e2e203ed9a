"""
Errors of the engine beside wrong settings and names (`metrics.kafka.errors`).

```
MetricsError
├── InvalidHierarchy            a sensor meets itself, or another one twice, among its parents
├── DuplicateMetric             another sensor owns the name
├── NotMeasurable               a gauge was asked for a number
├── MalformedBatch              arrays of records that do not fit each other
├── WrongStatistic              a throttle time was asked of a metric that has none
├── IllegalMuteTransition       an event that cannot happen to a channel in its state
├── QuotaViolation              a recorded value went past its bound
├── ThrottlingQuotaExceeded     a controller mutation was refused (Kafka's error code 89)
├── ConnectionThrottled         a connection came too soon after others from its address
├── TooManyConnections          an address has as many connections as it may
└── UnknownConnection           a connection was closed that was never counted
```

Violations are part of normal work: they keep their fields and build a text only on demand.
"""

from typing import TYPE_CHECKING

from ..kafka.errors import MetricsError

if TYPE_CHECKING:
    from .metric import KafkaMetric
    from .metric_name import MetricName


class InvalidHierarchy(MetricsError, ValueError):
    """A sensor is met twice among the parents, even without a cycle (Kafka: `Sensor.checkForest`)."""

    def __init__(self, sensor_name: str) -> None:
        super().__init__(sensor_name)
        self.sensor_name = sensor_name

    def __str__(self) -> str:
        return f"a sensor meets {self.sensor_name!r} twice among its parents and theirs"


class DuplicateMetric(MetricsError, ValueError):
    """A metric of this name exists already, and not on this sensor."""

    def __init__(self, metric_name: "MetricName") -> None:
        super().__init__(metric_name)
        self.metric_name = metric_name

    def __str__(self) -> str:
        return f"a metric named {self.metric_name} already exists"


class NotMeasurable(MetricsError, TypeError):
    """A gauge may hold any object: read it with `KafkaMetric.read`."""

    def __init__(self, metric_name: "MetricName") -> None:
        super().__init__(metric_name)
        self.metric_name = metric_name

    def __str__(self) -> str:
        return f"the metric {self.metric_name} is a gauge, not a measurable"


class MalformedBatch(MetricsError, ValueError):
    """Arrays of records do not fit each other, or what they are about."""


class WrongStatistic(MetricsError, TypeError):
    """A throttle time follows from the statistic behind a metric, and this one is of another kind."""

    def __init__(self, metric_name: "MetricName", expected: str) -> None:
        super().__init__(metric_name, expected)
        self.metric_name = metric_name
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.metric_name} is not {self.expected}"


class IllegalMuteTransition(MetricsError, RuntimeError):
    """An event cannot happen to a channel in this mute state (Kafka: `KafkaChannel.handleChannelMuteEvent`)."""

    def __init__(self, state: str, event: str) -> None:
        super().__init__(state, event)
        self.state = state
        self.event = event

    def __str__(self) -> str:
        return f"{self.event} cannot happen to a channel that is {self.state}"


class QuotaViolation(MetricsError):
    """
    A metric's value is past its bound (Kafka: `QuotaViolationException`).

    The value was recorded before it was checked, so it counts. `metric` gives access to the stat, from which
    the throttle time is computed; it is None only for violations made by hand or in another process.
    """

    if TYPE_CHECKING:

        def __init__(
            self, metric_name: MetricName, value: float, bound: float, metric: KafkaMetric | None = None
        ) -> None: ...

    # Every throttled request makes one: no constructor in Python, and fields that are looked up when asked for.

    @property
    def metric_name(self) -> "MetricName":
        """The metric past its bound."""
        name: MetricName = self.args[0]
        return name

    @property
    def value(self) -> float:
        """Measured value."""
        value: float = self.args[1]
        return value

    @property
    def bound(self) -> float:
        """Bound of the value."""
        bound: float = self.args[2]
        return bound

    @property
    def metric(self) -> "KafkaMetric | None":
        """The metric itself, with its statistic."""
        return self.args[3] if len(self.args) > 3 else None  # noqa: PLR2004 - the fourth

    def __reduce__(self) -> tuple[type["QuotaViolation"], tuple[object, ...]]:
        return QuotaViolation, self.args[:3]

    def __str__(self) -> str:
        return f"{self.metric_name} has value {self.value}, its bound is {self.bound}"


class ThrottlingQuotaExceeded(MetricsError):
    """A controller mutation was refused and may be tried again after `throttle_time_ms` (KIP-599)."""

    def __init__(self, throttle_time_ms: int) -> None:
        super().__init__(throttle_time_ms)
        self.throttle_time_ms = throttle_time_ms

    def __str__(self) -> str:
        return f"the throttling quota has been exceeded, wait {self.throttle_time_ms} ms"


class ConnectionThrottled(MetricsError):
    """
    An address opens connections faster than it may (Kafka: `ConnectionThrottledException`, KIP-612).

    The connection is to be closed, and not before `end_ms` (epoch ms): an answer at once would only be followed by the
    next attempt.
    """

    def __init__(self, ip: str, start_ms: int, throttle_time_ms: int) -> None:
        super().__init__(ip, start_ms, throttle_time_ms)
        self.ip = ip
        self.start_ms = start_ms
        self.throttle_time_ms = throttle_time_ms

    @property
    def end_ms(self) -> int:
        """Time at which the connection may be closed."""
        return self.start_ms + self.throttle_time_ms

    def __str__(self) -> str:
        return f"{self.ip} opens connections too fast, throttled for {self.throttle_time_ms} ms"


class TooManyConnections(MetricsError):
    """An address has its highest number of connections; this one is counted and to be closed (Kafka's own name)."""

    def __init__(self, ip: str, limit: int) -> None:
        super().__init__(ip, limit)
        self.ip = ip
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.ip} may not have more than {self.limit} connections"


class UnknownConnection(MetricsError, ValueError):
    """A connection is said to be closed, but its address has none (Kafka: `IllegalArgumentException`)."""

    def __init__(self, ip: str) -> None:
        super().__init__(ip)
        self.ip = ip

    def __str__(self) -> str:
        return f"{self.ip} has no connection that could be closed"
