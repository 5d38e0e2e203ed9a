"""
One line of a request log as one row of `REQUESTS`.

The time in front of a line is log4j's `%d`, which prints local time without a zone, so that the zone has to be
configured; where a pattern prints the offset, the offset counts. A day makes a partition of a table, so times and
durations that no broker writes are refused: one line with a time of another age would damage a table for good.
"""

from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

from quotascope.metrics.kafka.protocol import ApiKey, ErrorCode

from ..errors import PipelineError, UnknownVersion
from ..releases import FIRST, layout_of
from .messages import (
    DESCRIBES,
    NO_ID,
    TOPICS_OF,
    AnyResponse,
    DescribeLine,
    FetchLine,
    FetchRequest,
    LogLine,
    ProduceLine,
    ShareFetchLine,
    TopicRow,
    TopicsLine,
    decoded,
)
from .schema import Reason, Unreadable
from .sizes import Traffic, fetch_bytes, produce_bytes, share_fetch_bytes
from .times import Clock, has_time
from .wrapped import MARK, object_of, requests_of, unwrapped

Row: TypeAlias = tuple[Any, ...]
FIELDS: Final = (
    "timestamp", "completed", "time_precision_ms", "broker", "listener", "connection", "correlation_id", "api_key",
    "api_version", "user", "client_id", "software", "produce_bytes", "fetch_bytes", "traffic", "queue_time_ms",
    "thread_time_ms", "remote_time_ms", "response_queue_time_ms", "network_time_ms", "mutation_timestamp", "topics",
    "topic_ids", "throttle_ms", "broker_throttle_ms", "refused", "forwarded", "follower", "layout", "identity", "node",
    "nodes",
)  # fmt: skip
"""Columns that follow from the line alone, in the order of a row."""
IDENTITY: Final = 16
"""
Size in bytes of an identity.

It is a hash of the completion and of the line's JSON, which holds connection, correlation id and times in µs.
"""
FIRST_MS: Final = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 1000
LAST_MS: Final = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * 1000
"""End of the times that are accepted, which begin with `FIRST_MS`."""
ALL_REPLICAS: Final = -1
"""The `acks` of a Produce request that is answered, and throttled, after its followers have the records."""

USUAL: Final = b"] DEBUG Completed request:{"
USUAL_AT: Final = slice(24, 24 + len(USUAL))
"""Place of `USUAL` in a line of Kafka's own pattern; the other places are those of its parts."""
USUAL_START: Final = 24 + len(USUAL) - 1
SECONDS: Final = slice(1, 20)
MILLISECONDS: Final = slice(21, 24)
STAMP: Final = slice(SECONDS.start, MILLISECONDS.stop)
MS: Final = {b"%03d" % ms: ms for ms in range(1_000)}
"""Milliseconds by their text."""
WRONG_SHAPE: Final = (
    PipelineError, AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError,
)  # fmt: skip
"""Errors for a message whose fields are not those of its API."""


class Several(Exception):
    """A line that holds several requests; private to this package."""

    def __init__(self, lines: list[bytes]) -> None:
        super().__init__("several requests on one line")
        self.lines = lines
        """Lines with one request each."""


class LineReader:
    """Reads lines of brokers with clocks in one zone."""

    __slots__ = ("_broker", "_clock", "_seconds")

    def __init__(self, broker: str | None = None, zone: tzinfo = UTC) -> None:
        """Create a reader; without a `broker`, rows take what the line names, else the address in `connection`."""
        self._broker = broker
        self._clock = Clock(zone)
        self._seconds = self._clock.seconds

    def row(self, line: bytes) -> Row:
        """Return the values of `FIELDS`. Raises `Unreadable`, and `Several` if the line holds more than one request."""
        node = None
        ms = MS.get(line[MILLISECONDS]) if line[USUAL_AT] == USUAL else None
        if ms is not None:
            # `[2026-11-21 09:02:00,655]`, as Kafka's own configuration writes it
            seconds = line[SECONDS]
            completed = (self._seconds.get(seconds) or self._clock.second(seconds)) + ms
            precision_ms = 1
            text = line[USUAL_START : line.rfind(b"}") + 1]
        else:
            prefix, json, agent_time, node = unwrapped(line, self._clock)
            text = json[: json.rfind(b"}") + 1]
            try:
                completed, precision_ms = self._clock.last_in(prefix)
            except Unreadable as error:
                # the agent's time stands in for one that is missing, not for one that cannot be read
                if agent_time is None or error.reason is not Reason.NO_TIME or has_time(prefix):
                    raise
                completed, precision_ms = agent_time
        try:
            entry = decoded(text)
        except Unreadable as error:
            text, entry = self._followed(line, text, error)
        try:
            if not FIRST_MS <= completed < LAST_MS:
                raise Unreadable(Reason.UNKNOWN_SHAPE, "the time is not in the years 2000 to 2199")
            return self._values(completed, precision_ms, node, entry, text)
        except UnknownVersion as error:
            raise Unreadable(Reason.UNKNOWN_VERSION, str(error)) from error
        except WRONG_SHAPE as error:
            missing = isinstance(error, KeyError)
            detail = f"there is no field {error}" if missing else str(error)
            raise Unreadable(Reason.UNKNOWN_SHAPE, detail) from error

    def _followed(self, line: bytes, text: bytes, error: Unreadable) -> tuple[bytes, LogLine[Any, Any]]:
        """
        Return the JSON in front of other text, and its fields.

        Raises `Several`, and `Unreadable` with a better reason than this one.
        """
        if MARK in text and len(several := requests_of(line)) > 1:
            raise Several(several) from error
        whole = object_of(text) if error.reason is Reason.NOT_JSON else text
        if whole == text:
            unwrapped(line, self._clock)  # raises a better reason, such as a release before 2.8
            raise error
        if MARK in text[len(whole) :]:
            raise Unreadable(Reason.WRAPPED, "several requests are in one field: write each on one line") from error
        return whole, decoded(whole)

    def _values(self, completed: int, precision_ms: int, node: str | None, line: LogLine[Any, Any], text: bytes) -> Row:
        """Return the row of a line: `completed` is its time, `node` the broker that it names, and `text` its JSON."""
        header = line.request_header
        key, version = header.request_api_key, header.request_api_version
        sent = line.send_time_ms
        decided = completed - line.response_queue_time_ms - sent
        content = content_of(line)
        if not content.waited:
            decided -= line.remote_time_ms
        connection = line.connection
        return (
            int(decided),
            completed,
            precision_ms,
            self._broker or node or broker_in(connection),
            line.listener,
            connection,
            header.correlation_id,
            key,
            version,
            user_of(line.principal),
            header.client_id,
            line.client_information.software_name if line.client_information else None,
            content.produce_bytes,
            content.fetch_bytes,
            content.traffic,
            line.request_queue_time_ms,
            line.local_time_ms,
            line.remote_time_ms,
            line.response_queue_time_ms,
            sent,
            None if content.topics is None else int(decided - line.remote_time_ms),
            content.topics,
            content.topic_ids,
            content.throttle_ms,
            line.throttle_time_ms,
            content.refused,
            line.is_forwarded,
            content.follower,
            content.layout or layout_of(key, version, deprecated=header.request_api_version_deprecated),
            sha256(b"%d%b" % (completed, text)).digest()[:IDENTITY],
            node,
            content.nodes,
        )


def broker_in(connection: str) -> str:
    """Return the broker's address in `connection`, without its port."""
    return connection.partition("-")[0].rpartition(":")[0]


def user_of(principal: str) -> str:
    """Return the name of a principal without its type, as quotas match it."""
    if principal.startswith("User:"):
        return principal[5:]
    kind, colon, name = principal.partition(":")
    return name if colon else kind


class Content(NamedTuple):
    """Columns that follow from request and response; for most APIs only the throttle."""

    throttle_ms: int | None
    produce_bytes: int | None = None
    fetch_bytes: int | None = None
    topics: list[TopicRow] | None = None
    refused: bool = False
    follower: bool = False
    waited: bool = True
    """Whether the broker may have decided only after it waited for other brokers (`remoteTimeMs`)."""
    traffic: Traffic | None = None
    topic_ids: list[dict[str, Any]] | None = None
    layout: str | None = None
    """Layout of the line if the content shows it."""
    nodes: int | None = None
    """Number of nodes in a response to Metadata."""


def content_of(line: LogLine[Any, Any]) -> Content:
    """Return the content of a `decoded` line. Raises `PipelineError`, and errors of a message of another shape."""
    content = _CONTENT_OF.get(line.request_header.request_api_key)
    return Content(_throttle(line.response)) if content is None else content(line)


def _throttle(response: AnyResponse | str) -> int | None:
    """Return the throttle time of a response; None without one, or if the client did not wait for a response."""
    return None if isinstance(response, str) else response.throttle_time_ms


def _produce(line: ProduceLine) -> Content:
    """Return the content of a Produce line; the size is unknown if the request was not logged."""
    header, request = line.request_header, line.request
    throttle_ms = _throttle(line.response)
    if isinstance(request, str):
        return Content(throttle_ms)
    size, traffic = produce_bytes(header.request_api_version, header.client_id, request)
    waited = request.acks == ALL_REPLICAS
    return Content(throttle_ms, size, None, None, False, False, waited, traffic)  # noqa: FBT003 - a row


def _fetch(line: FetchLine) -> Content:
    """Return the content of a Fetch line; the size is unknown if the response was not logged."""
    request, response = line.request, line.response
    follower = isinstance(request, FetchRequest) and request.follower
    if isinstance(response, str):
        return Content(None, follower=follower)
    size, traffic = fetch_bytes(line.request_header.request_api_version, response)
    layout = FIRST.name if response.of_2_8 else None
    throttle_ms = response.throttle_time_ms
    return Content(throttle_ms, None, size, None, False, follower, True, traffic, None, layout)  # noqa: FBT003 - a row


def _share_fetch(line: ShareFetchLine) -> Content:
    """Return the content of a ShareFetch line; the size is unknown if the response was not logged."""
    response = line.response
    if isinstance(response, str):
        return Content(None)
    size, traffic = share_fetch_bytes(line.request_header.request_api_version, response)
    return Content(response.throttle_time_ms, fetch_bytes=size, traffic=traffic)


def _describe(line: DescribeLine) -> Content:
    """Return the content of a Metadata or DescribeTopicPartitions line: names of topic ids, and number of nodes."""
    response = line.response
    if isinstance(response, str):
        return Content(None)
    ids = [
        {"topic": topic.name, "id": topic.topic_id}
        for topic in response.topics
        if topic.name and topic.topic_id and topic.topic_id != NO_ID
    ]
    return Content(response.throttle_time_ms, topic_ids=ids or None, nodes=len(response.brokers) or None)


def _topics(line: TopicsLine) -> Content:
    """Return the content of a line that changes topics; it has no topics if the request was not logged."""
    request, response = line.request, line.response
    topics_in = TOPICS_OF[line.request_header.request_api_key]
    topics = topics_in(request, response) if request else []
    ids = [{"topic": topic["name"], "id": topic["id"]} for topic in topics if topic["name"] and topic["id"]]
    return Content(
        response.get("throttleTimeMs") if response else None,
        topics=topics,
        topic_ids=ids or None,
        refused=any(topic["error"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED for topic in topics)
    )  # fmt: skip


_CONTENT_OF: Final[dict[int, Any]] = {
    int(ApiKey.PRODUCE): _produce,
    int(ApiKey.FETCH): _fetch,
    int(ApiKey.SHARE_FETCH): _share_fetch,
    **dict.fromkeys(DESCRIBES, _describe),
    **dict.fromkeys(TOPICS_OF, _topics),
}
