from collections.abc import Mapping
from typing import Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clients.throttling.options import Options

from quotascope.clients import AdminRequestFailed, AdminTimeout, AdminUnreachable, ClientError, MutationThrottled
from quotascope.clients.throttling import ApiError, MutationCall, RetryOptions
from quotascope.clients.throttling.mutation import kafka_spread

NOW_MS = 1_700_000_000_000
REFUSED = ApiError(89, "The throttling quota has been exceeded.")
EXISTS = ApiError(36, "Topic 'b' already exists.")
LOST = AdminUnreachable(["broker:9092"], "the connection ended")


def call(*keys: str, **options: Unpack[Options]) -> MutationCall[str]:
    """A call that begins now."""
    chosen = RetryOptions(**options, spread=lambda: 1.0)
    return MutationCall("CREATE_TOPICS", keys, NOW_MS, chosen)


def throttle_of(results: Mapping[str, ClientError | None], key: str) -> int:
    """What is left of the throttle of a topic that was refused."""
    result = results[key]
    assert isinstance(result, MutationThrottled)
    return result.throttle_time_ms


def test_each_topic_has_a_result_of_its_own() -> None:
    """What succeeded or failed for good is done at once, and only what was refused is sent again."""
    creation = call("a", "b", "c")
    creation.answered({"a": None, "b": EXISTS, "c": REFUSED}, 1_000, NOW_MS)
    assert creation.pending == ("c",)
    assert creation.results["a"] is None
    failed = creation.results["b"]
    assert isinstance(failed, AdminRequestFailed)
    assert (failed.code, failed.reason) == (36, "Topic 'b' already exists.")
    creation.answered({"c": ApiError(0)}, 0, NOW_MS + 1_000)
    assert creation.done
    assert creation.results["c"] is None


def test_a_refusal_is_final_without_retries() -> None:
    """Who does not want to wait gets the throttle time that the response reported."""
    creation = call("a", "b", retry_on_quota_violation=False)
    creation.answered({"a": None, "b": REFUSED}, 1_500, NOW_MS)
    assert creation.done
    refusal = creation.results["b"]
    assert isinstance(refusal, MutationThrottled)
    assert (refusal.code, refusal.throttle_time_ms) == (89, 1_500)
    assert refusal.message == REFUSED.message


def test_an_error_without_a_reason_says_so() -> None:
    """Not every response explains itself."""
    creation = call("a")
    creation.answered({"a": ApiError(37)}, 0, NOW_MS)
    assert str(creation.results["a"]) == "CREATE_TOPICS failed (error 37): no reason given"


def test_a_topic_left_out_waits_for_those_tried_again() -> None:
    """While something is tried again the call is not over; then what was never answered fails."""
    creation = call("a", "b")
    creation.answered({"a": REFUSED}, 10, NOW_MS)
    assert creation.pending == ("a",)
    assert "b" not in creation.results
    creation.answered({"a": None}, 0, NOW_MS)
    assert creation.done
    assert "leaves it out" in str(creation.results["b"])


def test_topics_no_one_asked_for_are_passed_over() -> None:
    """Neither an unknown topic nor a second answer changes a result."""
    creation = call("a", "b")
    creation.answered({"a": None, "b": REFUSED, "z": REFUSED}, 10, NOW_MS)
    creation.answered({"a": EXISTS, "b": None, "z": None}, 0, NOW_MS)
    assert creation.results == {"a": None, "b": None}


def test_all_tries_share_one_deadline() -> None:
    """The time for a call does not start again with what is tried again."""
    creation = call("a", timeout_ms=60_000)
    creation.answered({"a": REFUSED}, 50_000, NOW_MS + 10)
    assert creation.remaining_ms(NOW_MS + 50_000) == 10_000
    assert not creation.expire(NOW_MS + 60_000)
    assert creation.expire(NOW_MS + 60_001)


def test_a_negative_timeout_is_none_at_all() -> None:
    """The deadline is never before the beginning."""
    assert call("a", timeout_ms=-5).deadline_ms == NOW_MS


@pytest.mark.parametrize(("waited_ms", "left_ms"), [(600, 400), (1_000, 0), (5_000, 0)])
def test_a_timeout_reports_what_is_left_of_the_throttle(waited_ms: int, left_ms: int) -> None:
    """Counted from when the refusal came in, and never below zero."""
    creation = call("a", timeout_ms=100)
    creation.answered({"a": REFUSED}, 1_000, NOW_MS + 100)
    assert creation.expire(NOW_MS + 100 + waited_ms)
    assert throttle_of(creation.results, "a") == left_ms


def test_a_timeout_is_a_timeout_for_the_others() -> None:
    """Only what was last refused for its quota is reported so."""
    creation = call("a", "b", timeout_ms=100)
    creation.answered({"a": REFUSED}, 1_000, NOW_MS)
    assert creation.expire(NOW_MS + 101)
    assert throttle_of(creation.results, "a") == 899
    assert isinstance(creation.results["b"], AdminTimeout)
    assert "0.1 s" in str(creation.results["b"])


def test_a_failure_that_may_pass_is_tried_again_later() -> None:
    """The wait doubles with each try, up to a second."""
    creation = call("a")
    waits = []
    for _ in range(6):
        creation.failed(LOST, NOW_MS, retriable=True)
        waits.append(creation.next_try_ms - NOW_MS)
    assert waits == [100, 200, 400, 800, 1_000, 1_000]
    assert creation.pending == ("a",)
    assert creation.tries == 6


def test_tries_are_counted_anew_after_a_refusal() -> None:
    """What is tried again for its quota has all tries, and no backoff of its own."""
    creation = call("a", "b", retries=1)
    creation.failed(LOST, NOW_MS, retriable=True)
    creation.answered({"a": None, "b": REFUSED}, 10, NOW_MS)
    assert (creation.tries, creation.next_try_ms) == (0, 0)
    creation.failed(LOST, NOW_MS, retriable=True)
    assert not creation.done


def test_tries_run_out() -> None:
    """Then it is as if the time were over, refusals included."""
    creation = call("a", "b", retries=1)
    creation.answered({"a": REFUSED}, 1_000, NOW_MS)
    creation.failed(LOST, NOW_MS + 100, retriable=True)
    creation.failed(LOST, NOW_MS + 200, retriable=True)
    assert throttle_of(creation.results, "a") == 800
    assert isinstance(creation.results["b"], AdminTimeout)


def test_a_failure_at_the_deadline_is_a_timeout() -> None:
    """Whatever it was that failed last."""
    creation = call("a")
    creation.failed(LOST, NOW_MS + 60_000, retriable=False)
    assert isinstance(creation.results["a"], AdminTimeout)


outcomes = st.sampled_from([None, EXISTS, REFUSED])


@given(st.data())
def test_every_topic_ends_once(data: st.DataObject) -> None:
    """Whatever is refused how often, each topic gets one result, and it is that of its last answer."""
    creation = call(*"abcdef")
    last: dict[str, ApiError | None] = {}
    while not creation.done and data.draw(st.booleans()):
        answers = {key: data.draw(outcomes) for key in creation.pending}
        last |= answers
        creation.answered(answers, 1, NOW_MS)
        assert set(creation.pending) == {k for k, v in answers.items() if v is REFUSED}
    creation.expire(NOW_MS + 60_001)
    assert set(creation.results) == set("abcdef")
    for key, error in last.items():
        result = creation.results[key]
        assert getattr(result, "code", None) == (error and error.code)


def test_a_message_from_the_broker_stays_one_line() -> None:
    """A refusal can be logged whatever the broker wrote."""
    refusal = MutationThrottled("CREATE_TOPICS", 5, "too\nmuch")
    assert str(refusal) == "CREATE_TOPICS failed (error 89): too much (wait 5 ms)"


@pytest.mark.parametrize(("spread", "waits"), [(0.8, [80, 160, 320, 640, 800]), (1.2, [120, 240, 480, 960, 1_000])])
def test_a_backoff_is_spread(spread: float, waits: list[int]) -> None:
    """As Kafka's `ExponentialBackoff` does it: a fifth up or down, and never over the longest."""
    creation = MutationCall("CREATE_TOPICS", ["a"], NOW_MS, RetryOptions(spread=lambda: spread))
    found = []
    for _ in waits:
        creation.failed(LOST, NOW_MS, retriable=True)
        found.append(creation.next_try_ms - NOW_MS)
    assert found == waits


def test_the_spread_is_kafkas() -> None:
    """Between four fifths and six, and not always the same."""
    found = [kafka_spread() for _ in range(1_000)]
    assert 0.8 <= min(found) < 0.85
    assert 1.15 < max(found) <= 1.2
