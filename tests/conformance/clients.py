"""Vectors about clients that are throttled or refused, and about names."""

from tests.conformance.fields import Answers, Malformed, Runner, Unmet

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
from quotascope.metrics.engine.extras.telemetry_names import telemetry_name
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.jmx import mbean_name
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.sanitizer import desanitize, sanitize


class ClientThrottleRunner(Runner):
    def _begin(self, api: ApiKey, version: int) -> None:
        self._api, self._version, self._connection = api, version, ClientConnection()

    def _op_response(self, throttle_time_ms: int) -> None:
        self._connection.received(self._api, self._version, throttle_time_ms, self._now_ms)

    def _op_ready(self) -> bool:
        return self._connection.ready(self._now_ms)

    def _op_throttle_delay(self) -> int:
        return self._connection.throttle_delay_ms(self._now_ms)


class ClientThrottleMetricsRunner(Runner):
    def _begin(self, metric_prefix: str) -> None:
        """
        Choose the first kind of client whose metrics begin with the prefix.

        Consumer and share consumer differ in their group only.
        """
        kind = next((kind for kind in ClientKind if kind.sensor_name == metric_prefix), None)
        if kind is None:
            raise Malformed(f"no client has metrics {metric_prefix!r:.60}")
        self._registry = Registry()
        self._connection = ClientConnection(throttle_time_sensor(self._registry, kind, "client", self._origin_ms))

    def _op_response(self, api: ApiKey, throttle_time_ms: int) -> None:
        """Answer, in a version that the vectors leave open: all are recorded."""
        self._connection.received(api, 0, throttle_time_ms, self._now_ms)

    def _op_metric(self, name: str) -> float:
        metrics = {metric_name.name: metric for metric_name, metric in self._registry.metrics().items()}
        if name not in metrics:
            raise Malformed(f"unknown metric {name!r:.60}")
        return metrics[name].value(self._now_ms)


class ShouldClientThrottleRunner(Runner):
    """Looks up the first version of a response that makes a client wait; null for none."""

    def _op_first_version(self, api: ApiKey) -> int | None:
        return first_waiting_version(api, self._release)


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
NAMES = {code: name for name, code in CODES.items()}


class AdminRetryRunner(Runner):
    """A runner that answers the requests of a call for the topics of its first one, and checks each result."""

    def _begin(self, retry_on_quota_violation: bool) -> None:  # noqa: FBT001 - a key of a config
        self._options = RetryOptions(retry_on_quota_violation=retry_on_quota_violation)
        self._call: MutationCall[str] | None = None

    def _op_request(self, topics: list[str], errors: dict[str, str], throttle_time_ms: int) -> None:
        if self._call is None:
            self._call = MutationCall("CreateTopics", topics, self._now_ms, self._options)
        if list(self._call.pending) != topics:
            raise Unmet(f"requested topics {topics!r}, got {self._call.pending!r}")
        if unknown := set(errors.values()) - CODES.keys():
            raise Malformed(f"unknown error {min(unknown)!r:.60}")
        results = {topic: ApiError(CODES[error]) for topic, error in errors.items()}
        self._call.answered(results, throttle_time_ms, self._now_ms)

    def _op_result(self) -> Answers:
        """Return the outcome of each topic, and the throttle times of refused ones."""
        results = {} if self._call is None else self._call.results
        throttled = {
            topic: each.throttle_time_ms for topic, each in results.items() if isinstance(each, MutationThrottled)
        }
        return Answers(
            expect={topic: _name(each) for topic, each in results.items()}, expect_throttle_time_ms=throttled
        )


def _name(result: ClientError | None) -> str:
    if result is None:
        return "NONE"
    code = result.code if isinstance(result, AdminRequestFailed) else None
    return NAMES[code] if code in NAMES else repr(result)


class SanitizeRunner(Runner):
    def _op_sanitize(self, value: str) -> str:
        return sanitize(value)

    def _op_round_trip(self, value: str) -> None:
        if desanitize(sanitize(value)) != value:
            raise Unmet(f"round trip of {value!r}, got {desanitize(sanitize(value))!r}")

    def _op_mbean(self, prefix: str, group: str, tags: list[list[str]]) -> str:
        if any(len(tag) != 2 for tag in tags):
            raise Malformed(f"tags are a key and a value each, not {tags!r:.60}")
        return mbean_name(prefix, group, [(key, value) for key, value in tags])


class TelemetryNameRunner(Runner):
    def _op_telemetry_name(self, prefix: str, group: str, name: str) -> str:
        return telemetry_name(MetricName(name, group), prefix)
