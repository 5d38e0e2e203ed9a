"""Results of topics in the form of kafka-python's responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from kafka import errors

from quotascope.metrics.kafka.protocol import ErrorCode

from ..errors import AdminRequestFailed, AdminTimeout, ClientError, MutationThrottled
from ..throttling import ApiError

Topic: TypeAlias = str | UUID
Entry: TypeAlias = dict[str, Any]
"""Entry of a response about one topic."""


class QuotaExceeded(MutationThrottled, errors.ThrottlingQuotaExceededError):  # type: ignore[misc]
    """Error 89 when no time is left for a retry; `throttle_time_ms` is the rest of the throttle time."""


class TopicOutcomes:
    """Latest entry of each topic."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._topics = {str(topic): topic for topic in topics}
        self._entries: dict[Topic, Entry] = {}

    def answered(self, entries: Sequence[Entry]) -> dict[Topic, ApiError | None]:
        """Record a response; return the error of each topic, None for success."""
        entry_by_topic = {self._topic(entry): entry for entry in entries}
        self._entries.update(entry_by_topic)
        return {topic: _error(entry) for topic, entry in entry_by_topic.items()}

    def entries(self, results: Mapping[Topic, ClientError | None], *, raise_errors: bool) -> list[Entry]:
        """
        Return one entry for each topic, in the order of the request; a throttled topic has `throttle_time_ms`.

        Raises the first error as the library would, if that is wanted: `QuotaExceeded` or another `KafkaError`.
        """
        for topic in self._topics.values():
            error = results[topic]
            if raise_errors and error is not None:
                raise _as_library(error) from error
        return [
            {**self._entries.get(topic, {}), **_changed(name, results[topic])} for name, topic in self._topics.items()
        ]

    def _topic(self, entry: Entry) -> Topic:
        """Return the topic of an entry, which has a name even if the topic was requested by its id."""
        topic_id, name = str(entry.get("topic_id")), str(entry["name"])
        if topic_id in self._topics:
            return self._topics[topic_id]
        return self._topics.get(name, name)


def _error(entry: Entry) -> ApiError | None:
    code = entry["error_code"]
    return ApiError(code, entry.get("error_message")) if code else None


def _changed(name: str, error: ClientError | None) -> Entry:
    """Return the fields of an entry that differ from the response, which may be missing or out of date."""
    if isinstance(error, MutationThrottled):
        return {"throttle_time_ms": error.throttle_time_ms}
    if isinstance(error, AdminTimeout):
        return {"name": name, "error_code": ErrorCode.REQUEST_TIMED_OUT, "error_message": str(error)}
    if isinstance(error, AdminRequestFailed) and error.code is None:
        return {"name": name, "error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "error_message": str(error)}
    return {}


def _as_library(error: ClientError) -> Exception:
    if isinstance(error, MutationThrottled):
        return QuotaExceeded(error.request, error.throttle_time_ms, error.message)
    if isinstance(error, AdminTimeout):
        return errors.KafkaTimeoutError(str(error))
    code = getattr(error, "code", None)
    raised: Exception = errors.for_code(ErrorCode.UNKNOWN_SERVER_ERROR if code is None else code)(str(error))
    return raised
