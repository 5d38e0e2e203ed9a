"""Changes of topics through any client, at the pace that quotas allow (KIP-599)."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic

from quotascope.metrics.engine.clock import Clock, SteadyClock
from quotascope.metrics.kafka.protocol import ApiKey

from ..errors import AdminTimeout, AdminUnreachable, ClientError, TlsFailed
from .connection import ClientConnection
from .mutation import ApiError, K, MutationCall, RetryOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationAnswer(Generic[K]):
    """The response to CreateTopics, CreatePartitions or DeleteTopics."""

    version: int
    """Version of the response, which decides whether the client waits (`client_waits`)."""
    throttle_time_ms: int
    results: Mapping[K, ApiError | None]
    """The error of each topic, None for success."""


def mutate(
    api: ApiKey,
    keys: Iterable[K],
    send: Callable[[tuple[K, ...], int], MutationAnswer[K]],
    *,
    options: RetryOptions = RetryOptions(),  # noqa: B008 - frozen
    clock: Clock | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Mapping[K, ClientError | None]:
    """
    Create, extend or delete topics, wait for the broker's throttle time, and retry what a quota refused.

    Blocks until every topic has a result or the timeout is over, like the futures of Kafka's admin client.

    Args:
        api: CREATE_TOPICS, CREATE_PARTITIONS or DELETE_TOPICS.
        keys: names or ids of topics.
        send: sends one request for these topics with this timeout in ms, and returns the response. Of what it may
            raise,
            `AdminUnreachable` and `AdminTimeout` are worth another try, every other `ClientError` is the result of the
            topics, and anything else passes through.
        options: how long and how often to try.
        clock: ms that do not go back; a `SteadyClock` if None.
        sleep: waits for seconds.

    Returns:
        What became of each topic: None when it was done, else why not. `MutationThrottled` has the rest of the throttle
        time.

    """
    tell_ms = SteadyClock() if clock is None else clock
    call = MutationCall(api.request_name, keys, tell_ms(), options)
    connection = ClientConnection()
    while not call.done:
        _pause(call, connection, tell_ms, sleep)
        if not call.expire(tell_ms()):
            _attempt(call, connection, api, send, tell_ms)
    return call.results


def _attempt(
    call: MutationCall[K],
    connection: ClientConnection,
    api: ApiKey,
    send: Callable[[tuple[K, ...], int], MutationAnswer[K]],
    clock: Clock,
) -> None:
    try:
        answer = send(call.pending, max(0, call.remaining_ms(clock())))
    except ClientError as error:
        lost = isinstance(error, AdminUnreachable | AdminTimeout) and not isinstance(error, TlsFailed)
        call.failed(error, clock(), retriable=lost)
        return
    now_ms = clock()
    connection.received(api, answer.version, answer.throttle_time_ms, now_ms)
    call.answered(answer.results, answer.throttle_time_ms, now_ms)


def _pause(call: MutationCall[K], connection: ClientConnection, clock: Clock, sleep: Callable[[float], None]) -> None:
    """Wait until the next request may be sent, or the deadline is over."""
    ready_ms = max(connection.throttled_until_ms, call.next_try_ms)
    until_ms = min(ready_ms, call.deadline_ms + 1)
    while (now_ms := clock()) < until_ms:
        sleep((until_ms - now_ms) / 1_000)
