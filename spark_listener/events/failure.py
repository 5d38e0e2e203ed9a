"""Causes of failed attempts of tasks: the exceptions that a TaskEndReason names, and the cause that they show."""

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
_PYTHON_CLIENTS = ("kafka.errors.", "aiokafka.errors.")
"""Modules of kafka-python and aiokafka, whose messages begin with the number of the error."""
_JAVA_CLIENTS = "org.apache.kafka."
_KAFKA = (*_CONFLUENT, *_PYTHON_CLIENTS, _JAVA_CLIENTS, "kafka.common.", "kafka.consumer.", "quotascope.clients.")
"""Packages of Kafka clients, including those of Spark's connector to Kafka 0.8."""
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
    *(f"{module}{name}" for module in _PYTHON_CLIENTS for name in ("KafkaTimeoutError", "RequestTimedOutError")),
    "kafka.consumer.ConsumerTimeoutException",
    "org.apache.kafka.common.errors.TimeoutException",
    "org.apache.kafka.clients.producer.BufferExhaustedException",  # a TimeoutException
}
# InternalKafkaConsumer of spark-sql-kafka-0-10: nothing was fetched within kafkaConsumer.pollTimeoutMs
_CONNECTOR_TIMEOUT = "java.util.concurrent.TimeoutException"
_CONNECTOR_SAID = "Cannot fetch record for offset "
# KafkaDataConsumer of spark-streaming-kafka-0-10: an assertion before Spark 2.4, a requirement since
_DSTREAM_TIMEOUTS = {"java.lang.AssertionError", "java.lang.IllegalArgumentException"}
_DSTREAM_SAID = re.compile(r"(?:assertion|requirement) failed: Failed to get records for .* after polling for \d+")
_WORKER_DIED = "Python worker exited unexpectedly"

_NOT_FAILED = (
    re.compile(r".{0,200}another attempt succeeded$"),  # TaskSetManager: speculation
    re.compile(r"Stage (cancelled|finished)\b"),
    re.compile(r"[Jj]ob .{0,100}cancelled\b"),
)


_TRACEBACK = "Traceback (most recent call last):"
_GROUP = f"+ Exception Group {_TRACEBACK}"
_BETWEEN = {
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
}
"""Lines that Python prints between the tracebacks of a chain."""
_MEMBER = re.compile(r" {0,100}\+[-+]{0,10}-{5,40} \d{1,9} -{5,40}$")
"""Line that Python prints above each member of a group."""
_MARGIN = re.compile(r" {2,100}\| ?")
_PYTHON = re.compile(r"([\w.<>]{1,500})(?:: (.*))?$")
_JAVA = re.compile(r"(Caused by: |Suppressed: )?([\w$.]{1,500})(?:: (.*))?$")
_FRAME = re.compile(r"(?:\t+| {2,8})(?:at |\.\.\. \d)")
_FROM_PYTHON = re.compile(r"An exception was raised by the Python Proxy\. Return Message: (.*)")
"""Py4JException's message where a function of the driver raised, such as that of `foreachBatch`."""
_ABORTED = re.compile(
    r"Job aborted due to stage failure: .* most recent failure: .*?\(TID \d+\)[^:]*: ([\w.$]{1,500})(?:: (.*))?$"
)
"""DAGScheduler's message, which names the exception of the last attempt."""
_TERMINATED = re.compile(
    r"(?:\[STREAM_FAILED\] )?Query .{1,300}? terminated with exception: "
    r"((?:[\w$]{1,100}\.){1,20}[\w$]{1,200}(?:Exception|Error))(?:: (.*))?$"
)
_QUERY_EXCEPTIONS = {"org.apache.spark.sql.streaming.StreamingQueryException"}
"""Exceptions whose message begins with the text of their cause."""
_PYTHON_EXCEPTION = "org.apache.spark.api.python.PythonException"
_MOST_CHARACTERS = 1_000_000
_LONGEST_LINE = 2_000
_LONGEST_NAME = 500


class FailureCause(StrEnum):
    """
    Causes of failures, the one with the strongest evidence first.

    If a program raises its own exception from an exception of Kafka (`raise X from error`), Kafka's is the cause.
    """

    KAFKA_QUOTA = "kafka_quota"
    """A quota refused a change of the cluster: THROTTLING_QUOTA_EXCEEDED, error 89."""
    KAFKA_TIMEOUT_THROTTLED = "kafka_timeout_throttled"
    """A Kafka client gave up waiting, in an attempt that was throttled, by its note."""
    KAFKA_TIMEOUT = "kafka_timeout"
    """A Kafka client gave up waiting; a throttle may have been the reason."""
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
    """An error that the program or Spark raised, with none of the causes above."""
    UNKNOWN = "unknown"
    """Spark does not report the reason, or the event with the reason was missed."""


class Raised(NamedTuple):
    """One exception of a chain."""

    name: str
    """The class with its module or package."""
    said: str
    """First line of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed attempt."""

    cause: FailureCause
    chain: tuple[str, ...] = ()
    """
    Classes of the exceptions, outermost first; of a long chain, only those at both ends.

    Messages are left out, since they can hold anything, also passwords.
    """


def classify(reason: Json) -> Failure | None:
    """
    Return the failure of an attempt; None for an attempt that did not fail.

    An attempt did not fail if it succeeded, lost a race against another attempt of the same task, or was canceled with
    its stage. Spark's own count of failed tasks leaves these out, too.

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
            return _failure(_chain(reason))
        case other:
            return Failure(cause=_CAUSES.get(other, FailureCause.UNKNOWN))


def classify_query(exception: object) -> Failure | None:
    """
    Return the failure that ended a streaming query; None for a query that was stopped.

    Args:
        exception: "exception" of a QueryTerminatedEvent: a stack trace of the driver, or null or missing if the query
            was stopped.

    """
    if exception is None or exception == "":
        return None
    if not isinstance(exception, str):
        return Failure(cause=FailureCause.UNKNOWN)
    first_line = exception[:_LONGEST_LINE].partition("\n")[0]
    chain = java_chain(exception) or (Raised(first_line.partition(": ")[0][:_LONGEST_NAME], ""),)
    return _failure(chain)


def failure_text(reason: Json) -> str:
    """Return the full text of the exception of a failed attempt, with its stack traces."""
    if text(reason, "Class Name") == _PYTHON_EXCEPTION:
        return text(reason, "Description")
    return text(reason, "Full Stack Trace") or text(reason, "Description")


def _failure(chain: Sequence[Raised]) -> Failure:
    """Return the failure that a chain of exceptions shows: the cause with the strongest evidence among them."""
    names = tuple(raised.name for raised in chain)
    if len(names) > _MOST_NAMES:
        names = names[: _MOST_NAMES // 2] + names[-_MOST_NAMES // 2 :]
    return Failure(cause=min(map(_shown_by, chain), key=_ORDER.index), chain=names)


def _chain(reason: Json) -> Sequence[Raised]:
    """Return the exceptions of a failed attempt, outermost first, as far as its text names them."""
    outermost = name(reason, "Class Name")
    whole = failure_text(reason)
    if outermost == _PYTHON_EXCEPTION:
        return (Raised(outermost, ""), *python_chain(whole))
    has_trace = bool(text(reason, "Full Stack Trace"))  # Spark before 1.2 has none
    return (java_chain(whole) if has_trace else ()) or (Raised(outermost, name(reason, "Description")),)


def _shown_by(raised: Raised) -> FailureCause:
    """Return the cause that one exception shows by its class and the beginning of its message."""
    name, message = _unshaded(raised.name), raised.said
    code = ""  # names of librdkafka's errors
    if raised.name.startswith(_CONFLUENT) and (match := _CODE.match(raised.said)):
        code = match[1]
    evidence = {
        FailureCause.KAFKA_QUOTA: name in _QUOTA_NAMES
        or code == "THROTTLING_QUOTA_EXCEEDED"
        or (name.startswith(_PYTHON_CLIENTS) and message.startswith("[Error 89]")),
        FailureCause.KAFKA_TIMEOUT: name in _TIMEOUT_NAMES
        or code in _CONFLUENT_TIMEOUTS
        or (name == _CONNECTOR_TIMEOUT and message.startswith(_CONNECTOR_SAID))
        or (name in _DSTREAM_TIMEOUTS and _DSTREAM_SAID.match(message) is not None),
        FailureCause.KAFKA_OTHER: name.startswith(_KAFKA),
        FailureCause.PYTHON_WORKER_DIED: name == "org.apache.spark.SparkException" and message.startswith(_WORKER_DIED),
    }
    return next((cause for cause, applies in evidence.items() if applies), FailureCause.OTHER)


def _unshaded(name: str) -> str:
    """
    Return the name of a class without the prefix of packed clients.

    A vendor or a job packs Kafka's clients under a prefix such as `kafkashaded.`.
    """
    start = name.find(_JAVA_CLIENTS)
    return name[start:] if start > 0 else name


_ORDER: Sequence[FailureCause] = tuple(FailureCause)
_CAUSES = {
    "ExecutorLostFailure": FailureCause.EXECUTOR_LOST,
    "Resubmitted": FailureCause.EXECUTOR_LOST,  # its output was lost with the executor
    "FetchFailed": FailureCause.FETCH_FAILED,
    "TaskResultLost": FailureCause.OTHER,
}


def python_chain(text: str) -> tuple[Raised, ...]:
    """
    Return the exceptions of a Python traceback, outermost first, with causes, contexts and members of groups.

    Only a line that ends a traceback names an exception. Source lines, notes and further lines of messages do not.
    """
    return tuple(_outermost_first(line for part in _parts(text) for line in part))


def java_chain(text: str) -> tuple[Raised, ...]:
    """
    Return the exceptions of a Java stack trace, outermost first, with causes, suppressed ones and those of Python.

    A line names an exception only if it follows the frames of another one, since messages may have several lines.
    """
    exceptions: list[Raised] = []
    for part in _parts(text):
        for is_frame, lines in groupby(part, lambda line: bool(_FRAME.match(line))):
            if not is_frame:
                exceptions.extend(_named_in(list(lines), outermost=not exceptions))
    return tuple(exceptions)


def _named_in(lines: Sequence[str], *, outermost: bool) -> Iterator[Raised]:
    """
    Yield the exceptions that the lines between the frames of two stack traces name.

    The first line names an exception, if it is the outermost one or a cause. Its message may name further ones.
    """
    for index, line in enumerate(lines):
        match = _JAVA.match(line.lstrip("\t"))
        if match is None or not (match[1] or (outermost and index == 0)):
            return
        message = match[3] or ""
        yield Raised(match[2], message)
        if match[2] == _PYTHON_EXCEPTION:
            yield from _outermost_first([message, *lines[index + 1 :]])
        elif (proxied := _FROM_PYTHON.match(message)) is not None:
            yield from _outermost_first([proxied[1], *lines[index + 1 :]])
        elif (inner := (_TERMINATED if match[2] in _QUERY_EXCEPTIONS else _ABORTED).match(message)) is not None:
            yield Raised(inner[1], inner[2] or "")
        if not _unshaded(match[2]).startswith(_JAVA_CLIENTS):  # these exceptions have no frames of their own
            return


def _outermost_first(lines: Iterable[str]) -> list[Raised]:
    """
    Return the exceptions of a Python traceback, which prints the innermost first.

    A further traceback only counts if a line of Python before it says that it belongs to the same chain or group.
    Otherwise the message of an exception quotes it, for example as the output of another process.
    """
    exceptions: list[Raised] = []
    inside = False  # in a traceback whose exception counts, until its last line
    in_group = False  # after the head of a group, whose lines have a margin
    of_chain = True  # the next traceback counts, as the first one does
    for index, line in enumerate(lines):
        bare = _MARGIN.sub("", line, count=1) if in_group else line
        if inside:
            if bare[:1].strip():
                inside = of_chain = False
                if (match := _PYTHON.match(bare)) is not None:
                    exceptions.append(Raised(match[1], match[2] or ""))
        elif bare.strip() in _BETWEEN or (in_group and _MEMBER.match(line)):
            of_chain = True
        elif bare.strip(" ") == _GROUP or (index == 0 and bare.endswith(_GROUP)):
            in_group = of_chain or in_group
            inside = in_group
        # Spark 4.3 prints a sentence of its own before the first exception
        elif bare == _TRACEBACK or (index == 0 and bare.endswith(_TRACEBACK)):
            inside = of_chain
    return exceptions[::-1]


def _parts(text: str) -> Iterator[list[str]]:
    """Yield the lines of a text; of a very long text, only those at its two ends."""
    if len(text) <= _MOST_CHARACTERS:
        yield _lines(text)
        return
    yield _lines(text[: _MOST_CHARACTERS // 2])[:-1]
    yield _lines(text[-_MOST_CHARACTERS // 2 :])[1:]


def _lines(text: str) -> list[str]:
    """Return the lines of a text, each cut to `_LONGEST_LINE`."""
    return [line[:_LONGEST_LINE].rstrip("\r") for line in text.split("\n")]
