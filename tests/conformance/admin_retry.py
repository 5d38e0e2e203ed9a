"""Vectors about admin clients whose mutations are refused."""

from collections.abc import Callable
from typing import TypeVar

from tests.conformance import expectations
from tests.conformance.failures import Malformed
from tests.conformance.fields import Fields, as_integer, as_text
from tests.conformance.runner import Runner

from quotascope.clients import AdminRequestFailed, ClientError, MutationThrottled
from quotascope.clients.throttling import ApiError, MutationCall, RetryOptions
from quotascope.metrics import KafkaRelease

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
        self._options = RetryOptions(
            retry_on_quota_violation=config.flag("retry_on_quota_violation")
        )
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
            topic: result.throttle_time_ms
            for topic, result in results.items()
            if isinstance(result, MutationThrottled)
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
