"""
Admin client of kafka-python, which without this class gives up at the first error 89.

Its methods keep a response's throttle time to themselves, so one private method is overridden to see it
(`_send_request_to_controller`); `tests/clients/throttled_admin/test_kafka_python.py` fails when a new version moves it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import kafka
from kafka.errors import KafkaError
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)

from quotascope.metrics.kafka.protocol import ApiKey

from ..accounting import ThrottleAccount, kafka_python_config
from ..accounting.kafka_python import client_account
from ..errors import AdminUnreachable
from ..throttling import MutationAnswer, RetryOptions, mutate
from .counted import counted
from .outcomes import Entry, QuotaExceeded, Topic, TopicOutcomes

__all__ = ["QuotaExceeded", "ThrottleAwareAdmin"]

_MUTATIONS: Final = (CreateTopicsRequest, DeleteTopicsRequest, CreatePartitionsRequest)
_Untyped: TypeAlias = Callable[..., Any]
_API_TIMEOUT_MS: Final = 60_000  # default.api.timeout.ms


class ThrottleAwareAdmin(kafka.KafkaAdminClient):
    """
    A `KafkaAdminClient` that changes topics by KIP-599's rules.

    It waits for the broker's throttle time, and repeats the changes that a quota refused.

    Only the topics that were refused are sent again; the results of the others stand. When the time is over, what was
    last refused fails with `QuotaExceeded`. Calls from several threads are sent one after the other.

    Args:
        account: where throttle times and retries are counted; None to count for oneself.
        user: the principal under which they are counted; by default `sasl_plain_username`.
        configs: of a `KafkaAdminClient`.

    """

    def __init__(
        self,
        account: ThrottleAccount | None = None,
        *,
        user: str | None = None,
        **configs: Any,  # noqa: ANN401 - the library's
    ) -> None:
        if account is None:
            account = ThrottleAccount()
        self._turn = threading.Lock()
        self._answered = (0, 0)  # version and throttle time in ms of the last response
        initialize: _Untyped = super().__init__
        initialize(**kafka_python_config(configs, account, side="admin", user=user))
        self._throttles = client_account(self.config, account, "admin", user)

    def create_topics(
        self,
        new_topics: Mapping[str, Any] | Sequence[Any],
        timeout_ms: int | None = None,
        validate_only: bool = False,  # noqa: FBT001, FBT002 - as the library
        raise_errors: bool = True,  # noqa: FBT001, FBT002
        wait_for_metadata: bool = False,  # noqa: FBT001, FBT002
        *,
        retry_on_quota_violation: bool = True,
    ) -> dict[str, list[Entry]]:
        """
        Create topics; arguments, result and errors are the library's.

        Args:
            new_topics: names, options by name, or the library's `NewTopic`.
            timeout_ms: for the whole call with all that is tried again; 60 s if None.
            validate_only: create nothing. Kafka charges it all the same.
            raise_errors: raise the first error, instead of returning all in the result.
            wait_for_metadata: return when the topics can be used.
            retry_on_quota_violation: try again what a quota refused.

        """
        if validate_only and wait_for_metadata:
            raise ValueError("validate_only and wait_for_metadata exclude each other")
        create: _Untyped = super().create_topics
        names = [_name(topic) for topic in new_topics]

        def ask(pending: Sequence[Topic], ms: int) -> list[Entry]:
            topics = _only(new_topics, pending)
            result: dict[str, list[Entry]] = create(topics, ms, validate_only, raise_errors=False)
            return result["topics"]

        options = _options(timeout_ms, retry=retry_on_quota_violation)
        entries = self._paced(ApiKey.CREATE_TOPICS, names, ask, options, raise_errors=raise_errors)
        if wait_for_metadata:
            wait: _Untyped = self.wait_for_topics
            wait(names)
        return {"topics": entries}

    def delete_topics(
        self,
        topics: Sequence[Topic],
        timeout_ms: int | None = None,
        raise_errors: bool = True,  # noqa: FBT001, FBT002 - as the library
        *,
        retry_on_quota_violation: bool = True,
    ) -> dict[str, list[Entry]]:
        """Delete topics, by name or id; the other arguments are those of `create_topics`."""
        delete: _Untyped = super().delete_topics

        def ask(pending: Sequence[Topic], ms: int) -> list[Entry]:
            result: dict[str, list[Entry]] = delete(pending, ms, raise_errors=False)
            return result["topics"]

        options = _options(timeout_ms, retry=retry_on_quota_violation)
        entries = self._paced(ApiKey.DELETE_TOPICS, topics, ask, options, raise_errors=raise_errors)
        return {"topics": entries}

    def create_partitions(
        self,
        topic_partitions: Mapping[str, Any],
        timeout_ms: int | None = None,
        validate_only: bool = False,  # noqa: FBT001, FBT002 - as the library
        raise_errors: bool = True,  # noqa: FBT001, FBT002
        *,
        retry_on_quota_violation: bool = True,
    ) -> CreatePartitionsResponse:
        """Extend each topic to a number of partitions; the other arguments are those of `create_topics`."""
        create: _Untyped = super().create_partitions

        def ask(pending: Sequence[Topic], ms: int) -> list[Entry]:
            topics = _only(topic_partitions, pending)
            response = create(topics, ms, validate_only, raise_errors=False)
            entries: list[Entry] = response.to_dict()["results"]
            return entries

        options = _options(timeout_ms, retry=retry_on_quota_violation)
        entries = self._paced(ApiKey.CREATE_PARTITIONS, list(topic_partitions), ask, options, raise_errors=raise_errors)
        return _response(entries)

    def _paced(
        self,
        api: ApiKey,
        topics: Sequence[Topic],
        ask: Callable[[Sequence[Topic], int], list[Entry]],
        options: RetryOptions,
        *,
        raise_errors: bool,
    ) -> list[Entry]:
        outcomes = TopicOutcomes(topics)

        def send(pending: tuple[Topic, ...], left_ms: int) -> MutationAnswer[Topic]:
            ms = max(1, min(left_ms, self.config["request_timeout_ms"]))
            with self._turn:
                try:
                    entries = ask(pending, ms)
                except KafkaError as error:
                    raise self._retriable(error) from error
                version, throttle_ms = self._answered
            results = outcomes.answered(entries)
            return MutationAnswer(version=version, throttle_time_ms=throttle_ms, results=results)

        if not topics:
            ask(topics, _API_TIMEOUT_MS)  # the library reports that there is no topic
        results = mutate(api, topics, counted(send, self._throttles), options=options)
        return outcomes.entries(results, raise_errors=raise_errors)

    def _retriable(self, error: KafkaError) -> Exception:
        """Return the error if `mutate` should retry it: a lost connection or a timeout. Raise any other error."""
        if not error.retriable:
            raise error
        return AdminUnreachable([str(self.config["bootstrap_servers"])], str(error))

    async def _send_request_to_controller(
        self,
        request: Any,  # noqa: ANN401 - the library's
        *arguments: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        send: _Untyped = super()._send_request_to_controller
        response = await send(request, *arguments)
        if isinstance(request, _MUTATIONS):
            self._answered = (response.API_VERSION, response.throttle_time_ms)
        return response


def _options(timeout_ms: int | None, *, retry: bool) -> RetryOptions:
    return RetryOptions(
        retry_on_quota_violation=retry, timeout_ms=_API_TIMEOUT_MS if timeout_ms is None else timeout_ms
    )


def _name(topic: Any) -> str:  # noqa: ANN401 - a name or a NewTopic
    return topic if isinstance(topic, str) else str(topic.name)


def _only(topics: Any, names: Sequence[Topic]) -> Any:  # noqa: ANN401 - of any of the shapes that the library takes
    if isinstance(topics, Mapping):
        return {name: topics[name] for name in names}
    return [topic for topic in topics if _name(topic) in names]


def _response(entries: Sequence[Entry]) -> CreatePartitionsResponse:
    fields = ("name", "error_code", "error_message")
    result = CreatePartitionsResponse.CreatePartitionsTopicResult
    return CreatePartitionsResponse(
        throttle_time_ms=max((entry.get("throttle_time_ms", 0) for entry in entries), default=0),
        results=[result(**{key: entry[key] for key in fields}) for entry in entries],
    )
