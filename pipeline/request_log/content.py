"""What quotas need of a line's request and response, by API; of most APIs it is the throttle only."""

from typing import Any, Final, NamedTuple

from ..wire_size import share_fetch_bytes
from .entry import Entry, Fetch, Produce, Whole
from .messages import FETCH, PRODUCE, SHARE_FETCH, Answer, FetchRequest, FetchResponse
from .sizes import fetch_size, produce_size
from .topics import TOPICS_OF, TopicRow

QUOTA_VIOLATION: Final = 89
ALL_REPLICAS: Final = -1
"""The `acks` of a Produce request that is answered, and throttled, once its followers have it."""


class Content(NamedTuple):
    """Columns that follow from the messages."""

    throttle_ms: int | None
    request_bytes: int | None = None
    response_bytes: int | None = None
    topics: list[TopicRow] | None = None
    refused: bool = False
    follower: bool = False
    waited: bool = True
    """Whether the broker may have decided only after it waited for others (`remoteTimeMs`)."""


def content_of(entry: Entry[Any, Any]) -> Content:
    """The columns of an entry of `entry_of`. Raises `PipelineError` and what using a message of another shape raises."""
    key = entry.request_header.request_api_key
    if key == PRODUCE:
        return _produce(entry)
    if key == FETCH:
        return _fetch(entry)
    if key == SHARE_FETCH:
        return _share_fetch(entry)
    if key in TOPICS_OF:
        return _topics(entry)
    return Content(_throttle(entry.response))


def _throttle(response: Answer | str) -> int | None:
    return None if isinstance(response, str) else response.throttle_time_ms


def _produce(entry: Produce) -> Content:
    header, request = entry.request_header, entry.request
    told = _throttle(entry.response)
    if isinstance(request, str):
        return Content(told)
    size = produce_size(header.request_api_version, header.client_id, request)
    waited = request.acks == ALL_REPLICAS
    return Content(told, size, None, None, False, False, waited)  # noqa: FBT003 - a row


def _fetch(entry: Fetch) -> Content:
    request, response = entry.request, entry.response
    follower = isinstance(request, FetchRequest) and request.follower
    size = None
    if isinstance(response, FetchResponse):
        size = fetch_size(entry.request_header.request_api_version, response)
    return Content(_throttle(response), response_bytes=size, follower=follower)


def _share_fetch(entry: Whole) -> Content:
    response = entry.response
    if not response:
        return Content(None)
    version = entry.request_header.request_api_version
    size = share_fetch_bytes({"requestApiVersion": version}, response)
    return Content(response.get("throttleTimeMs"), response_bytes=size)


def _topics(entry: Whole) -> Content:
    request, response = entry.request, entry.response
    read = TOPICS_OF[entry.request_header.request_api_key]
    topics = read(request, response) if request else []
    return Content(
        response.get("throttleTimeMs") if response else None,
        topics=topics,
        refused=any(topic["error"] == QUOTA_VIOLATION for topic in topics),
    )
