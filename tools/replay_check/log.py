"""The request log of one process: the requests as the pipeline parses them, and the messages of a few APIs."""

import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
import pyarrow as pa

from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.pipeline.errors import PipelineError
from quotascope.pipeline.history.charges import EXEMPT_APIS
from quotascope.pipeline.releases import Named
from quotascope.pipeline.request_log.messages import FetchResponse, LogLine, Message, Produced, ProduceRequest
from quotascope.pipeline.request_log.parsing import LogSource, parse_lines

NS_PER_MS: Final = 1e6
EXEMPT_ON_CONTROLLERS: Final = (
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
)
"""
APIs that are exempt on a controller, and that a broker which forwards them charges to its client.

Clients send requests to brokers, so a line is a broker's unless its request was forwarded.
"""
_MARK: Final = b"Completed request:"
_GZIP: Final = b"\x1f\x8b"
_COLUMNS: Final = (
    "timestamp", "completed", "line", "connection", "correlation_id", "api_key", "api_version", "user", "client_id", "produce_bytes",
    "fetch_bytes", "thread_time_ms", "network_time_ms", "throttle_ms", "broker_throttle_ms", "forwarded", "follower", "topics",
    "mutation_timestamp",
)  # fmt: skip

Line: TypeAlias = LogLine[Any, Any]


class EmptyLog(PipelineError):
    """A log has no request as `kafka.request.logger` writes it; the message names the log."""


class Topic(Message, kw_only=True):
    """A topic by its name, which Fetch calls `topic`, or by its id."""

    name: str | None = None
    topic: str | None = None
    topic_id: str | None = None

    def __post_init__(self) -> None:
        if not self.name and not self.topic and self.topic_id is None:
            raise ValueError("a topic without a name or an id")

    @property
    def key(self) -> str:
        """Name of the topic, else its id."""
        return str(self.name or self.topic or self.topic_id)


class _Produced(Produced, kw_only=True):
    index: int


class _ProducedTopic(Topic, kw_only=True):
    partition_data: list[_Produced]


class _ProduceRequest(ProduceRequest, kw_only=True):
    acks: int
    topic_data: list[_ProducedTopic]  # type: ignore[assignment] # read only


class _Appended(Message):
    index: int
    error_code: int
    base_offset: int


class _AppendedTopic(Topic, kw_only=True):
    partition_responses: list[_Appended]


class _ProduceResponse(Message):
    responses: list[_AppendedTopic]


class _Wanted(Message):
    partition: int
    fetch_offset: int
    partition_max_bytes: int


class _WantedTopic(Topic, kw_only=True):
    partitions: list[_Wanted]


class _ForgottenTopic(Topic, kw_only=True):
    partitions: list[int]


class _FetchRequest(Message):
    min_bytes: int
    topics: list[_WantedTopic]
    max_bytes: int = (1 << 31) - 1
    """Bound of the answer; none before version 3."""
    session_id: int = 0
    session_epoch: int = -1
    """Epoch of the session; none before version 7."""
    forgotten_topics_data: Sequence[_ForgottenTopic] = ()


class _FetchResponse(FetchResponse):
    session_id: int = 0


class _NamedTopic(Message):
    name: str | None = None
    topic_id: str | None = None


class _TopicsResponse(Message):
    topics: list[_NamedTopic]


class _EntityPart(Message):
    entity_type: str
    entity_name: str | None


class _Operation(Message):
    key: str
    remove: bool
    value: float


class _Alteration(Message):
    entity: list[_EntityPart]
    ops: list[_Operation]


class _AlterRequest(Message):
    validate_only: bool
    entries: list[_Alteration]


class _Altered(Message):
    error_code: int


class _AlterResponse(Message):
    entries: list[_Altered]


_topics: Final = msgspec.json.Decoder(LogLine[Any, _TopicsResponse | Literal[""]])
_DECODERS: Final[Mapping[int, msgspec.json.Decoder[Any]]] = {
    ApiKey.PRODUCE: msgspec.json.Decoder(LogLine[_ProduceRequest | Literal[""], _ProduceResponse | Literal[""]]),
    ApiKey.FETCH: msgspec.json.Decoder(LogLine[_FetchRequest | Literal[""], _FetchResponse | Literal[""]]),
    ApiKey.METADATA: _topics,
    ApiKey.CREATE_TOPICS: _topics,
    ApiKey.ALTER_CLIENT_QUOTAS: msgspec.json.Decoder(LogLine[_AlterRequest | Literal[""], _AlterResponse | Literal[""]]),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of the log, with the fields that the replay needs."""

    line: int
    decided_ms: int
    """Epoch ms at which the broker decided on the throttle."""
    completed_ms: int
    """Epoch ms at which the response had left."""
    principal: Principal
    client_id: str
    connection: str
    correlation_id: int
    api_key: int
    api_version: int
    produced: int | None = None
    """Bytes that the Produce quota is charged; None for other requests."""
    fetched: int | None = None
    """Bytes that the Fetch quota is charged; None for other requests and throttled fetches."""
    thread_ns: int
    """Time of a handler thread, ns."""
    send_ms: float
    """Time from the moment when a network thread took the response until it had left, ms."""
    throttle_ms: int
    """Throttle time in the response."""
    own_ms: int
    """Throttle time that this process imposed itself; the response may have the controller's, which is longer."""
    forwarded: bool = False
    """True if a broker sent the request in the name of its client."""
    follower: bool = False
    """True for a Fetch of another broker."""
    exempt: bool = False
    """True if its thread time is not charged to the request quota."""
    charged_ms: int | None = None
    """Epoch ms at which the controller charged its mutations; None without mutations."""
    topics: tuple[Mapping[str, Any], ...] = ()
    """Topics that the request creates, enlarges or deletes (`quotascope.pipeline.request_log.schema.TOPIC`)."""

    @property
    def identity(self) -> tuple[str, str, int, int]:
        """User, client id, correlation id and API key, which both lines of a forwarded request have in common."""
        return self.principal.name, self.client_id, self.correlation_id, self.api_key


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLog:
    """Content of a log."""

    table: pa.Table
    """Rows of `REQUESTS`; a forwarded request has two rows if both of its lines are here. `line` counts from 1."""
    requests: list[Request]
    """Requests of `table`, in the order of its rows."""
    messages: Mapping[int, Line]
    """Request and response of Produce, Fetch, Metadata, CreateTopics and AlterClientQuotas, by line."""
    release: KafkaRelease | None
    """Release of the broker, by an answer to ApiVersions or by its ZooKeeper mode; None if the log shows neither."""
    unreadable: int
    """Number of lines that are no requests, are cut off, or do not have Kafka's format."""

    def whole(self, request: Request) -> Line | None:
        """
        Return the message of a request's line if it has a request and a response; else None.

        Either may be missing (`request_log.messages`).
        """
        message = self.messages.get(request.line)
        return message if message and message.request and message.response else None


def read_log(path: Path) -> RequestLog:
    """
    Return the log in a file, gzipped or not.

    Raises `EmptyLog` when no line of it is a request, `PipelineError` when it cannot be read.
    """
    try:
        content = path.read_bytes()
        text = gzip.decompress(content) if content.startswith(_GZIP) else content
    except (OSError, EOFError, zlib.error) as error:
        raise PipelineError(f"{path}: {error}") from error
    return log_of(text.splitlines(), str(path))


def log_of(lines: list[bytes], name: str) -> RequestLog:
    """Return the log in some lines; `name` is for messages. Raises `EmptyLog`."""
    source = LogSource(file=name, broker=name)
    parsed = parse_lines(lines, range(1, len(lines) + 1), source)
    messages, odd = _messages(parsed.requests, lines)
    numbers = parsed.requests["line"].to_pylist()
    table = parsed.requests.filter(pa.array([number not in odd for number in numbers], pa.bool_()))
    if not len(table):
        raise EmptyLog(f"{name}: no line is a request as kafka.request.logger writes it")
    # after a restart, the release that was named last
    named = Named.of(*(parsed.requests[column] for column in ("broker", "timestamp", "level"))).times
    release = max(named, key=lambda candidate: (named[candidate], candidate[0]), default=(None, None))[0]
    return RequestLog(
        table=table,
        requests=list(_requests(table)),
        messages=messages,
        release=release,
        unreadable=len(lines) - len(table),
    )


def _messages(requests: pa.Table, lines: list[bytes]) -> tuple[dict[int, Line], Collection[int]]:
    """
    Return the messages of some APIs by line, and the lines whose messages do not have Kafka's format.

    `request_log` does not read offsets, topics, sessions and quotas. A line in which they do not have Kafka's format is
    left out, like a line that is no request.
    """
    messages: dict[int, Line] = {}
    odd = set[int]()
    columns = (requests[name].to_pylist() for name in ("line", "api_key"))
    for number, key in zip(*columns, strict=True):
        if key in _DECODERS:
            line = lines[number - 1]
            start = line.index(b"{", line.index(_MARK))
            try:
                messages[number] = _DECODERS[key].decode(line[start : line.rindex(b"}") + 1])
            except msgspec.MsgspecError:
                odd.add(number)
    return messages, odd


def _requests(table: pa.Table) -> Iterator[Request]:
    """Yield the requests of rows of `REQUESTS`."""
    principals: dict[str, Principal] = {}
    for row in table.select(_COLUMNS).to_pylist():
        key, user = row["api_key"], row["user"]
        own_ms, throttle_ms = row["broker_throttle_ms"], row["throttle_ms"]
        unanswered = key == ApiKey.PRODUCE and throttle_ms is None
        among_brokers = row["follower"] or key in EXEMPT_APIS
        on_controller = row["forwarded"] and key in EXEMPT_ON_CONTROLLERS
        yield Request(
            line=row["line"],
            decided_ms=row["timestamp"],
            completed_ms=row["completed"],
            principal=principals.setdefault(user, Principal(user)),
            client_id=row["client_id"] or "",
            connection=row["connection"],
            correlation_id=row["correlation_id"],
            api_key=key,
            api_version=row["api_version"],
            produced=row["produce_bytes"],
            fetched=row["fetch_bytes"],
            thread_ns=round(row["thread_time_ms"] * NS_PER_MS),
            send_ms=row["network_time_ms"],
            throttle_ms=own_ms if throttle_ms is None else throttle_ms,
            own_ms=own_ms,
            forwarded=row["forwarded"],
            follower=row["follower"],
            exempt=bool(unanswered or among_brokers or on_controller),
            charged_ms=row["mutation_timestamp"],
            topics=tuple(row["topics"] or ()),
        )
