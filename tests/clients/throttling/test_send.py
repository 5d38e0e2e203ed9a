from collections.abc import Callable, Iterator
from typing import Unpack

import pytest
from tests.clients.throttling.options import Options

from quotascope.clients import AdminRequestFailed, ClientError, MutationThrottled, TlsFailed
from quotascope.clients.throttling import ApiError, MutationAnswer, RetryOptions, mutate
from quotascope.metrics.protocol import ApiKey

NOW_MS = 1_700_000_000_000
REFUSED = ApiError(89)

Event = ClientError | tuple[int, dict[str, ApiError | None]]


class Broker:
    """Answers with what a test lays down, in a time that passes only where the caller waits for it."""

    def __init__(self, *events: Event, version: int = 7, answers_in_ms: int = 0) -> None:
        self.now_ms = NOW_MS
        self.asked: list[tuple[int, tuple[str, ...], int]] = []
        """When, for which topics, with which timeout."""
        self._events: Iterator[Event] = iter(events)
        self._version = version
        self._answers_in_ms = answers_in_ms

    def clock(self) -> int:
        """The time."""
        return self.now_ms

    def sleep(self, seconds: float) -> None:
        """Let time pass, in steps that are a little short, as real ones can be."""
        self.now_ms += max(1, round(seconds * 1_000) - 3)

    def send(self, topics: tuple[str, ...], timeout_ms: int) -> MutationAnswer[str]:
        """Answer the next request."""
        self.asked.append((self.now_ms - NOW_MS, topics, timeout_ms))
        event = next(self._events)
        self.now_ms += self._answers_in_ms
        if isinstance(event, ClientError):
            raise event
        throttle_ms, results = event
        return MutationAnswer(version=self._version, throttle_time_ms=throttle_ms, results=results)

    def create(self, *topics: str, **options: Unpack[Options]) -> dict[str, ClientError | None]:
        """Create topics here."""
        return dict(
            mutate(
                ApiKey.CREATE_TOPICS,
                topics,
                self.send,
                options=RetryOptions(**options, spread=lambda: 1.0),
                clock=self.clock,
                sleep=self.sleep,
            )
        )


def test_waits_as_long_as_reported_before_it_tries_again() -> None:
    """Each request goes out when the throttle before it is over, for what was refused, with the time that is left."""
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
    """The time until the answer is no part of it; the broker alone delays clients of versions before KIP-219."""
    broker = Broker((1_000, {"a": REFUSED}), (0, {"a": None}), **options)
    broker.create("a")
    assert [at_ms for at_ms, _, _ in broker.asked] == [0, second_ms]


def test_ends_when_the_timeout_is_over() -> None:
    """A throttle longer than the timeout is waited for no longer than that, and the rest of it is reported."""
    broker = Broker((90_000, {"a": None, "b": REFUSED}))
    results = broker.create("a", "b", timeout_ms=2_000)
    refusal = results["b"]
    assert isinstance(refusal, MutationThrottled)
    assert refusal.throttle_time_ms == 90_000 - 2_001
    assert len(broker.asked) == 1


@pytest.mark.parametrize("error", [TlsFailed(["b:1"], "no trust"), AdminRequestFailed("CreateTopics", 31, "no")])
def test_an_error_that_stays_is_the_result(error: ClientError) -> None:
    """No second try makes a certificate trusted or a user permitted."""
    assert Broker(error).create("a", "b") == {"a": error, "b": error}


def test_other_errors_pass_through() -> None:
    """A mistake in `send` is the caller's to see."""

    def send(_topics: tuple[str, ...], _timeout_ms: int) -> MutationAnswer[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        mutate(ApiKey.DELETE_TOPICS, ["a"], send)


def test_nothing_is_sent_for_nothing() -> None:
    """A call without topics has no results."""
    never: Callable[[tuple[str, ...], int], MutationAnswer[str]] = Broker().send
    assert mutate(ApiKey.CREATE_TOPICS, [], never) == {}
