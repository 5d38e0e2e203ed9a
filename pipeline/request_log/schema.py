"""
The two tables that a request log becomes.

`REQUESTS` has one row a request, and `QUARANTINE` one row a line that could not be read.

Times are int64 milliseconds since 1970 in UTC, not Arrow timestamps: Spark knows microseconds only. Names are
untrusted: they are values here, and never become part of a path or a partition. The metadata of a column has its
`description`. A null does not apply to the request, or cannot be known.
"""

from enum import StrEnum
from functools import partial
from typing import Final

import pyarrow as pa

from ..columns import column

_column: Final = partial(column, null=True)


class NamedBy(StrEnum):
    """Source of the name of a request's broker."""

    OPTION = "option"
    """The option for the broker's name, or the pattern for the file's path."""
    LINE = "line"
    """The line: the node of its thread, or its pod."""
    ADDRESS = "address"
    """No name: the address of its connection stands for it."""


class Reason(StrEnum):
    """Reason of a line in the quarantine; there are few, so that lines can be counted by them."""

    EMPTY = "empty"
    """Only white space."""
    NOT_A_REQUEST = "not a request"
    """Another logger's line, or a line of a request that spans several."""
    OLD_LAYOUT = "layout before 2.8"
    """The text of brokers before KIP-673, which is no JSON."""
    NO_TIME = "no time"
    """There is no time in front of the request."""
    AMBIGUOUS_TIME = "ambiguous time"
    """The clocks of the zone show the time twice, as summer time ends."""
    TRUNCATED = "truncated"
    """The line ends in the middle, as the last one of a file may."""
    NOT_JSON = "not JSON"
    """JSON that is broken in another way."""
    UNKNOWN_SHAPE = "unknown shape"
    """A field is missing, or holds what it never should."""
    UNKNOWN_VERSION = "unknown version"
    """A version of Produce or Fetch that this release does not know, so that its size is unknown."""
    WRAPPED = "wrapped"
    """A log agent put the request into JSON, and not exactly one field holds it."""
    ENCODING = "other encoding"
    """The text is not in UTF-8."""
    SEVERAL_LINES = "several lines"
    """JSON that was printed over several lines."""
    TOO_LONG = "too long"
    """More bytes than a line may have."""


NOT_LOST: Final = frozenset((Reason.EMPTY, Reason.NOT_A_REQUEST))
"""Reasons of lines that are no requests; lines of all others are requests that figures lack."""


class Unreadable(Exception):
    """A line that is not a request and becomes a row of `QUARANTINE`; private to this package."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


TOPIC = pa.struct(
    [
        ("name", pa.string()),
        ("id", pa.string()),
        ("partitions", pa.int32()),
        ("error", pa.int16()),
        ("validate_only", pa.bool_()),
    ]
)

TRAFFIC = pa.struct([("topic", pa.string()), ("id", pa.string()), ("bytes", pa.int64())])

TOPIC_ID = pa.struct([("topic", pa.string()), ("id", pa.string())])

REQUESTS = pa.schema([
    _column("timestamp", pa.int64(), "ms UTC: when the broker decided on the throttle"),
    _column("completed", pa.int64(), "ms UTC: when the line was logged"),
    _column("time_precision_ms", pa.int16(), "ms by which the time was rounded in the log: 1, 10, 100 or 1,000"),
    _column("broker", pa.string(), "the broker's name, else its address"),
    _column("listener", pa.string(), "listener of the broker"),
    _column("connection", pa.string(), "addresses and ports of broker and client, and two numbers of the broker"),
    _column("correlation_id", pa.int32(), "the client's number of the request"),
    _column("api_key", pa.int16(), "0 Produce, 1 Fetch, 19 CreateTopics, …"),
    _column("api_version", pa.int16(), "version of the request"),
    _column("user", pa.string(), "the principal's name, as quotas match it"),
    _column("client_id", pa.string(), "the client-id as sent"),
    _column("software", pa.string(), "the client's library, as it reports itself; `unknown` until it has"),
    _column("produce_bytes", pa.int64(), "what the producer quota charges"),
    _column("fetch_bytes", pa.int64(), "what the consumer quota charges"),
    _column("traffic", pa.list_(TRAFFIC), (
        "topics of a Produce, Fetch or ShareFetch: name or id, as logged, and bytes of records; null when unknown")),
    _column("queue_time_ms", pa.float64(), "ms in the queue for a request handler thread"),
    _column("thread_time_ms", pa.float64(), "ms in a request handler thread"),
    _column("remote_time_ms", pa.float64(), "ms of waiting for other brokers, for records, or for a timeout"),
    _column("response_queue_time_ms", pa.float64(), "ms in the queue for a network thread"),
    _column("network_time_ms", pa.float64(), "ms in a network thread"),
    _column("partitions_created", pa.int32(), "partitions of CreateTopics, refused ones included"),
    _column("partitions_added", pa.int32(), "the same for CreatePartitions"),
    _column("partitions_deleted", pa.int32(), "the same for DeleteTopics"),
    _column("mutations_charged", pa.int32(), "partitions charged to the controller mutation quota"),
    _column("mutations_known", pa.bool_(), "false when a request mutates an unknown number of partitions"),
    _column("mutation_timestamp", pa.int64(), "ms UTC: about when the controller charged the mutations"),
    _column("topics", pa.list_(TOPIC), "topics that a request mutates: name, id, partitions, error code"),
    _column("topic_ids", pa.list_(TOPIC_ID), "topics of which the response has both name and id"),
    _column("throttle_ms", pa.int32(), "ms of throttle time in the response"),
    _column("broker_throttle_ms", pa.int32(), "ms for which the broker muted the connection"),
    _column("refused", pa.bool_(), "whether the response has error 89 (THROTTLING_QUOTA_EXCEEDED)"),
    _column("forwarded", pa.bool_(), "whether this is the controller's line of a forwarded request"),
    _column("follower", pa.bool_(), "whether another broker fetched, which no client quota counts"),
    _column("layout", pa.string(), "layout of the line"),
    _column("identity", pa.binary(), "16 bytes, equal when the same line is read again"),
    _column("file", pa.string(), "the file, or the topic and partition"),
    _column("line", pa.int64(), "number of the line from 1, or the offset"),
    _column("position", pa.int64(), "order of the lines of a `file`, known even if `line` is not"),
])  # fmt: skip

QUARANTINE = pa.schema([
    _column("reason", pa.string(), "why, one of a few words"),
    _column("detail", pa.string(), "what exactly, for a person"),
    _column("text", pa.binary(), "the line's first bytes as they were; it may hold anything"),
    _column("length", pa.int64(), "bytes of the whole line"),
    _column("file", pa.string(), "the file, or the topic and partition"),
    _column("line", pa.int64(), "as in the requests"),
    _column("broker", pa.string(), "the broker's name, if the option or the line names it"),
    _column("api_key", pa.int16(), "as in the requests, if the line has it"),
    _column("user", pa.string(), "as in the requests, if the line has it"),
    _column("client_id", pa.string(), "as in the requests, if the line has it"),
    _column("lines", pa.int64(), "lines of this text that were read at once"),
    _column("identity", pa.binary(), "16 bytes, the same whenever the same text is read again"),
])  # fmt: skip

PARSED_REQUESTS: Final = (
    REQUESTS.append(pa.field("node", pa.string()))
    .append(pa.field("named_by", pa.string()))
    .append(pa.field("level", pa.int32()))
    .append(pa.field("nodes", pa.int32()))
)
"""
With more that only ingest uses.

`node` is the broker that the line names (null: none), `named_by` a value of `NamedBy`, `level` the release that the
answer shows (`releases.level_of`), `nodes` the number of nodes that the answer to Metadata names; these are null for
nearly all.
"""
PARSED_QUARANTINE: Final = QUARANTINE
