from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark_listener.recordings import QUOTA, TIMEOUT, java_failure, python_failure

from quotascope.spark_listener.events import Failure, FailureCause, classify
from quotascope.spark_listener.events.failure import Raised, python_chain

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
        ("java.util.concurrent.TimeoutException: Cannot fetch record for offset 5 in 100 milliseconds", FailureCause.KAFKA_TIMEOUT),
        ("java.util.concurrent.TimeoutException: Futures timed out", FailureCause.OTHER),
        ("org.apache.kafka.common.errors.TopicAuthorizationException: x", FailureCause.KAFKA_OTHER),
        ("java.io.IOException: org.apache.kafka.common.errors.TimeoutException: x", FailureCause.OTHER),
    ]
)  # fmt: skip
@pytest.mark.parametrize("prefix", ["Caused by: ", "\tSuppressed: ", "\tCaused by: "])
def test_cause_within_a_stack_trace(raised: str, cause: FailureCause, prefix: str) -> None:
    """Causes and suppressed exceptions count; Spark's own is but the outermost."""
    trace = f"org.apache.spark.SparkException: Job aborted.\n\tat a.B.c(B.java:1)\n{prefix}{raised}\n\tat d.E.f(E.java:2)\n\t... 5 more\n"
    failure = _failure(java_failure(trace))
    assert failure.cause is cause
    assert failure.chain == ("org.apache.spark.SparkException", raised.partition(": ")[0])


TIMED_OUT = "org.apache.kafka.common.errors.TimeoutException"
REFUSED = "org.apache.kafka.common.errors.ThrottlingQuotaExceededException"
AGAIN = ("", "During …", "", "Traceback (most recent call last):", "  File")


@pytest.mark.parametrize(
    ("trace", "cause", "chain"),
    [
        pytest.param(
            f"a.B: x\n\tat a.B.c(B.java:1)\nCaused by: org.apache.kafka.common.KafkaException: x\nCaused by: {TIMED_OUT}: y\n",
            FailureCause.KAFKA_TIMEOUT, ("a.B", "org.apache.kafka.common.KafkaException", TIMED_OUT), id="Kafka's have no frames"),
        pytest.param(
            f"a.B: hello\nCaused by: {TIMED_OUT}: no\norg.apache.kafka.x.Y: z\n\tat a.B.c(B.java:1)\n",
            FailureCause.OTHER, ("a.B",), id="a message that looks like a stack trace"),
        pytest.param(
            f"a.B: of a log\n\tat a.B.c(B.java:1)\n{REFUSED}: no\n\tat d.E.f(E.java:2)\n",
            FailureCause.OTHER, ("a.B",), id="a message that holds frames"),
        pytest.param(
            f"a.B: [TASK_WRITE_FAILED] x\n\tat a.B.c(B.java:1)\nCaused by: {PYTHON}: {python_failure('ValueError: x', *AGAIN, QUOTA)['Description']}\n\tat d.E.f(E.java:2)\n",
            FailureCause.KAFKA_QUOTA, ("a.B", PYTHON, "cimpl.KafkaException", "ValueError"), id="Python's within a failed write"),
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
    """What is no failure to Spark is none here; an unknown reason is not guessed."""
    failure = classify(reason)
    assert (failure and failure.cause) is cause


def test_no_message_is_kept() -> None:
    """Messages may hold passwords: of a failure only the names of classes are known."""
    failure = classify(python_failure("ValueError: password=hunter2"))
    assert "hunter2" not in repr(failure)


def test_margins_of_a_group_are_taken_away_and_no_more() -> None:
    """Python draws one before each line, further right in a group within a group; what a message holds stays."""
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
    """Whatever a failure's text is, it is classified."""
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
    """Ten megabytes of anything are looked at once, at both ends: a quadratic expression would not come to an end."""
    text = unit * (10_000_000 // len(unit)) + "\n" + QUOTA
    for kind in (PYTHON, "a.B"):
        assert classify(_exception(kind, text)) is not None


def test_cause_at_the_end_of_a_huge_text() -> None:
    """The last exception of a chain decides, even when there are megabytes before it."""
    before = f"ValueError: x\n{'y' * 3_000_000}\n\nTraceback (most recent call last):\n  File\n"
    assert _failure(python_failure(before + QUOTA)).cause is FailureCause.KAFKA_QUOTA
