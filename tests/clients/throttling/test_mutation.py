from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.clients import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    ClientError,
    MutationThrottled,
    TlsFailed,
)
from quotascope.clients.throttling import ApiError, MutationAnswer, MutationCall, RetryOptions, mutate
from quotascope.clients.throttling.mutation import kafka_spread
from quotascope.metrics.kafka.protocol import ApiKey

NOW_MS = 1_700_000_000_000
REFUSED = ApiError(89, "The throttling quota has been exceeded.")
EXISTS = ApiError(36, "Topic 'b' already exists.")
LOST = AdminUnreachable(["broker:9092"], "the connection ended")


def call(*keys: str, spread: float = 1.0, **options: Any) -> MutationCall[str]:
    return MutationCall("CREATE_TOPICS", keys, NOW_MS, RetryOptions(**options, spread=lambda: spread))


def said(call: MutationCall[str]) -> dict[str, str | None]:
    return {key: None if error is None else str(error) for key, error in call.results.items()}


def refusal(left_ms: int) -> str:
    return f"CREATE_TOPICS failed (error 89): {REFUSED.message} (wait {left_ms} ms)"


LATE = "CREATE_TOPICS: no answer within 60 s"


def test_each_topic_has_a_result_of_its_own() -> None:
    """
    A topic that succeeded or failed for good is done at once, and only refused ones are sent again.

    Some errors have no reason.
    """
    creation = call("a", "b", "c", "d")
    creation.answered({"a": None, "b": EXISTS, "c": REFUSED, "d": ApiError(37)}, 1_000, NOW_MS)
    assert creation.pending == ("c",)
    failed = creation.results["b"]
    assert isinstance(failed, AdminRequestFailed)
    assert (failed.code, failed.reason) == (36, EXISTS.message)
    creation.answered({"c": ApiError(0)}, 0, NOW_MS + 1_000)
    assert creation.done
    assert said(creation) == {
        "a": None,
        "b": f"CREATE_TOPICS failed (error 36): {EXISTS.message}",
        "c": None,
        "d": "CREATE_TOPICS failed (error 37): no reason given",
    }


def test_a_refusal_is_final_without_retries() -> None:
    """A caller that does not want to wait gets the throttle time that the response reported."""
    creation = call("a", "b", retry_on_quota_violation=False)
    creation.answered({"a": None, "b": REFUSED}, 1_500, NOW_MS)
    assert creation.done
    error = creation.results["b"]
    assert isinstance(error, MutationThrottled)
    assert (error.code, error.throttle_time_ms, error.message) == (89, 1_500, REFUSED.message)


def test_a_topic_left_out_waits_for_those_tried_again() -> None:
    """The call is not over while a topic is retried; then topics without an answer fail."""
    creation = call("a", "b")
    creation.answered({"a": REFUSED}, 10, NOW_MS)
    assert creation.pending == ("a",)
    assert "b" not in creation.results
    creation.answered({"a": None}, 0, NOW_MS)
    assert creation.done
    assert "leaves it out" in str(creation.results["b"])


def test_topics_no_one_asked_for_are_passed_over() -> None:
    """Neither an unknown topic nor a second answer for a topic changes a result."""
    creation = call("a", "b")
    creation.answered({"a": None, "b": REFUSED, "z": REFUSED}, 10, NOW_MS)
    creation.answered({"a": EXISTS, "b": None, "z": None}, 0, NOW_MS)
    assert creation.results == {"a": None, "b": None}


def test_all_tries_share_one_deadline() -> None:
    """All tries share the deadline of the call, which is never before its beginning."""
    creation = call("a", timeout_ms=60_000)
    creation.answered({"a": REFUSED}, 50_000, NOW_MS + 10)
    assert creation.remaining_ms(NOW_MS + 50_000) == 10_000
    assert [creation.expire(NOW_MS + after_ms) for after_ms in (60_000, 60_001)] == [False, True]
    assert call("a", timeout_ms=-5).deadline_ms == NOW_MS


@pytest.mark.parametrize(("waited_ms", "left_ms"), [(600, 400), (1_000, 0), (5_000, 0)])
def test_a_timeout_reports_what_is_left_of_the_throttle(waited_ms: int, left_ms: int) -> None:
    """A timeout of a refused topic has the rest of its throttle, never below zero; other topics have none."""
    creation = call("a", "b", timeout_ms=100)
    creation.answered({"a": REFUSED}, 1_000, NOW_MS + 100)
    assert creation.expire(NOW_MS + 100 + waited_ms)
    assert said(creation) == {"a": refusal(left_ms), "b": "CREATE_TOPICS: no answer within 0.1 s"}


@pytest.mark.parametrize(
    ("spread", "waits"),
    [
        (1.0, [100, 200, 400, 800, 1_000, 1_000]),
        (0.8, [80, 160, 320, 640, 800]),
        (1.2, [120, 240, 480, 960, 1_000]),
    ],
)
def test_a_failure_that_may_pass_is_tried_again_later(spread: float, waits: list[int]) -> None:
    """The wait before a retry doubles up to a second, spread by a fifth, as in Kafka's `ExponentialBackoff`."""
    creation = call("a", spread=spread)
    actual_waits = []
    for _ in waits:
        creation.failed(LOST, NOW_MS, retriable=True)
        actual_waits.append(creation.next_try_ms - NOW_MS)
    assert actual_waits == waits
    assert creation.pending == ("a",)
    assert creation.tries == len(waits)


def test_tries_are_counted_from_zero_after_a_refusal() -> None:
    """A topic that is retried for its quota has all tries, and no backoff of its own."""
    creation = call("a", "b", retries=1)
    creation.failed(LOST, NOW_MS, retriable=True)
    creation.answered({"a": None, "b": REFUSED}, 10, NOW_MS)
    assert (creation.tries, creation.next_try_ms) == (0, 0)
    creation.failed(LOST, NOW_MS, retriable=True)
    assert not creation.done


def test_tries_run_out() -> None:
    """A topic that is refused too many times is reported as a timeout."""
    creation = call("a", "b", retries=1)
    creation.answered({"a": REFUSED}, 1_000, NOW_MS)
    creation.failed(LOST, NOW_MS + 100, retriable=True)
    creation.failed(LOST, NOW_MS + 200, retriable=True)
    assert said(creation) == {"a": refusal(800), "b": LATE}


def test_a_failure_at_the_deadline_is_a_timeout() -> None:
    """Any failure at the deadline is reported as a timeout."""
    creation = call("a")
    creation.failed(LOST, NOW_MS + 60_000, retriable=False)
    assert isinstance(creation.results["a"], AdminTimeout)


outcomes = st.sampled_from([None, EXISTS, REFUSED])


@given(st.data())
def test_every_topic_ends_once(data: st.DataObject) -> None:
    """Each topic gets one result, from its last answer, however often topics are refused."""
    creation = call(*"abcdef")
    last_answers: dict[str, ApiError | None] = {}
    while not creation.done and data.draw(st.booleans()):
        answers = {key: data.draw(outcomes) for key in creation.pending}
        last_answers |= answers
        creation.answered(answers, 1, NOW_MS)
        assert set(creation.pending) == {k for k, v in answers.items() if v is REFUSED}
    creation.expire(NOW_MS + 60_001)
    assert set(creation.results) == set("abcdef")
    for key, error in last_answers.items():
        result = creation.results[key]
        assert getattr(result, "code", None) == (error and error.code)


def test_the_spread_is_kafkas() -> None:
    """The factor of the spread lies between 4/5 and 6/5, and varies."""
    factors = [kafka_spread() for _ in range(1_000)]
    assert 0.8 <= min(factors) < 0.85
    assert 1.15 < max(factors) <= 1.2


Event = ClientError | tuple[int, dict[str, ApiError | None]]


class Broker:
    """A broker whose answers a test lays down; time passes only where the caller waits for it."""

    def __init__(self, *events: Event, version: int = 7, answers_in_ms: int = 0) -> None:
        self.now_ms = NOW_MS
        self.asked: list[tuple[int, tuple[str, ...], int]] = []
        """When, for which topics, with which timeout."""
        self._events: Iterator[Event] = iter(events)
        self._version = version
        self._answers_in_ms = answers_in_ms

    def sleep(self, seconds: float) -> None:
        """Let time pass, in steps that are a little short, as real ones can be."""
        self.now_ms += max(1, round(seconds * 1_000) - 3)

    def send(self, topics: tuple[str, ...], timeout_ms: int) -> MutationAnswer[str]:
        self.asked.append((self.now_ms - NOW_MS, topics, timeout_ms))
        event = next(self._events)
        self.now_ms += self._answers_in_ms
        if isinstance(event, ClientError):
            raise event
        throttle_ms, results = event
        return MutationAnswer(version=self._version, throttle_time_ms=throttle_ms, results=results)

    def create(self, *topics: str, timeout_ms: int = 60_000) -> dict[str, ClientError | None]:
        options = RetryOptions(timeout_ms=timeout_ms, spread=lambda: 1.0)
        return dict(
            mutate(
                ApiKey.CREATE_TOPICS,
                topics,
                self.send,
                options=options,
                clock=lambda: self.now_ms,
                sleep=self.sleep,
            )
        )


def test_waits_as_long_as_reported_before_it_tries_again() -> None:
    """A retry is sent for the refused topics when the reported throttle is over, with the time that is left."""
    broker = Broker(
        (1_000, {"a": None, "b": REFUSED, "c": REFUSED}), (250, {"b": None, "c": REFUSED}), (0, {"c": None})
    )
    assert broker.create("a", "b", "c") == {"a": None, "b": None, "c": None}
    assert broker.asked == [
        (0, ("a", "b", "c"), 60_000),
        (1_000, ("b", "c"), 59_000),
        (1_250, ("c",), 58_750),
    ]


@pytest.mark.parametrize(
    ("options", "second_ms"),
    [({"answers_in_ms": 400}, 1_400), ({"version": 2}, 0)],
    ids=["from the answer", "not before KIP-219"],
)
def test_how_long_the_wait_is(options: dict[str, int], second_ms: int) -> None:
    """The wait excludes the time until the answer; brokers delay clients of versions before KIP-219 themselves."""
    broker = Broker((1_000, {"a": REFUSED}), (0, {"a": None}), **options)
    broker.create("a")
    assert [at_ms for at_ms, _, _ in broker.asked] == [0, second_ms]


def test_ends_when_the_timeout_is_over() -> None:
    """A throttle longer than the timeout is waited for until the timeout, and the rest is reported."""
    broker = Broker((90_000, {"a": None, "b": REFUSED}))
    results = broker.create("a", "b", timeout_ms=2_000)
    assert isinstance(results["b"], MutationThrottled)
    assert results["b"].throttle_time_ms == 90_000 - 2_001
    assert len(broker.asked) == 1


@pytest.mark.parametrize("error", [TlsFailed(["b:1"], "no trust"), AdminRequestFailed("CreateTopics", 31, "no")])
def test_an_error_that_stays_is_the_result(error: ClientError) -> None:
    """No second try makes a certificate trusted or a user permitted."""
    assert Broker(error).create("a", "b") == {"a": error, "b": error}


def test_other_errors_pass_through() -> None:
    """A mistake in `send` is the caller's to see; a call without topics sends nothing."""

    def send(_topics: tuple[str, ...], _timeout_ms: int) -> MutationAnswer[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mutate(ApiKey.DELETE_TOPICS, ["a"], send)
    assert mutate(ApiKey.CREATE_TOPICS, [], send) == {}
