"""One call of confluent-kafka's admin client with all its retries, behind the futures that it returns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException

from quotascope.metrics.kafka.protocol import ApiKey, ErrorCode

from ..accounting import ClientAccount
from ..errors import AdminTimeout, ClientError, MutationThrottled
from ..throttling import ApiError, MutationAnswer, RetryOptions, first_waiting_version, mutate
from .counted import counted

Futures: TypeAlias = Mapping[str, Future[object]]
Ask: TypeAlias = Callable[[Sequence[str], float], Futures]
"""Function that sends a request for some topics, with a timeout in seconds."""
LongestThrottle: TypeAlias = Callable[[float], int]
"""Function that returns the client's longest throttle time in ms since a moment (`time.monotonic`)."""


class QuotaExceeded(MutationThrottled, KafkaException):
    """Error 89 when no time is left for a retry; `throttle_time_ms` is the rest of the throttle time."""

    def __init__(self, request: str, throttle_time_ms: int, message: str | None) -> None:
        super().__init__(request, throttle_time_ms, message)
        self.args = (KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, str(self)),)


class PacedFutures:
    """
    Futures of topics, each settled as soon as the result of its topic is known.

    The first request goes out at once, so that the caller gets the errors of wrong arguments; a thread waits for its
    answer and does the rest.
    """

    def __init__(
        self, api: ApiKey, ask: Ask, longest_throttle_ms: LongestThrottle, client: ClientAccount, options: RetryOptions
    ) -> None:
        self._api = api
        self._ask = ask
        self._longest_throttle_ms = longest_throttle_ms
        self._client = client
        self._options = options
        self._futures: dict[str, Future[object]] = {}
        self._first: tuple[float, Futures] | None = None
        self._errors: dict[str, BaseException] = {}

    def start(self, topics: Sequence[str]) -> dict[str, Future[object]]:
        """Send the first request, and return the futures."""
        seconds = self._options.timeout_ms / 1_000
        self._first = (time.monotonic(), self._ask(topics, seconds))
        for topic in topics:
            future = self._futures[topic] = Future()
            future.set_running_or_notify_cancel()
        threading.Thread(target=self._run, name=f"paced {self._api.name}", daemon=True).start()
        return dict(self._futures)

    def _run(self) -> None:
        try:
            send = counted(self._send, self._client)
            results = mutate(self._api, self._futures, send, options=self._options)
            for topic, error in results.items():
                self._settle(topic, self._as_library(topic, error))
        except Exception as error:  # noqa: BLE001 - the futures must end
            for topic in self._futures:
                self._settle(topic, error)

    def _send(self, topics: tuple[str, ...], left_ms: int) -> MutationAnswer[str]:
        if self._first is None:
            sent = (time.monotonic(), self._ask(topics, max(left_ms, 1) / 1_000))
        else:
            sent, self._first = self._first, None
        since, futures = sent
        problems = {topic: futures[topic].exception() for topic in topics}
        throttle_time_ms = self._longest_throttle_ms(since)  # counted before any future has its result
        return MutationAnswer(
            version=first_waiting_version(self._api) or 0,
            throttle_time_ms=throttle_time_ms,
            results={topic: self._result(topic, problem) for topic, problem in problems.items()},
        )

    def _result(self, topic: str, problem: BaseException | None) -> ApiError | None:
        """
        Settle the future of a topic unless a quota refused the topic.

        Return the error that `MutationCall` expects.
        """
        if problem is None:
            self._settle(topic, None)
            return None
        self._errors[topic] = problem
        if not isinstance(problem, KafkaException):
            raise problem
        error: KafkaError = problem.args[0]
        if error.code() != ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            self._settle(topic, problem)
        return ApiError(error.code(), error.str())

    def _as_library(self, topic: str, error: ClientError | None) -> BaseException | None:
        if isinstance(error, MutationThrottled):
            return QuotaExceeded(error.request, error.throttle_time_ms, error.message)
        if isinstance(error, AdminTimeout):
            return KafkaException(KafkaError(KafkaError._TIMED_OUT, str(error)))  # noqa: SLF001 - a public constant
        return None if error is None else self._errors.get(topic, error)

    def _settle(self, topic: str, error: BaseException | None) -> None:
        future = self._futures[topic]
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
