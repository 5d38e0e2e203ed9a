"""Why an attempt failed, from its TaskEndReason."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .cause import Cause
from .chain import Raised, java_chain, python_chain
from .fields import Json, name, text

_PYTHON_EXCEPTION = "org.apache.spark.api.python.PythonException"
_MOST_NAMES = 20

_CONFLUENT = ("cimpl.", "confluent_kafka.")
_KAFKA = (*_CONFLUENT, "kafka.errors.", "org.apache.kafka.", "quotascope.clients.")
_CODE = re.compile(r"KafkaError\{code=(\w{1,100}),")
_CONFLUENT_TIMEOUTS = {
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_MSG_TIMED_OUT",
    "REQUEST_TIMED_OUT",
}
_QUOTA_NAMES = {
    "kafka.errors.ThrottlingQuotaExceededError",
    "org.apache.kafka.common.errors.ThrottlingQuotaExceededException",
    "quotascope.clients.throttled_admin.outcomes.QuotaExceeded",
    "quotascope.clients.throttled_admin.paced_futures.QuotaExceeded",
}
_TIMEOUT_NAMES = {
    "kafka.errors.KafkaTimeoutError",
    "kafka.errors.RequestTimedOutError",
    "org.apache.kafka.common.errors.TimeoutException",
    "org.apache.kafka.clients.producer.BufferExhaustedException",  # a TimeoutException
}
# InternalKafkaConsumer of spark-sql-kafka-0-10: nothing was fetched within kafkaConsumer.pollTimeoutMs
_CONNECTOR_TIMEOUT = "java.util.concurrent.TimeoutException"
_CONNECTOR_SAID = "Cannot fetch record for offset "
_WORKER_DIED = "Python worker exited unexpectedly"

_NOT_FAILED = (
    re.compile(r".{0,200}another attempt succeeded$"),  # TaskSetManager: speculation
    re.compile(r"Stage (cancelled|finished)\b"),
    re.compile(r"[Jj]ob .{0,100}cancelled\b"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed attempt."""

    cause: Cause
    chain: tuple[str, ...] = ()
    """
    Classes of the exceptions, outermost first, of a long chain those at both ends. Messages are left out: they hold anything,
    passwords too.
    """


def classify(reason: Json) -> Failure | None:
    """
    Why an attempt failed; None when it did not.

    It did not when it succeeded, lost a race against another attempt at the same task, or was cancelled with its stage. Spark's own
    count of failed tasks leaves these out, too.

    Args:
        reason: "Task End Reason" of a SparkListenerTaskEnd.

    """
    return _BY_REASON.get(text(reason, "Reason"), _unknown)(reason)


def failure_text(reason: Json) -> str:
    """Where an exception that Python code has raised, or that it caused, is told in full."""
    if text(reason, "Class Name") == _PYTHON_EXCEPTION:
        return text(reason, "Description")
    return text(reason, "Full Stack Trace") or text(reason, "Description")


def _exception(reason: Json) -> Failure:
    chain = _chain(reason)
    names = tuple(each.name for each in chain)
    if len(names) > _MOST_NAMES:
        names = names[: _MOST_NAMES // 2] + names[-_MOST_NAMES // 2 :]
    return Failure(cause=_cause(chain), chain=names)


def _chain(reason: Json) -> Sequence[Raised]:
    outermost = name(reason, "Class Name")
    told = failure_text(reason)
    if outermost == _PYTHON_EXCEPTION:
        return (Raised(outermost, ""), *python_chain(told))
    return java_chain(told) or (Raised(outermost, name(reason, "Description")),)


def _cause(chain: Sequence[Raised]) -> Cause:
    for cause, shows in _EVIDENCE:
        if any(shows(each) for each in chain):
            return cause
    return Cause.OTHER


def _is_quota(raised: Raised) -> bool:
    if raised.name in _QUOTA_NAMES or _code(raised) == "THROTTLING_QUOTA_EXCEEDED":
        return True
    return raised.name.startswith("kafka.errors.") and raised.said.startswith(
        "[Error 89]"
    )


def _is_timeout(raised: Raised) -> bool:
    if raised.name == _CONNECTOR_TIMEOUT:
        return raised.said.startswith(_CONNECTOR_SAID)
    return raised.name in _TIMEOUT_NAMES or _code(raised) in _CONFLUENT_TIMEOUTS


def _is_kafka(raised: Raised) -> bool:
    return raised.name.startswith(_KAFKA)


def _is_dead_worker(raised: Raised) -> bool:
    return raised.name == "org.apache.spark.SparkException" and raised.said.startswith(
        _WORKER_DIED
    )


_EVIDENCE: Sequence[tuple[Cause, Callable[[Raised], bool]]] = (
    (Cause.KAFKA_QUOTA, _is_quota),
    (Cause.KAFKA_TIMEOUT, _is_timeout),
    (Cause.KAFKA_OTHER, _is_kafka),
    (Cause.PYTHON_WORKER_DIED, _is_dead_worker),
)
"""The strongest first."""


def _code(raised: Raised) -> str:
    """The code of librdkafka's error, where it is one."""
    if not raised.name.startswith(_CONFLUENT):
        return ""
    match = _CODE.match(raised.said)
    return match[1] if match else ""


def _killed(reason: Json) -> Failure | None:
    why = name(reason, "Kill Reason")
    if any(pattern.match(why) for pattern in _NOT_FAILED):
        return None
    return Failure(cause=Cause.KILLED)


def _not_failed(_reason: Json) -> None:
    return None


def _unknown(_reason: Json) -> Failure:
    return Failure(cause=Cause.UNKNOWN)


def _always(cause: Cause) -> Callable[[Json], Failure]:
    return lambda _reason: Failure(cause=cause)


_BY_REASON: dict[str, Callable[[Json], Failure | None]] = {
    "Success": _not_failed,
    "TaskCommitDenied": _not_failed,  # another attempt has committed
    "TaskKilled": _killed,
    "ExceptionFailure": _exception,
    "ExecutorLostFailure": _always(Cause.EXECUTOR_LOST),
    "Resubmitted": _always(Cause.EXECUTOR_LOST),  # its output went with the executor
    "FetchFailed": _always(Cause.FETCH_FAILED),
    "TaskResultLost": _always(Cause.OTHER),
}
