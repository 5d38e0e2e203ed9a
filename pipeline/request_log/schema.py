"""
The two tables that a request log becomes: `REQUESTS`, one row a request, and `QUARANTINE`, one row a line that could not be read.

Times are int64 milliseconds since 1970 in UTC, not Arrow timestamps: Spark knows microseconds only. Names are untrusted: they are values
here, and never become part of a path or a partition. The metadata of a column has its `description`. A null
does not apply to the request, or cannot be known: as in rows of an earlier release, for the columns that it did not have.
"""

from enum import StrEnum
from functools import partial
from typing import Final

import pyarrow as pa

from ..columns import column

_column: Final = partial(column, null=True)


class Reason(StrEnum):
    """Why a line went to the quarantine, in few kinds, so that lines can be counted by them."""

    EMPTY = "empty"
    """Nothing but white space."""
    NOT_A_REQUEST = "not a request"
    """Another logger's line, or the rest of one that spans several."""
    OLD_LAYOUT = "layout before 2.8"
    """The text of brokers before KIP-673, which is no JSON."""
    NO_TIME = "no time"
    """There is no time in front of the request."""
    AMBIGUOUS_TIME = "ambiguous time"
    """The clocks of the zone show it twice, as summer time ends."""
    TRUNCATED = "truncated"
    """The line ends in the middle, as the last one of a file may."""
    NOT_JSON = "not JSON"
    """What follows is broken in another way."""
    UNKNOWN_SHAPE = "unknown shape"
    """A field is missing, or holds what it never should."""
    UNKNOWN_VERSION = "unknown version"
    """A version of Produce or Fetch that this release does not know, so that its size is unknown."""
    TOO_LONG = "too long"
    """More bytes than a line may have."""


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
    _column("broker", pa.string(), "the broker's name, else its address"),
    _column("listener", pa.string(), "listener of the broker"),
    _column("connection", pa.string(), "addresses and ports of broker and client, and two numbers of the broker"),
    _column("correlation_id", pa.int32(), "the client's number of the request"),
    _column("api_key", pa.int16(), "0 Produce, 1 Fetch, 19 CreateTopics, …"),
    _column("api_version", pa.int16(), "version of the request"),
    _column("user", pa.string(), "the principal's name, as quotas match it"),
    _column("client_id", pa.string(), "the client-id as sent"),
    _column("produce_bytes", pa.int64(), "what the producer quota charges", formerly="request_bytes"),
    _column("fetch_bytes", pa.int64(), "what the consumer quota charges", formerly="response_bytes"),
    _column("traffic", pa.list_(TRAFFIC), "topics of a Produce, Fetch or ShareFetch: name or id, as logged, and bytes of records; null when unknown"),
    _column("queue_time_ms", pa.float64(), "ms in the queue for a request handler thread"),
    _column("thread_time_ms", pa.float64(), "ms in a request handler thread"),
    _column("remote_time_ms", pa.float64(), "ms of waiting for other brokers, for records, or for a timeout"),
    _column("response_queue_time_ms", pa.float64(), "ms in the queue for a network thread"),
    _column("network_time_ms", pa.float64(), "ms in a network thread"),
    _column("partitions_created", pa.int32(), "partitions of CreateTopics, refused ones included"),
    _column("partitions_added", pa.int32(), "the same for CreatePartitions"),
    _column("partitions_deleted", pa.int32(), "the same for DeleteTopics"),
    _column("mutations_charged", pa.int32(), "partitions charged to the controller mutation quota", formerly="mutations"),
    _column("mutations_known", pa.bool_(), "false when a request mutates an unknown number of partitions"),
    _column("mutation_timestamp", pa.int64(), "ms UTC: about when the controller charged the mutations"),
    _column("topics", pa.list_(TOPIC), "topics that a request mutates: name, id, partitions, error code"),
    _column("topic_ids", pa.list_(TOPIC_ID), "topics of which the response has both name and id"),
    _column("throttle_ms", pa.int32(), "ms of throttle time in the response"),
    _column("broker_throttle_ms", pa.int32(), "ms for which the broker muted the connection"),
    _column("refused", pa.bool_(), "whether the response has error 89 (THROTTLING_QUOTA_EXCEEDED)", formerly="quota_violated"),
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
    _column("identity", pa.binary(), "16 bytes, the same whenever the same text is read again"),
])  # fmt: skip

PARSED_REQUESTS: Final = REQUESTS.append(pa.field("level", pa.int32()))
"""With the newest `metadata.version` that the answer names (`releases.level_of`); null for nearly all."""
PARSED_QUARANTINE: Final = QUARANTINE.append(pa.field("lines", pa.int64()))
"""With how many lines a row stands for: a short text that comes again has one row."""
