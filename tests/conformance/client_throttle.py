"""Vectors about clients that are throttled."""

from tests.conformance import expectations
from tests.conformance.failures import Malformed
from tests.conformance.fields import Fields
from tests.conformance.runner import Runner
from tests.conformance.settings import member

from quotascope.clients.throttling import (
    ClientConnection,
    ClientKind,
    first_waiting_version,
    throttle_time_sensor,
)
from quotascope.metrics import KafkaRelease, Registry
from quotascope.metrics.protocol import ApiKey


class ClientThrottleRunner(Runner):
    """Answers the requests of one connection and asks whether it may send another one."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._api = member(ApiKey, config.text("api"))
        self._version = config.integer("version")
        self._connection = ClientConnection()

    def op_response(self, step: Fields) -> None:
        """Answer."""
        throttle_ms = step.integer("throttle_time_ms")
        self._connection.received(
            self._api, self._version, throttle_ms, self.now_ms(step)
        )

    def op_ready(self, step: Fields) -> None:
        """Ask whether it may send."""
        expectations.flag(step, self._connection.ready(self.now_ms(step)))

    def op_throttle_delay(self, step: Fields) -> None:
        """Ask how long it may not."""
        expectations.number(step, self._connection.throttle_delay_ms(self.now_ms(step)))


class ClientThrottleMetricsRunner(Runner):
    """Answers the requests of a client and reads its metrics."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._registry = Registry()
        sensor = throttle_time_sensor(
            self._registry, _kind(config), "client", self._origin_ms
        )
        self._connection = ClientConnection(sensor)

    def op_response(self, step: Fields) -> None:
        """Answer, in a version that the vectors leave open: all are recorded."""
        api = member(ApiKey, step.text("api"))
        throttle_ms = step.integer("throttle_time_ms")
        self._connection.received(api, 0, throttle_ms, self.now_ms(step))

    def op_metric(self, step: Fields) -> None:
        """Read one by its name."""
        metrics = {
            name.name: metric for name, metric in self._registry.metrics().items()
        }
        name = step.text("name")
        if name not in metrics:
            raise Malformed(f"unknown metric {name!r:.60}")
        expectations.number(step, metrics[name].value(self.now_ms(step)))


def _kind(config: Fields) -> ClientKind:
    """The first kind of client whose metrics begin so: the consumer's and the share consumer's differ in their group only."""
    prefix = config.text("metric_prefix")
    for kind in ClientKind:
        if kind.sensor_name == prefix:
            return kind
    raise Malformed(f"no client has metrics {prefix!r:.60}")


class ShouldClientThrottleRunner(Runner):
    """Looks up responses."""

    def op_first_version(self, step: Fields) -> None:
        """Ask for the first version that makes a client wait; null for none."""
        first = first_waiting_version(member(ApiKey, step.text("api")), self._release)
        if "expect" in step:
            expected = step.raw("expect")
            expectations.same(
                first,
                None if expected is None else step.integer("expect"),
                "first version",
            )
