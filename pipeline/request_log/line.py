"""
One line of a request log as one row of `REQUESTS`.

The time in front of a line is log4j's `%d`, which prints local time without a zone, so that the zone has to be configured; where a pattern
prints the offset, the offset counts. A day makes a partition of a table, so times and durations that no broker writes are refused: one
line with a time of another age would damage a table for good.
"""

import re
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

from quotascope.metrics.protocol import ApiKey, ErrorCode

from ..errors import PipelineError, UnknownVersion
from ..releases import layout_of
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

Row: TypeAlias = tuple[Any, ...]
FIELDS: Final = (
    "timestamp", "completed", "broker", "listener", "connection", "correlation_id", "api_key", "api_version", "user", "client_id",
    "produce_bytes", "fetch_bytes", "traffic", "queue_time_ms", "thread_time_ms", "remote_time_ms", "response_queue_time_ms",
    "network_time_ms", "mutation_timestamp", "topics", "topic_ids", "throttle_ms", "broker_throttle_ms", "refused", "forwarded",
    "follower", "layout", "identity",
)  # fmt: skip
"""The columns that follow from the line alone, in the order of a row."""
IDENTITY: Final = 16
"""Bytes of an identity: of the hash of the completion and of the line's JSON, which holds connection, correlation id and times in µs."""
FIRST_MS: Final = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 1000
LAST_MS: Final = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * 1000
"""Times from `FIRST_MS` to before this are read."""
ALL_REPLICAS: Final = -1
"""The `acks` of a Produce request that is answered, and throttled, once its followers have it."""

_MARK: Final = b"Completed request:"
_USUAL: Final = b"] DEBUG Completed request:{"
_USUAL_AT: Final = slice(24, 24 + len(_USUAL))
_USUAL_START: Final = 24 + len(_USUAL) - 1
_SECONDS: Final = slice(1, 20)
_MILLISECONDS: Final = slice(21, 24)
_STAMP: Final = re.compile(
    rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?:\s?([+-]\d\d:?\d\d(?!\d)|(?:Z|[+-]\d\d)(?![\w.])))?"
)
_MOST_SECONDS: Final = 10_000
"""Parsed seconds that are cached."""
_WRONG_SHAPE: Final = (
    PipelineError, AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError,
)  # fmt: skip


class LineReader:
    """Reads lines of brokers with clocks in one zone."""

    __slots__ = ("_broker", "_seconds", "_zone")

    def __init__(self, broker: str | None = None, zone: tzinfo = UTC) -> None:
        """`broker` None takes the address in `connection`."""
        self._broker = broker
        self._zone = zone
        self._seconds: dict[bytes, int] = {}
        """Ms since 1970 of seconds in the zone."""

    def row(self, line: bytes) -> Row:
        """The values of `FIELDS`. Raises `Unreadable`."""
        completed, start = self._completion(line)
        text = line[start : line.rfind(b"}") + 1]
        found = decoded(text)
        try:
            if not FIRST_MS <= completed < LAST_MS:
                raise Unreadable(Reason.UNKNOWN_SHAPE, "the time is not in the years 2000 to 2199")
            return self._values(completed, found, text)
        except UnknownVersion as error:
            raise Unreadable(Reason.UNKNOWN_VERSION, str(error)) from error
        except _WRONG_SHAPE as error:
            missing = isinstance(error, KeyError)
            detail = f"there is no field {error}" if missing else str(error)
            raise Unreadable(Reason.UNKNOWN_SHAPE, detail) from error

    def _completion(self, line: bytes) -> tuple[int, int]:
        """When the line was logged (ms since 1970), and where its JSON begins. Raises `Unreadable`."""
        if line[_USUAL_AT] == _USUAL:
            # `[2026-11-21 09:02:00,655]`, as Kafka's own configuration writes it
            seconds = line[_SECONDS]
            known = self._seconds.get(seconds) or self._second(seconds)
            try:
                return known + int(line[_MILLISECONDS]), _USUAL_START
            except ValueError:
                return self._time_in(line[:_USUAL_START]), _USUAL_START
        mark = line.find(_MARK)
        if not line.strip():
            raise Unreadable(Reason.EMPTY, "nothing but white space")
        if mark < 0:
            raise Unreadable(Reason.NOT_A_REQUEST, "does not say `Completed request:`")
        json = line[mark + len(_MARK) :].lstrip(b" ")
        if json.startswith(b"RequestHeader("):
            raise Unreadable(Reason.OLD_LAYOUT, "text as written by brokers before 2.8, not JSON")
        if not json:
            raise Unreadable(Reason.TRUNCATED, "ends before its JSON begins")
        if not json.startswith(b"{"):
            raise Unreadable(Reason.NOT_JSON, "no `{` after `Completed request:`")
        return self._time_in(line[:mark]), len(line) - len(json)

    def _time_in(self, prefix: bytes) -> int:
        """Ms since 1970 of the first time in a text under any pattern. Raises `Unreadable`."""
        found = _STAMP.search(prefix)
        if found is None:
            raise Unreadable(Reason.NO_TIME, "no date and time in front of the request")
        day, clock, fraction, offset = found.groups()
        second = day + b" " + clock
        milliseconds = int((fraction or b"0").ljust(3, b"0")[:3])
        if offset is None:
            return self._second(second) + milliseconds
        return _since_1970(second + offset, None) + milliseconds

    def _second(self, text: bytes) -> int:
        known = self._seconds.get(text)
        if known is None:
            if len(self._seconds) >= _MOST_SECONDS:
                self._seconds.clear()
            self._seconds[text] = known = _since_1970(text, self._zone)
        return known

    def _values(self, completed: int, line: LogLine[Any, Any], text: bytes) -> Row:
        header = line.request_header
        key, version = header.request_api_key, header.request_api_version
        sent = line.send_time_ms
        decided = completed - line.response_queue_time_ms - sent
        content = content_of(line)
        if not content.waited:
            decided -= line.remote_time_ms
        connection = line.connection
        principal = line.principal
        if principal.startswith("User:"):  # quotas match the name without its type
            user = principal[5:]
        else:
            kind, colon, name = principal.partition(":")
            user = name if colon else kind
        return (
            int(decided),
            completed,
            self._broker or connection.partition("-")[0].rpartition(":")[0],
            line.listener,
            connection,
            header.correlation_id,
            key,
            version,
            user,
            header.client_id,
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
            layout_of(key, version, deprecated=header.request_api_version_deprecated),
            sha256(b"%d%b" % (completed, text)).digest()[:IDENTITY],
        )


class Content(NamedTuple):
    """Columns that follow from request and response; of most APIs it is the throttle only."""

    throttle_ms: int | None
    produce_bytes: int | None = None
    fetch_bytes: int | None = None
    topics: list[TopicRow] | None = None
    refused: bool = False
    follower: bool = False
    waited: bool = True
    """Whether the broker may have decided only after it waited for others (`remoteTimeMs`)."""
    traffic: Traffic | None = None
    topic_ids: list[dict[str, Any]] | None = None


def content_of(line: LogLine[Any, Any]) -> Content:
    """The content of a `decoded` line. Raises `PipelineError` and what using a message of another shape raises."""
    read = _CONTENT_OF.get(line.request_header.request_api_key)
    return Content(_throttle(line.response)) if read is None else read(line)


def _throttle(response: AnyResponse | str) -> int | None:
    return None if isinstance(response, str) else response.throttle_time_ms


def _produce(line: ProduceLine) -> Content:
    header, request = line.request_header, line.request
    throttle_ms = _throttle(line.response)
    if isinstance(request, str):
        return Content(throttle_ms)
    size, traffic = produce_bytes(header.request_api_version, header.client_id, request)
    waited = request.acks == ALL_REPLICAS
    return Content(throttle_ms, size, None, None, False, False, waited, traffic)  # noqa: FBT003 - a row


def _fetch(line: FetchLine) -> Content:
    request, response = line.request, line.response
    follower = isinstance(request, FetchRequest) and request.follower
    if isinstance(response, str):
        return Content(None, follower=follower)
    size, traffic = fetch_bytes(line.request_header.request_api_version, response)
    return Content(response.throttle_time_ms, None, size, None, False, follower, True, traffic)  # noqa: FBT003 - a row


def _share_fetch(line: ShareFetchLine) -> Content:
    response = line.response
    if isinstance(response, str):
        return Content(None)
    size, traffic = share_fetch_bytes(line.request_header.request_api_version, response)
    return Content(response.throttle_time_ms, fetch_bytes=size, traffic=traffic)


def _describe(line: DescribeLine) -> Content:
    response = line.response
    if isinstance(response, str):
        return Content(None)
    ids = [
        {"topic": topic.name, "id": topic.topic_id}
        for topic in response.topics
        if topic.name and topic.topic_id and topic.topic_id != NO_ID
    ]
    return Content(response.throttle_time_ms, topic_ids=ids or None)


def _topics(line: TopicsLine) -> Content:
    request, response = line.request, line.response
    read = TOPICS_OF[line.request_header.request_api_key]
    topics = read(request, response) if request else []
    return Content(
        response.get("throttleTimeMs") if response else None,
        topics=topics,
        topic_ids=[{"topic": topic["name"], "id": topic["id"]} for topic in topics if topic["name"] and topic["id"]] or None,
        refused=any(topic["error"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED for topic in topics)
    )  # fmt: skip


_CONTENT_OF: Final[dict[int, Any]] = {
    int(ApiKey.PRODUCE): _produce,
    int(ApiKey.FETCH): _fetch,
    int(ApiKey.SHARE_FETCH): _share_fetch,
    **dict.fromkeys(DESCRIBES, _describe),
    **dict.fromkeys(TOPICS_OF, _topics),
}


def _since_1970(text: bytes, zone: tzinfo | None) -> int:
    """Ms since 1970 of a time, in a zone where it has no offset. Raises `Unreadable`."""
    try:
        time = datetime.fromisoformat(text.decode())
        zoned = time if zone is None else time.replace(tzinfo=zone)
        first_s, second_s = zoned.timestamp(), zoned.replace(fold=1).timestamp()
    except (ValueError, OverflowError) as error:
        raise Unreadable(Reason.NO_TIME, f"no time of a calendar: {text!r}") from error
    if first_s < second_s:  # taken for the first one, an hour would have the requests of two
        how = "read the lines of each by themselves with a zone that has no summer time, such as Etc/GMT-1"
        raise Unreadable(Reason.AMBIGUOUS_TIME, f"the clocks of {zone} show it twice: {how}")
    return int(first_s) * 1000
