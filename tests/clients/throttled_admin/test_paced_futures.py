from collections.abc import Sequence
from concurrent.futures import Future
from threading import Event

import pytest
from confluent_kafka import KafkaError, KafkaException

from quotascope.clients import MutationThrottled
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.throttled_admin.paced_futures import Futures, PacedFutures, QuotaExceeded
from quotascope.clients.throttling import RetryOptions
from quotascope.metrics.kafka.protocol import ApiKey

Codes = dict[str, int]
REFUSED = KafkaError.THROTTLING_QUOTA_EXCEEDED


class Library:
    """Answers with codes from a list, as a librdkafka that is refused would."""

    def __init__(self, *answers: Codes, throttle_ms: int = 1) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.left: list[float] = []
        self.account = ThrottleAccount()
        self._answers = list(answers)
        self._throttle_ms = throttle_ms

    def ask(self, topics: Sequence[str], seconds: float) -> Futures:
        self.asked.append(tuple(topics))
        self.left.append(seconds)
        codes = self._answers.pop(0)
        return {topic: settled(codes[topic]) for topic in topics}

    def start(self, *topics: str, options: RetryOptions) -> dict[str, Future[object]]:
        client = self.account.client("", "topics", "admin")
        reported = lambda _: self._throttle_ms  # noqa: E731 - a stand-in for a method
        paced = PacedFutures(ApiKey.CREATE_TOPICS, self.ask, reported, client, options)
        return paced.start(topics)


def settled(code: int) -> Future[object]:
    future: Future[object] = Future()
    if code:
        future.set_exception(KafkaException(KafkaError(code)))
    else:
        future.set_result(None)
    return future


def test_only_what_was_refused_is_asked_for_again() -> None:
    """
    Only refused topics are sent again; the futures of the others have the library's results and errors.

    All requests share the call's time.
    """
    exists = KafkaError.TOPIC_ALREADY_EXISTS
    library = Library({"a": 0, "b": REFUSED, "c": exists}, {"b": 0})
    futures = library.start("a", "b", "c", options=RetryOptions(timeout_ms=30_000))
    assert [futures[topic].result(20) for topic in "ab"] == [None, None]
    with pytest.raises(KafkaException) as caught:
        futures["c"].result(20)
    assert caught.value.args[0].code() == exists
    assert library.asked == [("a", "b", "c"), ("b",)]
    assert library.left[0] == 30.0 > library.left[1] > 0.0
    assert library.account.totals()[0].quota_retries == 1


@pytest.mark.parametrize("code", [KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.FENCED_INSTANCE_ID, REFUSED + 1])
def test_what_is_no_refusal_does_not_wait_for_the_others(code: int) -> None:
    """A future with any other error than 89 is done before the refused topics are sent again."""
    futures: dict[str, Future[object]] = {}
    started = Event()
    states: list[bool] = []

    class Watched(Library):
        def ask(self, topics: Sequence[str], seconds: float) -> Futures:
            if self.asked:
                started.wait(20)
                states.append(futures["b"].done())
            return super().ask(topics, seconds)

    library = Watched({"a": REFUSED, "b": code}, {"a": 0})
    futures |= library.start("a", "b", options=RetryOptions())
    started.set()
    assert futures["a"].result(20) is None
    assert states == [True]


@pytest.mark.parametrize("options", [RetryOptions(retry_on_quota_violation=False), RetryOptions(timeout_ms=2_000)])
def test_a_refusal_is_the_librarys_error_and_ours(options: RetryOptions) -> None:
    """A refusal has the code where the library has it, and the throttle time."""
    library = Library({"a": REFUSED}, throttle_ms=5_000)
    with pytest.raises(QuotaExceeded) as caught:
        library.start("a", options=options)["a"].result(20)
    refusal = caught.value
    assert isinstance(refusal, MutationThrottled)
    assert isinstance(refusal, KafkaException)
    assert refusal.args[0].code() == REFUSED
    assert 0 < refusal.throttle_time_ms <= 5_000


def test_wrong_arguments_are_reported_at_once() -> None:
    """Wrong arguments are an error before there is a future."""

    def ask(_: Sequence[str], __: float) -> Futures:
        raise TypeError("expected a list")

    client = ThrottleAccount().client("", "topics", "admin")
    paced = PacedFutures(ApiKey.CREATE_TOPICS, ask, lambda _: 0, client, RetryOptions())
    with pytest.raises(TypeError):
        paced.start(["a"])


def test_no_future_is_left_open() -> None:
    """Any error of the thread is set on the futures."""
    library = Library({"a": REFUSED}, {})
    with pytest.raises(KeyError):
        library.start("a", options=RetryOptions())["a"].result(20)
