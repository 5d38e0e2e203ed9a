"""
The admin client of confluent-kafka.

librdkafka asks in versions of these requests that are older than error 89 (2.16: CreateTopics 4, DeleteTopics 4, CreatePartitions 2,
against 6, 5 and 3), so brokers never refuse it for its quota: they do what it asks and mute its connection. Here that is counted.
A librdkafka that asks in newer versions would be refused, and then this waits and tries again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from quotascope.metrics.protocol import ApiKey

from ..accounting import ThrottleAccount, confluent_kafka_config
from ..accounting.confluent import ThrottleEvent, client_account
from ..throttling import RetryOptions
from .paced_futures import Futures, PacedFutures, QuotaExceeded

__all__ = ["QuotaExceeded", "ThrottleAwareAdmin"]

_API_TIMEOUT_SECONDS: Final = 60.0  # default.api.timeout.ms


class ThrottleAwareAdmin(AdminClient):
    """
    An `AdminClient` that changes topics by KIP-599's rules; the results of all methods are the library's futures.

    Args:
        conf: of an `AdminClient`.
        account: where throttle times and retries are counted; None to count for oneself.
        user: the principal under which they are counted; by default `sasl.username`.

    """

    def __init__(
        self, conf: Mapping[str, Any], account: ThrottleAccount | None = None, *, user: str | None = None
    ) -> None:
        if account is None:
            account = ThrottleAccount()
        self._events: deque[tuple[float, float]] = deque(maxlen=100)
        self._throttles = client_account(conf, account, "admin", user)
        config = confluent_kafka_config(conf, account, side="admin", user=user)
        count = config["throttle_cb"]

        def note(event: ThrottleEvent) -> None:
            self._events.append((time.monotonic(), event.throttle_time))
            count(event)

        config["throttle_cb"] = note
        super().__init__(config)

    def create_topics(  # type: ignore[override]  # as the library itself
        self,
        new_topics: Sequence[NewTopic],
        *,
        retry_on_quota_violation: bool = True,
        api_timeout: float = _API_TIMEOUT_SECONDS,
        **kwargs: Any,  # noqa: ANN401 - the library's
    ) -> dict[str, Future[object]]:
        """
        Create topics.

        Args:
            new_topics: topics of different names.
            retry_on_quota_violation: try again what a quota refused.
            api_timeout: seconds for the whole call with all that is tried again.
            kwargs: the library's; `request_timeout` is for each request.

        """
        topics = {topic.topic: topic for topic in new_topics}
        call = partial(super().create_topics, **kwargs)
        return self._paced(ApiKey.CREATE_TOPICS, call, topics, api_timeout, retry=retry_on_quota_violation)

    def delete_topics(  # type: ignore[override]  # as the library itself
        self,
        topics: Sequence[str],
        *,
        retry_on_quota_violation: bool = True,
        api_timeout: float = _API_TIMEOUT_SECONDS,
        **kwargs: Any,  # noqa: ANN401 - the library's
    ) -> dict[str, Future[object]]:
        """Delete topics by name; the other arguments are those of `create_topics`."""
        names = dict(zip(topics, topics, strict=True))
        call = partial(super().delete_topics, **kwargs)
        return self._paced(ApiKey.DELETE_TOPICS, call, names, api_timeout, retry=retry_on_quota_violation)

    def create_partitions(  # type: ignore[override]  # as the library itself
        self,
        new_partitions: Sequence[NewPartitions],
        *,
        retry_on_quota_violation: bool = True,
        api_timeout: float = _API_TIMEOUT_SECONDS,
        **kwargs: Any,  # noqa: ANN401 - the library's
    ) -> dict[str, Future[object]]:
        """Extend topics; the other arguments are those of `create_topics`."""
        wanted = {each.topic: each for each in new_partitions}
        call = partial(super().create_partitions, **kwargs)
        return self._paced(ApiKey.CREATE_PARTITIONS, call, wanted, api_timeout, retry=retry_on_quota_violation)

    def _paced(
        self,
        api: ApiKey,
        call: partial[dict[str, Future[Any]]],
        topics: Mapping[str, object],
        api_timeout: float,
        *,
        retry: bool,
    ) -> dict[str, Future[object]]:
        """The futures of a call of the library for topics by name; a request ends before the call with all that is tried again does."""

        def ask(names: Sequence[str], seconds: float) -> Futures:
            within = min(seconds, call.keywords.get("request_timeout", seconds))
            return call([topics[name] for name in names], request_timeout=within)

        options = RetryOptions(retry_on_quota_violation=retry, timeout_ms=round(api_timeout * 1_000))
        paced = PacedFutures(api, ask, self._longest_throttle_ms, self._throttles, options)
        return paced.start(tuple(topics))

    def _longest_throttle_ms(self, since: float) -> int:
        """The longest throttle time in ms since then; librdkafka reports it before it settles the futures."""
        self.poll(0)
        times = [seconds for at, seconds in tuple(self._events) if at >= since]
        return round(max(times, default=0) * 1_000)
