"""
The JSON of a line, as `RequestConvertToJson.requestDescMetrics` of Kafka writes it.

Only what is needed is taken out, in one pass, its types checked. Which fields of request and response are needed
depends on the API. Its key stands near the beginning of a line. Fields that some release leaves out have a default.
Where the broker logs no request (the log was switched on in the middle of it) or no response (the client did not wait
for one), the log has an empty string.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from quotascope.metrics.kafka.protocol import ApiKey

from ..errors import UnreadableMessage
from .schema import Reason, Unreadable

Json: TypeAlias = Any
TopicRow: TypeAlias = dict[str, Any]
"""A topic in the column `topics`."""
Name: TypeAlias = str | UnsetType | None
"""A name; None if it is null, or not in this version."""
_Size: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 31)]
_Work: TypeAlias = Annotated[float, Meta(ge=0, le=86_400_000)]
"""Time in ms that a request is worked on, or that it or its response is in a queue: a day at most."""
_Wait: TypeAlias = Annotated[float, Meta(ge=0, le=(1 << 31) - 1)]
"""
Time in ms of waiting for others.

The protocol's timeouts are int32, and some clients set `max.poll.interval.ms` to its maximum.
"""
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Message(msgspec.Struct, gc=False, rename="camel"):
    """Part of a message: fields as `…DataJsonConverter` of Kafka writes them, in camel case; others are skipped."""


class AnyResponse(Message):
    """Fields of most responses; some have no throttle time."""

    throttle_time_ms: int | None = None


class Produced(Message):
    """A partition of a Produce request."""

    records_size_in_bytes: _Size | None = None


class ProducedTopic(Message):
    """A topic of a Produce request, by name or, since version 13, by id."""

    partitions: list[Produced] = field(name="partitionData")
    name: Name = UNSET
    topic_id: str | None = None


class ProduceRequest(Message):
    """`ProduceRequest.json`."""

    topic_data: list[ProducedTopic]
    acks: int = -1
    transactional_id: Name = UNSET


class Fetched(Message):
    """A partition of a Fetch response."""

    records_size_in_bytes: _Size | None = None
    records: Any = UNSET
    """Records, null without any; a size is logged instead of them."""
    aborted_transactions: list[Any] | None = None
    diverging_epoch: Any = UNSET
    current_leader: Any = UNSET
    snapshot_id: Any = UNSET


class FirstFetched(Fetched):
    """A partition of a Fetch response as Kafka 2.8 writes it, with other names of fields."""

    records_size_in_bytes: _Size | None = field(name="recordSetSizeInBytes", default=None)
    records: Any = field(name="recordSet", default=UNSET)


class FetchedTopic(Message):
    """A topic of a Fetch response, by name or, since version 13, by id."""

    partitions: list[Fetched] | UnsetType = UNSET
    first_partitions: list[FirstFetched] | UnsetType = field(name="partitionResponses", default=UNSET)
    """The partitions as Kafka 2.8 names them."""
    name: Name = field(name="topic", default=UNSET)
    topic_id: str | None = None

    def answers(self) -> Sequence[Fetched]:
        """
        Return the partitions under either name.

        Raises `UnreadableMessage` if there are none, or two lists of them.
        """
        if self.first_partitions is UNSET and self.partitions is not UNSET:
            return self.partitions
        if self.first_partitions is UNSET:
            raise UnreadableMessage("a topic of a Fetch response has no list of partitions")
        if self.partitions is not UNSET:
            raise UnreadableMessage(
                "a topic of a Fetch response has two lists of partitions: partitions and partitionResponses"
            )
        return self.first_partitions


class FetchResponse(AnyResponse):
    """`FetchResponse.json`."""

    responses: list[FetchedTopic] = []

    @property
    def of_2_8(self) -> bool:
        """True if Kafka 2.8 wrote the response; a response without topics does not show it."""
        return bool(self.responses) and self.responses[0].first_partitions is not UNSET


class ReplicaState(Message):
    """The replica that fetches, since version 15 (KIP-903)."""

    replica_id: int = -1


class FetchRequest(Message):
    """`FetchRequest.json`."""

    replica_id: int = -1
    replica_state: ReplicaState | None = None

    @property
    def follower(self) -> bool:
        """True if another broker fetches, which is not charged to clients."""
        return (self.replica_state or self).replica_id >= 0


class ShareFetched(Message):
    """A partition of a ShareFetch response."""

    error_message: str | None
    acknowledge_error_message: str | None
    acquired_records: list[Any]
    records_size_in_bytes: _Size | None = None


class ShareFetchedTopic(Message):
    """A topic of a ShareFetch response."""

    partitions: list[ShareFetched]
    topic_id: str | None = None


class ShareFetchResponse(AnyResponse, kw_only=True):
    """`ShareFetchResponse.json` (KIP-932)."""

    responses: list[ShareFetchedTopic]


class DescribedTopic(Message):
    """A topic of a Metadata or DescribeTopicPartitions response, with its id since version 10 of Metadata."""

    name: Name = UNSET
    topic_id: str | None = None


class TopicsResponse(AnyResponse):
    """`MetadataResponse.json`, `DescribeTopicPartitionsResponse.json`."""

    topics: list[DescribedTopic] = []
    brokers: list[msgspec.Raw] = []


class Header(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """`RequestHeader.json`, and what the log adds."""

    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None = None
    request_api_version_deprecated: bool = False


class ClientInformation(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """`clientInformation`: the client's report of itself (KIP-511)."""

    software_name: str = "unknown"


class LogLine(msgspec.Struct, Generic[_Request, _Response], gc=False, frozen=True, rename="camel"):
    """All fields of a line; times are ms."""

    request_header: Header
    request: _Request
    response: _Response
    connection: str
    principal: str
    listener: str
    local_time_ms: _Work
    remote_time_ms: _Wait
    response_queue_time_ms: _Work
    send_time_ms: _Work
    throttle_time_ms: int
    request_queue_time_ms: _Work | None = None
    is_forwarded: bool = False
    client_information: ClientInformation | None = None


Plain: TypeAlias = LogLine[msgspec.Raw, AnyResponse | str]
ProduceLine: TypeAlias = LogLine[ProduceRequest | str, AnyResponse | str]
FetchLine: TypeAlias = LogLine[FetchRequest | str, FetchResponse | str]
ShareFetchLine: TypeAlias = LogLine[msgspec.Raw, ShareFetchResponse | str]
DescribeLine: TypeAlias = LogLine[msgspec.Raw, TopicsResponse | str]
TopicsLine: TypeAlias = LogLine[Json, Json]
"""Line of a request that changes topics. Such lines are rare: Python's own types will do."""


def _created(request: Json, response: Json) -> list[TopicRow]:
    """Return the topics of CreateTopics with the partitions that they get."""
    answers = _by_topic(response, "topics")
    rows = []
    for topic in request["topics"]:
        answer = answers.get(topic["name"], {})
        requested = len(topic["assignments"]) or topic["numPartitions"]
        # the broker's default, which only responses since version 5 contain
        count = requested if requested > 0 else answer.get("numPartitions", -1)
        rows.append(_row(topic["name"], answer, count if count > 0 else None, request))
    return rows


def _enlarged(request: Json, response: Json) -> list[TopicRow]:
    """Return the topics of CreatePartitions with the partitions that they have afterwards."""
    answers = _by_topic(response, "results")
    return [_row(topic["name"], answers.get(topic["name"], {}), topic["count"], request) for topic in request["topics"]]


def _deleted(request: Json, response: Json) -> list[TopicRow]:
    """
    Return the topics of DeleteTopics.

    The response has the name of a topic that the request names by id (since version 6).
    """
    if response:
        return [_row(answer["name"], answer, None, request) for answer in response["responses"]]
    topics = request.get("topics") or [{"name": name} for name in request.get("topicNames", ())]
    return [_row(topic["name"], {"topicId": topic.get("topicId")}, None, request) for topic in topics]


def _by_topic(response: Json, field: str) -> dict[str, Json]:
    """Return answers by topic; empty when the client did not wait for a response."""
    return {answer["name"]: answer for answer in response[field]} if response else {}


NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""Id of a topic without one: all bits are 0 (`Uuid.ZERO_UUID`)."""


def _row(name: str | None, answer: Json, partitions: int | None, request: Json) -> TopicRow:
    """Return a topic of a request; `answer` is its part of the response, empty without a response."""
    topic_id = answer.get("topicId")
    return {
        "name": name,
        "id": None if topic_id == NO_ID else topic_id,
        "partitions": partitions,
        "error": answer.get("errorCode"),
        "validate_only": bool(request.get("validateOnly", False)),
    }


TOPICS_OF: Final[Mapping[int, Callable[[Json, Json], list[TopicRow]]]] = {
    ApiKey.CREATE_TOPICS: _created,
    ApiKey.DELETE_TOPICS: _deleted,
    ApiKey.CREATE_PARTITIONS: _enlarged,
}
"""Functions that read the topics of `request` and `response` of a line, by API key."""

DESCRIBES: Final = (ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS)
"""The APIs of a `DescribeLine`."""

Decode: TypeAlias = Callable[[bytes], LogLine[Any, Any]]
"""Function that reads the JSON of a line."""
plain: Final[Decode] = msgspec.json.Decoder(Plain).decode
OF_API: Final[dict[int, Decode]] = {
    ApiKey.PRODUCE: msgspec.json.Decoder(ProduceLine).decode,
    ApiKey.FETCH: msgspec.json.Decoder(FetchLine).decode,
    ApiKey.SHARE_FETCH: msgspec.json.Decoder(ShareFetchLine).decode,
    **dict.fromkeys(DESCRIBES, msgspec.json.Decoder(DescribeLine).decode),
    **dict.fromkeys(TOPICS_OF, msgspec.json.Decoder(TopicsLine).decode),
}
KEY: Final = b'"requestApiKey":'
"""Text in front of the API key."""
BEGINNING: Final = 80
"""Number of bytes of a line's JSON in which the API key usually is."""
BY_TEXT: Final = {f"{key:d},".encode()[:2]: decode for key, decode in OF_API.items()}
"""Functions of `OF_API` by the first two bytes of the key in JSON, such as `1,` or `19`."""


def decoded(text: bytes) -> LogLine[Any, Any]:
    """
    Return the fields of a line's JSON, request and response by API (`ProduceLine`, …, else `Plain`).

    Raises `Unreadable`.
    """
    # The key in the text says which function to call, so that nearly all lines are read once. If the text does not have
    # it there, this is a guess, which is compared with the key that was read.
    start = text.find(KEY, 0, BEGINNING) + len(KEY)
    decode = BY_TEXT.get(text[start : start + 2], plain)
    try:
        line = decode(text)
        exact_decode = OF_API.get(line.request_header.request_api_key, plain)
        # the key may stand elsewhere than it usually does
        return line if exact_decode is decode else exact_decode(text)
    except msgspec.ValidationError as error:
        raise Unreadable(Reason.UNKNOWN_SHAPE, str(error)) from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        # a line that was cut leaves braces open; one that another was written into is broken in another way
        cut = text.count(b"{") > text.count(b"}") or not text
        reason = Reason.TRUNCATED if cut else Reason.NOT_JSON
        raise Unreadable(reason, str(error)) from error
