"""Vectors about clients that are throttled or refused, and about names."""

from collections.abc import Callable
from typing import TypeVar

from tests.conformance import expectations
from tests.conformance.fields import Fields, Malformed, Runner, as_integer, as_text
from tests.conformance.settings import member

from quotascope.clients import AdminRequestFailed, ClientError, MutationThrottled
from quotascope.clients.throttling import (
    ApiError,
    ClientConnection,
    ClientKind,
    MutationCall,
    RetryOptions,
    first_waiting_version,
    throttle_time_sensor,
)
from quotascope.metrics import KafkaRelease, MetricName, Registry, desanitize, mbean_name, sanitize, telemetry_name
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
        self._connection.received(self._api, self._version, throttle_ms, self.now_ms(step))

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
        sensor = throttle_time_sensor(self._registry, _kind(config), "client", self._origin_ms)
        self._connection = ClientConnection(sensor)

    def op_response(self, step: Fields) -> None:
        """Answer, in a version that the vectors leave open: all are recorded."""
        api = member(ApiKey, step.text("api"))
        throttle_ms = step.integer("throttle_time_ms")
        self._connection.received(api, 0, throttle_ms, self.now_ms(step))

    def op_metric(self, step: Fields) -> None:
        """Read one by its name."""
        metrics = {name.name: metric for name, metric in self._registry.metrics().items()}
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
            expectations.same(first, None if expected is None else step.integer("expect"), "first version")


CODES = {
    "NONE": 0,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "REQUEST_TIMED_OUT": 7,
    "INVALID_TOPIC_EXCEPTION": 17,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "CLUSTER_AUTHORIZATION_FAILED": 31,
    "TOPIC_ALREADY_EXISTS": 36,
    "INVALID_PARTITIONS": 37,
    "INVALID_REPLICATION_FACTOR": 38,
    "INVALID_REPLICA_ASSIGNMENT": 39,
    "INVALID_CONFIG": 40,
    "INVALID_REQUEST": 42,
    "POLICY_VIOLATION": 44,
    "TOPIC_DELETION_DISABLED": 73,
    "THROTTLING_QUOTA_EXCEEDED": 89,
    "UNKNOWN_TOPIC_ID": 100,
}
"""What can become of a topic, by Kafka's names (`Errors`)."""

T = TypeVar("T")

NAMES = {code: name for name, code in CODES.items()}


class AdminRetryRunner(Runner):
    """Answers the requests of a call, whose topics are those of its first request."""

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        super().__init__(config, release)
        self._options = RetryOptions(retry_on_quota_violation=config.flag("retry_on_quota_violation"))
        self._call: MutationCall[str] | None = None

    def op_request(self, step: Fields) -> None:
        """See that these topics are asked for, and answer."""
        topics = step.several("topics", as_text)
        now_ms = self.now_ms(step)
        if self._call is None:
            self._call = MutationCall("CreateTopics", topics, now_ms, self._options)
        expectations.same(list(self._call.pending), topics, "requested topics")
        errors = _map(step, "errors", as_text)
        results = {topic: ApiError(_code(error)) for topic, error in errors.items()}
        self._call.answered(results, step.integer("throttle_time_ms"), now_ms)

    def op_result(self, step: Fields) -> None:
        """See what became of each topic, and the throttle times of those that were refused."""
        results = {} if self._call is None else self._call.results
        names = {topic: _name(result) for topic, result in results.items()}
        throttles = {
            topic: result.throttle_time_ms for topic, result in results.items() if isinstance(result, MutationThrottled)
        }
        if "expect" in step:
            expectations.same(names, _map(step, "expect", as_text), "results")
        key = "expect_throttle_time_ms"
        if key in step:
            expectations.same(throttles, _map(step, key, as_integer), "throttles")


def _map(step: Fields, key: str, read: Callable[[object], T]) -> dict[str, T]:
    value = step.raw(key)
    if not isinstance(value, dict):
        raise Malformed(f"{key!r} should be an object, not {value!r:.60}")
    return {topic: read(each) for topic, each in value.items()}


def _code(name: str) -> int:
    if name not in CODES:
        raise Malformed(f"unknown error {name!r:.60}")
    return CODES[name]


def _name(result: ClientError | None) -> str:
    if result is None:
        return "NONE"
    code = result.code if isinstance(result, AdminRequestFailed) else None
    return NAMES[code] if code in NAMES else repr(result)


class SanitizeRunner(Runner):
    """Sanitizes users and names MBeans."""

    def op_sanitize(self, step: Fields) -> None:
        """Percent-encode."""
        expectations.text(step, sanitize(step.text("value")))

    def op_round_trip(self, step: Fields) -> None:
        """Percent-encode and decode again."""
        value = step.text("value")
        expectations.same(desanitize(sanitize(value)), value, "round trip of")

    def op_mbean(self, step: Fields) -> None:
        """Name an MBean."""
        tags = step.several("tags", _pair)
        name = mbean_name(step.text("prefix"), step.text("group"), tags)
        expectations.text(step, name)


def _pair(value: object) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise Malformed(f"a key and a value were expected, not {value!r:.60}")
    return as_text(value[0]), as_text(value[1])


class TelemetryNameRunner(Runner):
    """Makes names."""

    def op_telemetry_name(self, step: Fields) -> None:
        """Make the name of a metric."""
        name = MetricName(step.text("name"), step.text("group"))
        expectations.text(step, telemetry_name(name, step.text("prefix")))
