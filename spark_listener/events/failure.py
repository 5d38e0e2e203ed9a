"""Why an attempt of a task failed: the exceptions that its TaskEndReason names, and the cause that they show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from .fields import Json, name, text

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


_TRACEBACK = "Traceback (most recent call last):"
_GROUP = f"+ Exception Group {_TRACEBACK}"
_MARGIN = re.compile(r" {2,100}\| ?")
_PYTHON = re.compile(r"([\w.<>]{1,500})(?:: (.*))?$")
_JAVA = re.compile(r"(Caused by: |Suppressed: )?([\w$.]{1,500})(?:: (.*))?$")
_FRAME = re.compile(r"\t+(?:at |\.\.\. \d)")
_FRAMELESS = "org.apache.kafka."
_PYTHON_EXCEPTION = "org.apache.spark.api.python.PythonException"
_MOST_CHARACTERS = 1_000_000
_LONGEST_LINE = 2_000


class FailureCause(StrEnum):
    """
    Reasons of failures, the strongest evidence first; nothing is guessed beyond the evidence.

    A program that raises an exception of its own after one of Kafka's (`raise X from error`) failed for Kafka's.
    """

    KAFKA_QUOTA = "kafka_quota"
    """A quota refused a change of the cluster: THROTTLING_QUOTA_EXCEEDED, error 89."""
    KAFKA_TIMEOUT_THROTTLED = "kafka_timeout_throttled"
    """A Kafka client gave up waiting, in an attempt that was throttled, by its note."""
    KAFKA_TIMEOUT = "kafka_timeout"
    """A Kafka client gave up waiting; whether a throttle was the reason is not known."""
    KAFKA_OTHER = "kafka_other"
    """Another error of a Kafka client."""
    EXECUTOR_LOST = "executor_lost"
    """The executor went away, during the attempt or with its output."""
    FETCH_FAILED = "fetch_failed"
    """The shuffle output that the attempt reads was gone."""
    PYTHON_WORKER_DIED = "python_worker_died"
    """The Python process of the attempt ended without an exception: killed, out of memory, or crashed."""
    KILLED = "killed"
    """Spark killed this attempt; attempts of canceled stages and losers of a speculation do not count as failed."""
    OTHER = "other"
    """Anything else that the program or Spark raised."""
    UNKNOWN = "unknown"
    """Spark does not say why, or the event that does was not seen."""


class Raised(NamedTuple):
    """One exception of a chain."""

    name: str
    """The class with its module or package."""
    said: str
    """The first line of its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed attempt."""

    cause: FailureCause
    chain: tuple[str, ...] = ()
    """
    Classes of the exceptions, outermost first, of a long chain those at both ends. Messages are left out: they hold anything,
    passwords too.
    """


def classify(reason: Json) -> Failure | None:
    """
    Why an attempt failed; None when it did not.

    It did not when it succeeded, lost a race against another attempt at the same task, or was canceled with its stage. Spark's own
    count of failed tasks leaves these out, too.

    Args:
        reason: "Task End Reason" of a SparkListenerTaskEnd.

    """
    match text(reason, "Reason"):
        case "Success" | "TaskCommitDenied":  # another attempt has committed
            return None
        case "TaskKilled":
            why = name(reason, "Kill Reason")
            failed = not any(pattern.match(why) for pattern in _NOT_FAILED)
            return Failure(cause=FailureCause.KILLED) if failed else None
        case "ExceptionFailure":
            chain = _chain(reason)
            names = tuple(each.name for each in chain)
            if len(names) > _MOST_NAMES:
                names = names[: _MOST_NAMES // 2] + names[-_MOST_NAMES // 2 :]
            return Failure(cause=min(map(_shown_by, chain), key=_ORDER.index), chain=names)
        case other:
            return Failure(cause=_CAUSES.get(other, FailureCause.UNKNOWN))


def failure_text(reason: Json) -> str:
    """The full text of an exception that Python code has raised, or that it caused."""
    if text(reason, "Class Name") == _PYTHON_EXCEPTION:
        return text(reason, "Description")
    return text(reason, "Full Stack Trace") or text(reason, "Description")


def _chain(reason: Json) -> Sequence[Raised]:
    outermost = name(reason, "Class Name")
    whole = failure_text(reason)
    if outermost == _PYTHON_EXCEPTION:
        return (Raised(outermost, ""), *python_chain(whole))
    return java_chain(whole) or (Raised(outermost, name(reason, "Description")),)


def _shown_by(raised: Raised) -> FailureCause:
    """The cause that one exception shows by its class and the beginning of its message."""
    code = ""  # librdkafka's
    if raised.name.startswith(_CONFLUENT) and (match := _CODE.match(raised.said)):
        code = match[1]
    name, said = raised
    evidence = {
        FailureCause.KAFKA_QUOTA: name in _QUOTA_NAMES
        or code == "THROTTLING_QUOTA_EXCEEDED"
        or (name.startswith("kafka.errors.") and said.startswith("[Error 89]")),
        FailureCause.KAFKA_TIMEOUT: name in _TIMEOUT_NAMES
        or code in _CONFLUENT_TIMEOUTS
        or (name == _CONNECTOR_TIMEOUT and said.startswith(_CONNECTOR_SAID)),
        FailureCause.KAFKA_OTHER: name.startswith(_KAFKA),
        FailureCause.PYTHON_WORKER_DIED: name == "org.apache.spark.SparkException" and said.startswith(_WORKER_DIED),
    }
    return next((cause for cause, shown in evidence.items() if shown), FailureCause.OTHER)


_ORDER: Sequence[FailureCause] = tuple(FailureCause)
_CAUSES = {
    "ExecutorLostFailure": FailureCause.EXECUTOR_LOST,
    "Resubmitted": FailureCause.EXECUTOR_LOST,  # its output went with the executor
    "FetchFailed": FailureCause.FETCH_FAILED,
    "TaskResultLost": FailureCause.OTHER,
}


def python_chain(text: str) -> tuple[Raised, ...]:
    """
    The exceptions of a Python traceback, outermost first: causes, contexts and members of groups.

    A line counts where a traceback ends with it. Quoted source, notes and further lines of messages do not.
    """
    return tuple(_outermost_first(line for part in _parts(text) for line in part))


def java_chain(text: str) -> tuple[Raised, ...]:
    """
    The exceptions of a Java stack trace, outermost first: causes and suppressed ones; where Python raised one, its chain as well.

    A line counts where the frames of another exception have just ended, so not in the midst of a message.
    """
    found: list[Raised] = []
    for part in _parts(text):
        for is_frame, lines in groupby(part, lambda line: bool(_FRAME.match(line))):
            if not is_frame:
                found.extend(_of_java(list(lines), outermost=not found))
    return tuple(found)


def _of_java(lines: Sequence[str], *, outermost: bool) -> Iterator[Raised]:
    """What the lines between two stack traces name: one exception and the rest of its message."""
    for index, line in enumerate(lines):
        match = _JAVA.match(line.lstrip("\t"))
        if match is None or not (match[1] or (outermost and index == 0)):
            return
        yield Raised(match[2], match[3] or "")
        if match[2] == _PYTHON_EXCEPTION:
            yield from _outermost_first([match[3] or "", *lines[index + 1 :]])
        if not match[2].startswith(_FRAMELESS):  # those have no frames of their own
            return


def _outermost_first(lines: Iterable[str]) -> list[Raised]:
    """The exceptions of a Python traceback, which prints the innermost first."""
    found: list[Raised] = []
    inside = in_group = False
    for index, line in enumerate(lines):
        bare = _MARGIN.sub("", line, count=1) if in_group else line
        if inside:
            if bare[:1].strip():
                inside = False
                if (match := _PYTHON.match(bare)) is not None:
                    found.append(Raised(match[1], match[2] or ""))
        elif bare.strip(" ") == _GROUP or (index == 0 and bare.endswith(_GROUP)):
            inside = in_group = True
        else:  # Spark 4.3 has a sentence of its own before the first
            inside = bare == _TRACEBACK or (index == 0 and bare.endswith(_TRACEBACK))
    return found[::-1]


def _parts(text: str) -> Iterator[list[str]]:
    """The lines of a text, of a very long one those at its two ends."""
    if len(text) <= _MOST_CHARACTERS:
        yield _lines(text)
        return
    yield _lines(text[: _MOST_CHARACTERS // 2])[:-1]
    yield _lines(text[-_MOST_CHARACTERS // 2 :])[1:]


def _lines(text: str) -> list[str]:
    return [line[:_LONGEST_LINE].rstrip("\r") for line in text.split("\n")]
