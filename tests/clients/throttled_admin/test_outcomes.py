from typing import Any
from uuid import uuid4

import pytest
from kafka import errors

from quotascope.clients import (
    AdminRequestFailed,
    AdminTimeout,
    ClientError,
    MutationThrottled,
)
from quotascope.clients.throttled_admin.outcomes import QuotaExceeded, TopicOutcomes
from quotascope.clients.throttling import ApiError

THROTTLED = MutationThrottled("CREATE_TOPICS", 1_340, None)
LATE = AdminTimeout("CREATE_TOPICS", 60)


def entry(name: str | None, code: int = 0, **more: Any) -> dict[str, Any]:
    """What a response says of a topic."""
    return {"name": name, "error_code": code, "error_message": None, **more}


def test_each_topic_has_its_last_word() -> None:
    """In the order in which they were asked for, with what is left of the throttle."""
    outcomes = TopicOutcomes(["a", "b", "c"])
    first = outcomes.answered([entry("c", 89), entry("a"), entry("b", 89)])
    assert first == {"a": None, "b": ApiError(89), "c": ApiError(89)}
    assert outcomes.answered([entry("b"), entry("c", 89)])["b"] is None
    results: dict[Any, ClientError | None] = {"a": None, "b": None, "c": THROTTLED}
    assert outcomes.entries(results, raise_errors=False) == [
        entry("a"),
        entry("b"),
        entry("c", 89, throttle_time_ms=1_340),
    ]


def test_a_topic_asked_for_by_id_is_known_by_it() -> None:
    """The response tells its name as well, or not when that is a secret."""
    known, secret = uuid4(), uuid4()
    outcomes = TopicOutcomes([known, secret])
    answer = [
        entry("b", topic_id=str(known)),
        entry(None, 29, topic_id=str(secret)),
    ]
    assert outcomes.answered(answer) == {known: None, secret: ApiError(29)}


def test_a_topic_without_an_answer_has_an_entry() -> None:
    """It tells what happened instead."""
    outcomes = TopicOutcomes(["a", "b"])
    missing = AdminRequestFailed("CREATE_TOPICS", None, "the answer leaves it out")
    late, lost = outcomes.entries({"a": LATE, "b": missing}, raise_errors=False)
    assert (late["error_code"], lost["error_code"]) == (7, -1)
    assert late["error_message"] == "CREATE_TOPICS: no answer within 60 s"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (THROTTLED, errors.ThrottlingQuotaExceededError),
        (LATE, errors.KafkaTimeoutError),
        (AdminRequestFailed("CREATE_TOPICS", 36, "exists"), errors.TopicAlreadyExistsError),
        (AdminRequestFailed("CREATE_TOPICS", None, "missing"), errors.UnknownError),
    ],
)  # fmt: skip
def test_errors_are_the_librarys(error: ClientError, raised: type[Exception]) -> None:
    """Programs catch what they caught before, of the first topic that failed."""
    outcomes = TopicOutcomes(["a", "b"])
    with pytest.raises(raised) as caught:
        outcomes.entries({"a": None, "b": error}, raise_errors=True)
    assert caught.value.__cause__ is error


def test_a_refusal_is_ours_as_well() -> None:
    """It tells how long to wait, and that it may be tried again."""
    outcomes = TopicOutcomes(["a"])
    with pytest.raises(QuotaExceeded) as caught:
        outcomes.entries({"a": THROTTLED}, raise_errors=True)
    refusal = caught.value
    assert isinstance(refusal, MutationThrottled)
    assert (refusal.throttle_time_ms, refusal.errno, refusal.retriable) == (1_340, 89, True)  # fmt: skip
    assert "wait 1340 ms" in str(refusal)
