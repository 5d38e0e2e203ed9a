"""
The two tables that a request log becomes: `REQUESTS`, one row a request, and `QUARANTINE`, one row a line that could not be read.

Times are int64 milliseconds since 1970 in UTC, not Arrow timestamps: Spark knows microseconds only. Names are untrusted: they are values
here, and never become part of a path or a partition. The metadata of a column has its `description`.
"""

from enum import StrEnum
from typing import Any

import pyarrow as pa


def _column(name: str, kind: pa.DataType, description: str) -> "pa.Field[Any]":
    return pa.field(name, kind, metadata={"description": description})


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

REQUESTS = pa.schema(
    [
        _column(
            "timestamp",
            pa.int64(),
            "ms UTC: when the broker decided on the throttle: the completion less the response's time in queue and on the wire, and less the time after the handler where it did not wait for others (Produce with acks 0 or 1)",
        ),
        _column("completed", pa.int64(), "ms UTC: when the line was logged"),
        _column(
            "broker",
            pa.string(),
            "the broker's name: as given, else from the file's path, else its address in `connection`",
        ),
        _column("listener", pa.string(), "the listener that the request came to"),
        _column(
            "connection",
            pa.string(),
            "the broker's and the client's address and port, then two numbers of the broker",
        ),
        _column("correlation_id", pa.int32(), "the client's number of the request"),
        _column("api_key", pa.int16(), "0 Produce, 1 Fetch, 19 CreateTopics, …"),
        _column("api_version", pa.int16(), "version of the request"),
        _column("user", pa.string(), "name of the principal, as quotas match it"),
        _column("client_id", pa.string(), "as sent; null when the client sent none"),
        _column(
            "request_bytes",
            pa.int64(),
            "size that the producer quota charges, of Produce only; null when it does not apply or cannot be known",
        ),
        _column(
            "response_bytes",
            pa.int64(),
            "size that the consumer quota charges, of Fetch only; null when it does not apply or cannot be known",
        ),
        _column("thread_time_ms", pa.float64(), "ms in a request handler thread"),
        _column(
            "network_time_ms",
            pa.float64(),
            "ms in a network thread, which the request quota charges at completion",
        ),
        _column(
            "partitions_created",
            pa.int32(),
            "partitions that CreateTopics asked the mutation quota for, refused ones included; null when it does not apply or cannot be known",
        ),
        _column(
            "partitions_added",
            pa.int32(),
            "partitions that CreatePartitions asked the mutation quota for; null as above",
        ),
        _column(
            "partitions_deleted",
            pa.int32(),
            "partitions that DeleteTopics asked the mutation quota for; null as above",
        ),
        _column(
            "mutations",
            pa.int32(),
            "partitions that the mutation quota was charged for; null when there are none or they cannot be known",
        ),
        _column(
            "mutations_known",
            pa.bool_(),
            "false when the request mutates topics, but not how many partitions; true otherwise",
        ),
        _column(
            "mutation_timestamp",
            pa.int64(),
            "ms UTC: when the controller charged the mutations, about; null for other requests",
        ),
        _column(
            "topics",
            pa.list_(TOPIC),
            "what CreateTopics, CreatePartitions and DeleteTopics name: topic, its id, partitions in the request, and the error code in the response",
        ),
        _column(
            "throttle_ms",
            pa.int32(),
            "ms of throttle in the answer to the client; null where the answer has no such field",
        ),
        _column(
            "broker_throttle_ms",
            pa.int32(),
            "ms for which this broker held the connection back, by its own quotas or the controller's",
        ),
        _column(
            "quota_violated",
            pa.bool_(),
            "whether the answer refuses something with THROTTLING_QUOTA_EXCEEDED (89)",
        ),
        _column(
            "forwarded",
            pa.bool_(),
            "whether this is the controller's line of a request that a broker forwarded",
        ),
        _column(
            "follower",
            pa.bool_(),
            "whether another broker fetched, which no quota sees",
        ),
        _column("layout", pa.string(), "the layout of lines that it was read by"),
        _column(
            "identity",
            pa.binary(),
            "16 bytes, the same whenever the same line is read again",
        ),
        _column("file", pa.string(), "the file, or the topic and partition"),
        _column(
            "line",
            pa.int64(),
            "number of the line from 1, or the offset; null where a file was read from its middle",
        ),
    ]
)

QUARANTINE = pa.schema(
    [
        _column("reason", pa.string(), "why, one of a few words"),
        _column("detail", pa.string(), "what exactly, for a person"),
        _column(
            "text",
            pa.binary(),
            "the line's first bytes as they were; it may hold anything",
        ),
        _column("length", pa.int64(), "bytes of the whole line"),
        _column("file", pa.string(), "the file, or the topic and partition"),
        _column("line", pa.int64(), "as in the requests"),
        _column(
            "identity",
            pa.binary(),
            "16 bytes, the same whenever the same text is read again",
        ),
    ]
)
