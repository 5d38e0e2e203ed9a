"""
Whether the messages of a line are what a replay reads of them.

`request_log` looks at what it needs of a line; offsets, topics, sessions and quotas are needed here alone. A line that has them in another
shape is left out as a whole, like one that is no request: then nothing behind this has to expect it.
"""

from typing import Any, Final, TypeAlias

import msgspec

from quotascope.pipeline.errors import PipelineError
from quotascope.pipeline.wire_size import fetch_bytes

from .apis import ALTER_CLIENT_QUOTAS, CREATE_TOPICS, FETCH, METADATA, PRODUCE

Json: TypeAlias = Any


class Shape(msgspec.Struct, rename="camel"):
    """Fields as the log names them; more of them are passed over."""


class Topic(Shape):
    """A topic by its name, which Fetch calls `topic`, or by its id."""

    name: str | None = None
    topic: str | None = None
    topic_id: str | None = None

    def __post_init__(self) -> None:
        if not self.name and not self.topic and self.topic_id is None:
            raise ValueError("a topic without a name or an id")


class _Produced(Shape):
    index: int
    records_size_in_bytes: int | None = None


class _ProducedTopic(Topic, kw_only=True):
    partition_data: list[_Produced]


class _ProduceRequest(Shape):
    acks: int
    topic_data: list[_ProducedTopic]


class _Appended(Shape):
    index: int
    error_code: int
    base_offset: int


class _AppendedTopic(Topic, kw_only=True):
    partition_responses: list[_Appended]


class _ProduceResponse(Shape):
    responses: list[_AppendedTopic]


class _Fetched(Shape):
    partition: int
    fetch_offset: int
    partition_max_bytes: int


class _FetchedTopic(Topic, kw_only=True):
    partitions: list[_Fetched]


class _ForgottenTopic(Topic, kw_only=True):
    partitions: list[int]


class _FetchRequest(Shape):
    min_bytes: int
    topics: list[_FetchedTopic]
    max_bytes: int = 0
    session_id: int = 0
    session_epoch: int = -1
    forgotten_topics_data: list[_ForgottenTopic] = []


class _FetchResponse(Shape):
    session_id: int = 0


class _NamedTopic(Shape):
    name: str | None = None
    topic_id: str | None = None


class _TopicsResponse(Shape):
    topics: list[_NamedTopic]


class _EntityPart(Shape):
    entity_type: str
    entity_name: str | None


class _Operation(Shape):
    key: str
    remove: bool
    value: float


class _Alteration(Shape):
    entity: list[_EntityPart]
    ops: list[_Operation]


class _AlterRequest(Shape):
    validate_only: bool
    entries: list[_Alteration]


class _Altered(Shape):
    error_code: int


class _AlterResponse(Shape):
    entries: list[_Altered]


_OF_API: Final[dict[int, tuple[Any, Any]]] = {
    PRODUCE: (_ProduceRequest, _ProduceResponse),
    FETCH: (_FetchRequest, _FetchResponse),
    METADATA: (Any, _TopicsResponse),
    CREATE_TOPICS: (Any, _TopicsResponse),
    ALTER_CLIENT_QUOTAS: (_AlterRequest, _AlterResponse),
}


def readable(message: Json) -> bool:
    """Whether a line's JSON, of an API that is looked into, can be replayed; a request or an answer that is missing is no fault."""
    header, response = message["requestHeader"], message["response"]
    key = header["requestApiKey"]
    try:
        for part, shape in zip(
            (message["request"], response), _OF_API[key], strict=True
        ):
            if part:
                msgspec.convert(part, shape)
        if key == FETCH and response:
            fetch_bytes(header, response)
    except (msgspec.ValidationError, OverflowError, PipelineError):
        return False
    return True
