"""
The admin client of confluent-kafka.

librdkafka asks in versions of these requests that are older than error 89 (2.16: CreateTopics 4, DeleteTopics 4,
CreatePartitions 2, against 6, 5 and 3), so brokers never refuse it for its quota: they do what it asks and mute its
connection. Here that is counted. A librdkafka that asks in newer versions would be refused, and then this waits and
tries again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from quotascope.metrics.kafka.protocol import ApiKey

from ..accounting import ThrottleAccount, confluent_kafka_config
from ..accounting.confluent import ThrottleEvent, client_account
from ..throttling import RetryOptions
from .paced_futures import Ask, Futures, PacedFutures, QuotaExceeded

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
            retry_on_quota_violation: retry topics that a quota refused.
            api_timeout: seconds for the whole call, retries included.
            kwargs: the library's; `request_timeout` is for each request.

        """
        topics = {topic.topic: topic for topic in new_topics}
        ask = _request(super().create_topics, topics, kwargs)
        return self._paced(ApiKey.CREATE_TOPICS, topics, ask, api_timeout, retry=retry_on_quota_violation)

    def delete_topics(  # type: ignore[override]  # as the library itself
        self,
        topics: Sequence[str],
        *,
        retry_on_quota_violation: bool = True,
        api_timeout: float = _API_TIMEOUT_SECONDS,
        **kwargs: Any,  # noqa: ANN401 - the library's
    ) -> dict[str, Future[object]]:
        """Delete topics by name; the other arguments are those of `create_topics`."""
        ask = _request(super().delete_topics, {name: name for name in topics}, kwargs)
        return self._paced(ApiKey.DELETE_TOPICS, topics, ask, api_timeout, retry=retry_on_quota_violation)

    def create_partitions(  # type: ignore[override]  # as the library itself
        self,
        new_partitions: Sequence[NewPartitions],
        *,
        retry_on_quota_violation: bool = True,
        api_timeout: float = _API_TIMEOUT_SECONDS,
        **kwargs: Any,  # noqa: ANN401 - the library's
    ) -> dict[str, Future[object]]:
        """Extend topics; the other arguments are those of `create_topics`."""
        new_by_topic = {topic.topic: topic for topic in new_partitions}
        ask = _request(super().create_partitions, new_by_topic, kwargs)
        return self._paced(ApiKey.CREATE_PARTITIONS, new_by_topic, ask, api_timeout, retry=retry_on_quota_violation)

    def _paced(
        self, api: ApiKey, topics: Iterable[str], ask: Ask, seconds: float, *, retry: bool
    ) -> dict[str, Future[object]]:
        options = RetryOptions(retry_on_quota_violation=retry, timeout_ms=round(seconds * 1_000))
        return PacedFutures(api, ask, self._longest_throttle_ms, self._throttles, options).start(tuple(topics))

    def _longest_throttle_ms(self, since: float) -> int:
        """
        Return the longest throttle time in ms since a moment.

        Librdkafka reports it before it settles the futures.
        """
        self.poll(0)
        times = [seconds for moment, seconds in tuple(self._events) if moment >= since]
        return round(max(times, default=0) * 1_000)


def _request(call: Callable[..., Futures], topics: Mapping[str, object], kwargs: dict[str, Any]) -> Ask:
    """
    Return a function that calls the library for some of the topics.

    The request ends before the call with all its retries does.
    """

    def ask(names: Sequence[str], seconds: float) -> Futures:
        within = min(seconds, kwargs.get("request_timeout", seconds))
        selected = [topics[name] for name in names]
        return call(selected, **{**kwargs, "request_timeout": within})

    return ask
