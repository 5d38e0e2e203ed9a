"""
The columns of usage history and of its sums by second.

History has one row per request that a quota sees. Its files are hash shards of the user and days of the decision; names
of users and clients are never part of a path.
"""

from typing import Final

import pyarrow as pa

from quotascope.metrics.kafka.entities import TYPE_LABELS, QuotaType

from ..columns import CLIENT_COLUMNS, column

UNKNOWN_MS: Final = -1
"""Value of `throttle_ms` in history when the response has no such field, or there was no response."""
PLACE: Final = ("file", "position")
"""Columns with the place of a request in its log: requests of the same `timestamp` are in this order."""

HISTORY: Final = pa.schema([
    column("user", pa.string(), "Principal's name as Kafka knows it, decoded; ANONYMOUS without authentication."),
    column("client_id", pa.string(), "Client id of the request's header; empty when it has none, as quotas take it."),
    column("broker", pa.string(), "Node that decided; each measures its clients on its own."),
    column("timestamp", pa.int64(), "When the broker decided on a throttle: ms since 1970, UTC."),
    column("completed", pa.int64(), (
        "When the response had left and the network thread's time was charged: ms since 1970, UTC.")),
    column("connection", pa.int64(), "Hash of the connection, which a throttle mutes."),
    column("api_key", pa.int16(), "Kafka's number of the API: 0 Produce, 1 Fetch, 19 CreateTopics."),
    column("api_version", pa.int16(), "Version of the request; decides between strict and permissive mutation quotas."),
    column("produce_bytes", pa.int64(), (
        "What the Produce quota charges, bytes; null for any other request or an unknown size."), null=True),
    column("fetch_bytes", pa.int64(), (
        "What the Fetch quota charges, bytes; null for followers, other requests, or an unknown size."), null=True),
    column("thread_time_ms", pa.float64(), (
        "Handler thread's time that the Request quota charges at the decision, ms; null when exempt."), null=True),
    column("network_time_ms", pa.float64(), (
        "Network thread's time that is charged, unchecked, at completion, ms; null when exempt."), null=True),
    column("mutations", pa.int32(), (
        "Partitions that the request asked the ControllerMutation quota for, refused ones included; null for other "
        "requests or an unknown number."), null=True),
    column("mutations_charged", pa.int32(), (
        "Partitions that this quota was charged for as logged, refused ones left out; null as above."), null=True),
    column("mutation_timestamp", pa.int64(), (
        "When the controller charged the mutations, about: ms since 1970, UTC; null without mutations."), null=True),
    column("refused", pa.bool_(), (
        "Whether the answer refuses something with THROTTLING_QUOTA_EXCEEDED (89), which charges nothing.")),
    column("throttle_ms", pa.int32(), (
        "Throttle time in the response, ms; -1 when it is unknown, as the answer has no such field.")),
    column("file", pa.string(), "Of the log, or its topic and partition; null in rows of other programs.", null=True),
    column("position", pa.int64(), "In that file: grows from request to request; null as above.", null=True),
])  # fmt: skip
"""One row per request that a quota sees."""

BYTES_COLUMNS: Final = {kind: f"{kind.label}_bytes" for kind in QuotaType if kind.of_bytes}
"""Columns of `HISTORY` with the bytes that a quota type charges."""

ROLLUP: Final = pa.schema([
    *CLIENT_COLUMNS,
    column("quota_type", pa.string(), f"{TYPE_LABELS}."),
    column("start", pa.int64(), "Begin of the second: ms since 1970, UTC."),
    column("requests", pa.int64(), "Requests that charged this quota, at the time of the decision."),
    column("amount", pa.int64(), "What they charged: bytes, us of thread time (handler and network), or partitions."),
    column("throttled", pa.int64(), "How many of them were throttled or refused, for any quota."),
    column("throttle_ms", pa.int64(), "Their throttle time, ms; a request counts under each quota that it charged."),
])  # fmt: skip
"""
Sums over a second.

All are integers, so that the order of addition does not matter. A table may hold several rows of one key (late
requests): they add up.
"""
