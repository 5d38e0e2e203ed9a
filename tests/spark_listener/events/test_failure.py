from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.spark_events import QUOTA, TIMEOUT, java_failure, python_failure

from quotascope.spark_listener.events import Failure, FailureCause, classify
from quotascope.spark_listener.events.failure import Raised, classify_query, python_chain

PYTHON = "org.apache.spark.api.python.PythonException"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (QUOTA, FailureCause.KAFKA_QUOTA),
        ("kafka.errors.ThrottlingQuotaExceededError: [Error 89] no", FailureCause.KAFKA_QUOTA),
        ("kafka.errors.KafkaError: [Error 89] no", FailureCause.KAFKA_QUOTA),
        ("quotascope.clients.throttled_admin.outcomes.QuotaExceeded: no", FailureCause.KAFKA_QUOTA),
        ("quotascope.clients.throttled_admin.paced_futures.QuotaExceeded: no", FailureCause.KAFKA_QUOTA),
        (TIMEOUT, FailureCause.KAFKA_TIMEOUT),
        ('cimpl.KafkaException: KafkaError{code=REQUEST_TIMED_OUT,val=7,str="x"}', FailureCause.KAFKA_TIMEOUT),
        ("kafka.errors.KafkaTimeoutError: timeout", FailureCause.KAFKA_TIMEOUT),
        ("cimpl.KafkaException: KafkaError{code=_ALL_BROKERS_DOWN,val=-187}", FailureCause.KAFKA_OTHER),
        ("kafka.errors.NoBrokersAvailable: none", FailureCause.KAFKA_OTHER),
        ("MemoryError", FailureCause.OTHER),
        ("job.THROTTLING_QUOTA_EXCEEDED: [Error 89]", FailureCause.OTHER),
        ("ValueError: KafkaError{code=THROTTLING_QUOTA_EXCEEDED,val=89}", FailureCause.OTHER),
        ("builtins.TimeoutError: [Error 89] no", FailureCause.OTHER),
        ("cimpl.KafkaException: said KafkaError{code=THROTTLING_QUOTA_EXCEEDED,", FailureCause.KAFKA_OTHER),
        (f"ValueError: first\n{QUOTA}", FailureCause.OTHER),
        (f"ValueError: \u2028{QUOTA}", FailureCause.OTHER),
        (f"    raise {QUOTA}\nValueError: x", FailureCause.OTHER),
        (f"ValueError: Traceback (most recent call last):\n{QUOTA}", FailureCause.OTHER),
        (f" {QUOTA}\nValueError: x", FailureCause.OTHER),
    ]
)  # fmt: skip
def test_cause_of_a_python_exception(line: str, cause: FailureCause) -> None:
    """The class and the beginning of its message decide, not words in further lines, notes and source lines."""
    assert _failure(python_failure(line)).cause is cause


def _failure(reason: dict[str, object]) -> Failure:
    failure = classify(reason)
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        ("org.apache.kafka.common.errors.ThrottlingQuotaExceededException: x", FailureCause.KAFKA_QUOTA),
        ("org.apache.kafka.common.errors.TimeoutException: x", FailureCause.KAFKA_TIMEOUT),
        ("org.apache.kafka.clients.producer.BufferExhaustedException: x", FailureCause.KAFKA_TIMEOUT),
        (
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 5 in 100 milliseconds",
            FailureCause.KAFKA_TIMEOUT,
        ),
        ("java.util.concurrent.TimeoutException: Futures timed out", FailureCause.OTHER),
        ("org.apache.kafka.common.errors.TopicAuthorizationException: x", FailureCause.KAFKA_OTHER),
        ("java.io.IOException: org.apache.kafka.common.errors.TimeoutException: x", FailureCause.OTHER),
    ]
)  # fmt: skip
@pytest.mark.parametrize("prefix", ["Caused by: ", "\tSuppressed: ", "\tCaused by: "])
def test_cause_within_a_stack_trace(raised: str, cause: FailureCause, prefix: str) -> None:
    """Causes and suppressed exceptions count; Spark's own is but the outermost."""
    trace = (
        f"org.apache.spark.SparkException: Job aborted.\n\tat a.B.c(B.java:1)\n{prefix}{raised}\n"
        "\tat d.E.f(E.java:2)\n\t... 5 more\n"
    )
    failure = _failure(java_failure(trace))
    assert failure.cause is cause
    assert failure.chain == ("org.apache.spark.SparkException", raised.partition(": ")[0])


TIMED_OUT = "org.apache.kafka.common.errors.TimeoutException"
REFUSED = "org.apache.kafka.common.errors.ThrottlingQuotaExceededException"
AGAIN = (
    "",
    "During handling of the above exception, another exception occurred:",
    "",
    "Traceback (most recent call last):",
    "  File",
)


@pytest.mark.parametrize(
    ("trace", "cause", "chain"),
    [
        pytest.param(
            "a.B: x\n\tat a.B.c(B.java:1)\nCaused by: org.apache.kafka.common.KafkaException: x\n"
            f"Caused by: {TIMED_OUT}: y\n",
            FailureCause.KAFKA_TIMEOUT,
            ("a.B", "org.apache.kafka.common.KafkaException", TIMED_OUT), id="Kafka's have no frames"),
        pytest.param(
            f"a.B: hello\nCaused by: {TIMED_OUT}: no\norg.apache.kafka.x.Y: z\n\tat a.B.c(B.java:1)\n",
            FailureCause.OTHER, ("a.B",), id="a message that looks like a stack trace"),
        pytest.param(
            f"a.B: of a log\n\tat a.B.c(B.java:1)\n{REFUSED}: no\n\tat d.E.f(E.java:2)\n",
            FailureCause.OTHER, ("a.B",), id="a message that holds frames"),
        pytest.param(
            "a.B: [TASK_WRITE_FAILED] x\n\tat a.B.c(B.java:1)\n"
            f"Caused by: {PYTHON}: {python_failure('ValueError: x', *AGAIN, QUOTA)['Description']}\n"
            "\tat d.E.f(E.java:2)\n",
            FailureCause.KAFKA_QUOTA,
            ("a.B", PYTHON, "cimpl.KafkaException", "ValueError"), id="Python's within a failed write"),
    ]
)  # fmt: skip
def test_exceptions_of_a_stack_trace(trace: str, cause: FailureCause, chain: tuple[str, ...]) -> None:
    """A line is an exception where the frames of another one have just ended, or where it says that it is a cause."""
    failure = _failure(java_failure(trace))
    assert (failure.cause, failure.chain) == (cause, chain)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ({"Reason": "Success"}, None),
        ({"Reason": "TaskCommitDenied"}, None),
        ({"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}, None),
        ({"Reason": "TaskKilled", "Kill Reason": "Finish but did not commit due to another attempt succeeded"}, None),
        ({"Reason": "TaskKilled", "Kill Reason": "Stage cancelled: Job 3 cancelled"}, None),
        ({"Reason": "TaskKilled", "Kill Reason": "Stage cancelled"}, None),
        ({"Reason": "TaskKilled", "Kill Reason": "Stage finished"}, None),
        ({"Reason": "TaskKilled", "Kill Reason": "killed via SparkContext.killTaskAttempt"}, FailureCause.KILLED),
        ({"Reason": "TaskKilled"}, FailureCause.KILLED),
        ({"Reason": "ExecutorLostFailure"}, FailureCause.EXECUTOR_LOST),
        ({"Reason": "Resubmitted"}, FailureCause.EXECUTOR_LOST),
        ({"Reason": "FetchFailed"}, FailureCause.FETCH_FAILED),
        ({"Reason": "TaskResultLost"}, FailureCause.OTHER),
        ({"Reason": "UnknownReason"}, FailureCause.UNKNOWN),
        ({"Reason": "OfTheFuture"}, FailureCause.UNKNOWN),
        ({}, FailureCause.UNKNOWN),
        ({"Reason": "ExceptionFailure"}, FailureCause.OTHER),
        ({"Reason": "ExceptionFailure", "Class Name": 7, "Full Stack Trace": []}, FailureCause.OTHER),
    ]
)  # fmt: skip
def test_other_reasons(reason: dict[str, object], cause: FailureCause | None) -> None:
    """A success for Spark is no failure here; an unknown reason is not guessed."""
    failure = classify(reason)
    assert (failure and failure.cause) is cause


def test_no_message_is_kept() -> None:
    """Messages may hold passwords: of a failure only the names of classes are known."""
    failure = classify(python_failure("ValueError: password=hunter2"))
    assert "hunter2" not in repr(failure)


def test_margins_of_a_group_are_taken_away_and_no_more() -> None:
    """The margins that Python draws before lines of a group are removed, and a message's own text stays."""
    text = """  + Exception Group Traceback (most recent call last):
  |   File "job.py", line 3, in send
  | ExceptionGroup: both (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "job.py", line 1, in send
    | ValueError: a  | b  | c
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "job.py", line 2, in send
    | OSError: no
    +------------------------------------
"""
    assert {*python_chain(text)} == {
        Raised("ExceptionGroup", "both (2 sub-exceptions)"),
        Raised("ValueError", "a  | b  | c"),
        Raised("OSError", "no"),
    }


TEXTS = st.text(st.sampled_from("\n\t :.$+|aA\u2028\ud800"), max_size=200) | st.lists(
    st.sampled_from(
        [
            "Traceback (most recent call last):",
            "  + Exception Group Traceback (most recent call last):",
            "  | ",
            "    | ",
            "Caused by: ",
            "\tSuppressed: ",
            "\tat ",
            "\n",
            "a.B: c",
            f"{PYTHON}: Traceback (most recent call last):",
            "org.apache.kafka.x.Y: z",
            QUOTA,
        ]
    ),
    max_size=30,
).map("".join)


def _exception(kind: str, text: str) -> dict[str, object]:
    texts = {"Description": text, "Full Stack Trace": text}
    return {"Reason": "ExceptionFailure", "Class Name": kind, **texts}


@given(TEXTS, st.sampled_from([PYTHON, "a.B"]))
def test_any_text_has_a_cause(text: str, kind: str) -> None:
    """Any text of a failure is classified."""
    assert len(_failure(_exception(kind, text)).chain) <= 20


@given(st.text(max_size=300))
def test_message_never_makes_a_kafka_error_of_another(message: str) -> None:
    """Further lines of a message are no exceptions, whatever they hold but a whole traceback."""
    failure = _failure(python_failure(f"ValueError: {message}\n{QUOTA}\n{message}"))
    assert failure.cause is FailureCause.OTHER


@pytest.mark.parametrize(
    "unit",
    [
        "Traceback (most recent call last):\n",
        "Traceback (most recent call last):\nA: b\n",
        "\tat a\nCaused by: a.b: c\n",
        "a.",
        "a",
        ": ",
        "  | ",
        " ",
        "+ Exception Group Traceback (most recent call last):\n",
        "\tat a\norg.apache.kafka.A\n",
    ],
)
def test_huge_text(unit: str) -> None:
    """Ten megabytes of any text are classified at once by both ends, without quadratic time."""
    text = unit * (10_000_000 // len(unit)) + "\n" + QUOTA
    for kind in (PYTHON, "a.B"):
        assert classify(_exception(kind, text)) is not None


def test_cause_at_the_end_of_a_huge_text() -> None:
    """The last exception of a chain decides, even when there are megabytes before it."""
    beginning = f"ValueError: x\n{'y' * 3_000_000}\n{chr(10).join(AGAIN)}\n"
    assert _failure(python_failure(beginning + QUOTA)).cause is FailureCause.KAFKA_QUOTA


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            "assertion failed: Failed to get records for spark-executor-etl orders 0 2467 after polling for 512",
            FailureCause.KAFKA_TIMEOUT,
        ),
        (
            "requirement failed: Failed to get records for spark-executor-etl orders-0 2467 after polling for 512",
            FailureCause.KAFKA_TIMEOUT,
        ),
        (
            "requirement failed: Failed to get records for compacted spark-executor-etl orders-0 after polling for 512",
            FailureCause.KAFKA_TIMEOUT,
        ),
        (
            "requirement failed: Got wrong record for spark-executor-etl orders-0 even after seeking to offset 2467",
            FailureCause.OTHER,
        ),
        ("assertion failed: no", FailureCause.OTHER),
    ]
)  # fmt: skip
@pytest.mark.parametrize("kind", ["java.lang.AssertionError", "java.lang.IllegalArgumentException"])
def test_poll_timeouts_of_dstreams(kind: str, message: str, cause: FailureCause) -> None:
    """A poll timeout of the DStream connector is found in its assertion, and other assertions are none."""
    assert _failure(java_failure(f"{kind}: {message}\n\tat scala.Predef$.assert(Predef.scala:170)\n")).cause is cause


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("aiokafka.errors.KafkaTimeoutError: x", FailureCause.KAFKA_TIMEOUT),
        ("aiokafka.errors.RequestTimedOutError: [Error 7] RequestTimedOutError", FailureCause.KAFKA_TIMEOUT),
        ("aiokafka.errors.UnknownError: [Error -1] UnknownError", FailureCause.KAFKA_OTHER),
        ("aiokafka.errors.KafkaConnectionError: x", FailureCause.KAFKA_OTHER),
        ("aiokafka.errors.ThrottlingQuotaExceededError: [Error 89] x", FailureCause.KAFKA_QUOTA),
        ("confluent_kafka.error.ProduceError: KafkaError{code=_MSG_TIMED_OUT,val=-192}", FailureCause.KAFKA_TIMEOUT),
        (
            "confluent_kafka.error.ConsumeError: KafkaError{code=THROTTLING_QUOTA_EXCEEDED,val=89}",
            FailureCause.KAFKA_QUOTA,
        ),
        ("myaiokafka.errors.KafkaTimeoutError: x", FailureCause.OTHER),
    ]
)  # fmt: skip
def test_errors_of_python_clients(line: str, cause: FailureCause) -> None:
    """Aiokafka has kafka-python's errors under its own name; confluent-kafka wraps librdkafka's."""
    assert _failure(python_failure(line)).cause is cause


STAGE_FAILED = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most "
    "recent failure: Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.7 executor 2)"
)
IN_PYTHON = (
    "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: "
    f"{python_failure('kafka.errors.ThrottlingQuotaExceededError: [Error 89] no')['Description']}"
)


@pytest.mark.parametrize(
    ("exception", "cause", "outermost"),
    [
        pytest.param(
            f"{REFUSED}: The quota is exceeded.\n",
            FailureCause.KAFKA_QUOTA,
            REFUSED,
            id="the admin client of the driver",
        ),
        pytest.param(
            f"java.util.concurrent.ExecutionException: {TIMED_OUT}: no\n\tat a.B.c(B.java:1)\n"
            f"Caused by: {TIMED_OUT}: no\n",
            FailureCause.KAFKA_TIMEOUT,
            "java.util.concurrent.ExecutionException",
            id="as a cause",
        ),
        pytest.param(
            f"a.B: x\n\tat a.B.c(B.java:1)\nCaused by: kafkashaded.{TIMED_OUT}: no\n",
            FailureCause.KAFKA_TIMEOUT,
            "a.B",
            id="packed under another name",
        ),
        pytest.param(
            f"{STAGE_FAILED}: {TIMED_OUT}: no\n\tat a.B.c(B.java:1)\n\nDriver stacktrace:\n\tat d.E.f(E.java:1)\n",
            FailureCause.KAFKA_TIMEOUT,
            "org.apache.spark.SparkException",
            id="of the attempt that failed the job",
        ),
        pytest.param(
            f"{IN_PYTHON}\n\tat py4j.Protocol.getReturnValue(Protocol.java:476)\n",
            FailureCause.KAFKA_QUOTA,
            "py4j.Py4JException",
            id="a function of foreachBatch",
        ),
        pytest.param(
            "java.lang.IllegalStateException: said [Error 89]\n\tat a.B.c(B.java:1)\n",
            FailureCause.OTHER,
            "java.lang.IllegalStateException",
            id="another one",
        ),
        pytest.param("words of anything", FailureCause.OTHER, "words of anything", id="no stack trace"),
    ]
)  # fmt: skip
def test_exception_that_ended_a_query(exception: str, cause: FailureCause, outermost: str) -> None:
    """The driver's exceptions have causes, too, though they fail no attempt."""
    failure = classify_query(exception)
    assert failure is not None
    assert (failure.cause, failure.chain[0]) == (cause, outermost)
    assert classify_query("") is None
    assert classify_query(None) is None


@pytest.mark.parametrize("exception", [5, ["x"], {"class": "x"}])
def test_end_of_a_query_of_another_shape(exception: object) -> None:
    """An unreadable exception is an unknown cause, not a stopped query."""
    assert classify_query(exception) == Failure(cause=FailureCause.UNKNOWN)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            (
                "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
                "org.apache.kafka.common.errors.TimeoutException: x"
            ),
            FailureCause.KAFKA_TIMEOUT,
        ),
        (
            (
                "Query q [id = 1, runId = 2] terminated with exception: "
                "kafkashaded.org.apache.kafka.common.errors.ThrottlingQuotaExceededException: x"
            ),
            FailureCause.KAFKA_QUOTA,
        ),
        (
            "Query q [id = 1] terminated with exception: no org.apache.kafka.common.errors.TimeoutException: x",
            FailureCause.OTHER,
        ),
    ],
)  # fmt: skip
def test_cause_in_the_message_of_a_query(message: str, cause: FailureCause) -> None:
    """A StreamingQueryException without frames repeats its cause's text; another exception's message says nothing."""
    failure = classify_query(f"org.apache.spark.sql.streaming.StreamingQueryException: {message}")
    assert failure is not None
    assert failure.cause is cause
    other_failure = classify_query(f"job.QueryException: {message}")
    assert other_failure is not None
    assert other_failure.cause is FailureCause.OTHER


def test_failures_without_a_stack_trace() -> None:
    """The class of the event counts, and not the first word of its message."""
    reason = {
        "Reason": "ExceptionFailure",
        "Class Name": "org.apache.kafka.common.errors.TimeoutException",
        "Stack Trace": [],
    }
    for description in ("x", "a.B: x", ""):
        assert _failure({**reason, "Description": description}).cause is FailureCause.KAFKA_TIMEOUT
    runtime_exception = {**reason, "Class Name": "java.lang.RuntimeException"}
    assert (
        _failure({**runtime_exception, "Description": "org.apache.kafka.common.errors.TimeoutException: x"}).cause
        is FailureCause.OTHER
    )


def test_frames_with_spaces() -> None:
    """Some log pipelines write tabs as spaces; the causes below such frames count."""
    trace = (
        "org.apache.spark.SparkException: x\n    at a.B.c(B.java:1)\n"
        "Caused by: org.apache.kafka.common.errors.TimeoutException: t\n    ... 5 more\n"
    )
    assert _failure(java_failure(trace)).cause is FailureCause.KAFKA_TIMEOUT


def test_a_traceback_that_a_message_quotes_is_no_cause() -> None:
    """
    A traceback that a message quotes, such as another process's output, is no cause.

    The chain goes on where Python says so.
    """
    quoted = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nkafka.errors.KafkaTimeoutError: x'
    outer = (
        'Traceback (most recent call last):\n  File "b.py", line 2, in <module>\nRuntimeError: the tool said\n'
        f"{quoted}\n"
    )
    assert [raised.name for raised in python_chain(outer)] == ["RuntimeError"]
    between = "\nThe above exception was the direct cause of the following exception:\n\n"
    chain = f'{quoted}\n{between}Traceback (most recent call last):\n  File "c.py", line 3, in f\nValueError: y\n'
    assert [raised.name for raised in python_chain(chain)] == ["ValueError", "kafka.errors.KafkaTimeoutError"]
    assert [raised.name for raised in python_chain(f"{outer}{between}{quoted}")] == [
        "kafka.errors.KafkaTimeoutError",
        "RuntimeError",
    ]
