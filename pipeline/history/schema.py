"""
The columns of usage history and of its sums by second.

History has one row per request that a quota sees. Its files are hash buckets of the user and days of the decision; names of users and
clients are never part of a path.
"""

from enum import StrEnum
from typing import Final

import pyarrow as pa

from ..columns import column

UNKNOWN_MS: Final = -1
"""Of `throttle_ms` in history: the answer has no such field, or there was none."""
PLACE: Final = ("file", "position")
"""Where a request stood in its log: requests of the same `timestamp` are in this order."""

HISTORY: Final = pa.schema([
    column("user", pa.string(), "Principal's name as Kafka knows it, decoded; ANONYMOUS without authentication."),
    column("client_id", pa.string(), "Client id of the request's header; empty when it has none, as quotas take it."),
    column("broker", pa.string(), "Node that decided; each measures its clients on its own."),
    column("timestamp", pa.int64(), "When the broker decided on a throttle: ms since 1970, UTC."),
    column("completed", pa.int64(), "When the response had left and the network thread's time was charged: ms since 1970, UTC."),
    column("connection", pa.int64(), "Hash of the connection, which a throttle mutes."),
    column("api_key", pa.int16(), "Kafka's number of the API: 0 Produce, 1 Fetch, 19 CreateTopics."),
    column("api_version", pa.int16(), "Version of the request; decides between strict and permissive mutation quotas."),
    column("produce_bytes", pa.int64(), "What the Produce quota charges, bytes; null for any other request or an unknown size.", null=True),
    column("fetch_bytes", pa.int64(), "What the Fetch quota charges, bytes; null for followers, other requests, or an unknown size.", null=True),
    column("thread_time_ms", pa.float64(), "Handler thread's time that the Request quota charges at the decision, ms; null when exempt.", null=True, formerly="request_ms"),
    column("network_time_ms", pa.float64(), "Network thread's time that is charged, unchecked, at completion, ms; null when exempt.", null=True, formerly="network_ms"),
    column("mutations", pa.int32(), "Partitions that the request asked the ControllerMutation quota for, refused ones included; null for other requests or an unknown number.", null=True),
    column("mutations_charged", pa.int32(), "Partitions that this quota was charged for as logged, refused ones left out; null as above.", null=True),
    column("mutation_timestamp", pa.int64(), "When the controller charged the mutations, about: ms since 1970, UTC; null without mutations.", null=True),
    column("refused", pa.bool_(), "Whether the answer refuses something with THROTTLING_QUOTA_EXCEEDED (89), which charges nothing."),
    column("throttle_ms", pa.int32(), "Throttle time in the response, ms; -1 when it is unknown, as the answer has no such field (0 in histories that an earlier release made)."),
    column("file", pa.string(), "Of the log, or its topic and partition; null in rows that an earlier release made.", null=True),
    column("position", pa.int64(), "In that file: grows from request to request; null as above.", null=True),
])  # fmt: skip
"""One row per request that a quota sees."""

CLIENT: Final = ("user", "client_id", "broker")
"""The client and the node of a request, in all tables of a history."""
_CLIENT_COLUMNS: Final = [column(name, pa.string(), "As in history.") for name in CLIENT]

ROLLUP: Final = pa.schema([
    *_CLIENT_COLUMNS,
    column("quota_type", pa.string(), "produce, fetch, request or controller_mutation."),
    column("start", pa.int64(), "Begin of the second: ms since 1970, UTC."),
    column("requests", pa.int64(), "Requests that charged this quota, at the time of the decision."),
    column("amount", pa.int64(), "What they charged: bytes, us of thread time (handler and network), or partitions."),
    column("throttled", pa.int64(), "How many of them were throttled or refused, for any quota."),
    column("throttle_ms", pa.int64(), "Their throttle time, ms; a request counts under each quota that it charged."),
])  # fmt: skip
"""
Sums over a second.

All are integers, so that the order of addition does not matter. A table may hold several rows of one key (late requests):
they add up.
"""

EPISODES: Final = pa.schema([
    *_CLIENT_COLUMNS,
    column("quota_type", pa.string(), "Beside the request quota, which of the two throttled not being in the log: produce, fetch or controller_mutation, by the API; request for other APIs."),
    column("began", pa.int64(), "The first decision to throttle: ms since 1970, UTC."),
    column("ended", pa.int64(), "The latest end of a throttle time: ms since 1970, UTC."),
    column("throttled", pa.int64(), "Requests that were throttled or refused."),
    column("throttle_ms", pa.int64(), "Their throttle time, ms."),
    column("longest_ms", pa.int64(), "The longest throttle time, ms."),
])  # fmt: skip
"""Fragments of throttle episodes: those of one key that are no more than 60 s apart are one episode (`episodes.merged`)."""


class Kind(StrEnum):
    """What a row of `TOPICS` is about."""

    RECORDS = "records"
    """Bytes of records of a topic; a request counts under each of its topics."""
    PROTOCOL = "protocol"
    """What the quota charges of the same requests beside their records: headers, names, empty responses."""
    UNKNOWN_TOPIC = "unknown topic"
    """Bytes of requests of which the topics are unknown, as in logs that an earlier release read."""
    UNKNOWN_SIZE = "unknown size"
    """Requests of which the bytes are unknown, such as a throttled Fetch."""
    NAME = "name"
    """The name of a topic's id, once a day, of no client."""


TOPICS: Final = pa.schema([
    *_CLIENT_COLUMNS,
    column("quota_type", pa.string(), "produce or fetch; empty for a name."),
    column("start", pa.int64(), "Begin of the minute, of the day for a name: ms since 1970, UTC."),
    column("kind", pa.string(), "records, protocol, unknown topic, unknown size or name."),
    column("topic", pa.string(), "Name of the topic, where the request has it.", null=True),
    column("topic_id", pa.string(), "Id of the topic, where the request has it.", null=True),
    column("requests", pa.int64(), "Requests; those of protocol, unknown topic and unknown size are all, each once."),
    column("bytes", pa.int64(), "Bytes; null when unknown, and for a name.", null=True),
])  # fmt: skip
"""
Bytes by topic over a minute.

A table may hold several rows of one key. Records, protocol and unknown topic add up to what ROLLUP has of a client, broker and quota type.
"""
