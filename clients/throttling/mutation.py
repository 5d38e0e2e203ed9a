"""A call of the admin client that a controller mutation quota may refuse in part (KIP-599)."""

import random
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.protocol import ErrorCode

from ..errors import AdminRequestFailed, AdminTimeout, ClientError, MutationThrottled

_FIRST_BACKOFF_MS: Final = 100
_LONGEST_BACKOFF_MS: Final = 1_000

_JITTER: Final = 0.2

K = TypeVar("K", bound=Hashable)


def kafka_spread() -> float:
    """Return a random factor for a backoff, so that clients that failed together spread their retries (KIP-580)."""
    return random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - not a secret


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """Options of Kafka's admin client for retries."""

    retry_on_quota_violation: bool = True
    """Switch of retries after error 89 (`retryOnQuotaViolation`)."""
    timeout_ms: int = 60_000
    """Timeout of the call with all its retries (`default.api.timeout.ms`)."""
    retries: int = INT_MAX
    """Number of retries of a request that failed as a whole (`retries`)."""
    spread: Callable[[], float] = kafka_spread
    """
    Function that returns a factor for the next backoff. A refusal for a quota has none: the broker gives each client
    its own throttle time.
    """


@dataclass(frozen=True, slots=True)
class ApiError:
    """Error of one topic in a response."""

    code: int
    message: str | None = None


class MutationCall(Generic[K]):
    """
    Topics to create, delete or extend, and the result of each.

    As `getCreateTopicsCall` and its like of Kafka's `KafkaAdminClient`.

    Sends nothing and never waits: its caller sends `pending` until `done`, and passes the answers. What was refused for
    its quota is pending again at once. The pause that this needs comes from the connection, as responses that can carry
    error 89 are of versions that make the client wait.

    Args:
        request: its name, for messages.
        keys: names or ids of topics.
        now_ms: the call begins; ms of one clock, as all times here.
        options: how long and how often to try.

    """

    def __init__(self, request: str, keys: Iterable[K], now_ms: int, options: RetryOptions = RetryOptions()) -> None:
        self._request = request
        self._options = options
        self._results: dict[K, ClientError | None] = {}
        self._unfinished: dict[K, None] = dict.fromkeys(keys)
        self._asked: tuple[K, ...] = tuple(self._unfinished)
        self._refused: dict[K, MutationThrottled] = {}
        self._started_ms = now_ms
        self.deadline_ms: int = now_ms + max(0, options.timeout_ms)
        self.tries: int = 0
        """Failures of the request as a whole since the last answer."""
        self.next_try_ms: int = 0
        """When such a failure allows another try."""

    @property
    def pending(self) -> tuple[K, ...]:
        """Topics to send next."""
        return tuple(key for key in self._asked if key in self._unfinished)

    @property
    def done(self) -> bool:
        """True if every topic has a result."""
        return not self._unfinished

    @property
    def results(self) -> Mapping[K, ClientError | None]:
        """Results of the topics so far; None is success."""
        return MappingProxyType(self._results)

    def remaining_ms(self, now_ms: int) -> int:
        """Return the rest of the timeout in ms; at 0 one last request may be sent."""
        return self.deadline_ms - now_ms

    def answered(self, results: Mapping[K, ApiError | None], throttle_time_ms: int, now_ms: int) -> None:
        """
        Record a response: the error of each topic, None for success, and the throttle time of all.

        A topic that was asked for and is not in it fails, unless another one is tried again. A topic that was not asked
        for is ignored.
        """
        refused: dict[K, MutationThrottled] = {}
        for key, error in results.items():
            if key not in self._unfinished:
                continue
            problem = self._problem(error, throttle_time_ms)
            if isinstance(problem, MutationThrottled) and self._options.retry_on_quota_violation:
                refused[key] = problem
            else:
                self._finish(key, problem)
        if refused:
            self._begin_anew(refused, now_ms)
        else:
            self._finish_all(AdminRequestFailed(self._request, None, "the answer leaves it out"))

    def failed(self, error: ClientError, now_ms: int, *, retriable: bool) -> None:
        """
        Record a request that failed as a whole.

        Retry it after a backoff if it is retriable and time and tries are left.

        Otherwise every unfinished topic fails: with `error` when it is final, else as `expire` says.
        """
        backoff_ms = _FIRST_BACKOFF_MS * 2 ** min(self.tries, 10)
        spread_ms = int(self._options.spread() * min(backoff_ms, _LONGEST_BACKOFF_MS))
        self.next_try_ms = now_ms + min(spread_ms, _LONGEST_BACKOFF_MS)
        self.tries += 1
        if self.remaining_ms(now_ms) <= 0:
            self._time_out(now_ms)
        elif not retriable:
            self._finish_all(error)
        elif self.tries > self._options.retries:
            self._time_out(now_ms)

    def expire(self, now_ms: int) -> bool:
        """
        End the call if its deadline is over; return whether it is.

        Topics that a quota refused last fail with `MutationThrottled`, which has the rest of the throttle time; all
        others fail with `AdminTimeout`.
        """
        if self.remaining_ms(now_ms) >= 0:
            return False
        self._time_out(now_ms)
        return True

    def _problem(self, error: ApiError | None, throttle_time_ms: int) -> ClientError | None:
        if error is None or error.code == 0:
            return None
        if error.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            return MutationThrottled(self._request, throttle_time_ms, error.message)
        return AdminRequestFailed(self._request, error.code, error.message or "no reason given")

    def _begin_anew(self, refused: dict[K, MutationThrottled], now_ms: int) -> None:
        """Start a new call for the refused topics, as Kafka does: only the deadline stays."""
        self._refused = refused
        self._started_ms = now_ms
        self._asked = tuple(refused)
        self.tries = 0
        self.next_try_ms = 0

    def _time_out(self, now_ms: int) -> None:
        waited_ms = now_ms - self._started_ms
        for key, refusal in self._refused.items():
            if key in self._unfinished:
                self._finish(key, refusal.after(waited_ms))
        self._finish_all(AdminTimeout(self._request, self._options.timeout_ms / 1_000))

    def _finish_all(self, error: ClientError) -> None:
        for key in tuple(self._unfinished):
            self._finish(key, error)

    def _finish(self, key: K, error: ClientError | None) -> None:
        del self._unfinished[key]
        self._results[key] = error
