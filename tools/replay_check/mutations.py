"""What each request asks the mutation quota for, topic by topic, since a strict quota looks at each by itself."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from quotascope.metrics import MutationApi
from quotascope.pipeline.request_log.messages import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
)
from quotascope.pipeline.request_log.mutations import TopicCounts

from .request import Request

API_OF: Final = {
    CREATE_TOPICS: MutationApi.CREATE_TOPICS,
    CREATE_PARTITIONS: MutationApi.CREATE_PARTITIONS,
    DELETE_TOPICS: MutationApi.DELETE_TOPICS,
}
"""What is charged, by API key."""

_DONE: Final = 0
_REFUSED: Final = 89


def charging(requests: Iterable[Request]) -> list[Request]:
    """The lines on which mutations are charged: the controller's where the log has it, else the client's."""
    mutating = [request for request in requests if request.api_key in API_OF]
    forwarded = {request.identity for request in mutating if request.forwarded}
    return [
        request
        for request in mutating
        if request.forwarded or request.identity not in forwarded
    ]


def charges_of(requests: Iterable[Request]) -> Mapping[int, tuple[int, ...]]:
    """Partitions of each topic that came to the quota, by line; a topic whose partitions the log does not tell counts nothing."""
    ours = charging(requests)
    counts = TopicCounts(None)
    for request in ours:
        for topic in request.topics:
            known = _left(request, topic)
            if known is not None:
                counts.learn(topic["name"], request.completed_ms, known)
    return {request.line: tuple(_asked(request, counts)) for request in ours}


def _left(request: Request, topic: Mapping[str, Any]) -> int | None:
    """Partitions that a topic has afterwards; None when nothing was done."""
    if topic["error"] != _DONE or topic["validate_only"] or not topic["name"]:
        return None
    left: int | None = 0 if request.api_key == DELETE_TOPICS else topic["partitions"]
    return left


def _asked(request: Request, counts: TopicCounts) -> Iterable[int]:
    for topic in request.topics:
        if topic["error"] not in (_DONE, _REFUSED):
            continue
        there = topic["partitions"]
        before = counts.before(topic["name"], request.completed_ms)
        if request.api_key == DELETE_TOPICS:
            yield before or 0
        elif request.api_key == CREATE_PARTITIONS:
            yield max(0, (there or 0) - before) if before is not None else 0
        else:
            yield there or 0
