"""
Number of partitions that a request mutates, which other lines of the log decide.

The controller charges topics without an error (0); requested are also those that it refused for the quota (89). In
ZooKeeper mode a request that only validates is not charged and requests nothing. A request that failed otherwise never
came to the quota (`ReplicationControlManager`, where `applyPartitionChangeQuota` comes after all checks).

A request that a broker forwards to the controller has two lines: the broker logs the client's request, the controller
the forwarded one (`isForwarded`), under the same header. Both finish within milliseconds. What a broker forwards on its
own account (topics that Metadata creates) has no line of a client.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.protocol import ApiKey, ErrorCode

LEDGER_COLUMNS: Final = (
    "completed", "api_key", "correlation_id", "user", "client_id", "mutation_timestamp", "topics", "forwarded",
    "identity",
)  # fmt: skip
"""Columns that a ledger needs of earlier requests."""
NEAR_MS: Final = 5_000
"""
Greatest difference of clocks between lines of one request.

A client that counts from 1 again sends its next one later.
"""
MOST: Final = 100_000
"""
Number of lines that one side holds, at some 2 kB each: the latest ones.

A broker forwards a few a second at most, and a stream gets both lines at once.
"""

Row: TypeAlias = dict[str, Any]
_Key: TypeAlias = tuple[Any, ...]
_ALWAYS: Final = -(1 << 62)
"""Time before all requests."""
_PAIR: Final = "pair"
"""Key of a row for the identity of the other line about the same request."""
_COLUMN_OF: Final = {
    ApiKey.CREATE_TOPICS: "partitions_created",
    ApiKey.DELETE_TOPICS: "partitions_deleted",
    ApiKey.CREATE_PARTITIONS: "partitions_added",
}
_OF_ZOOKEEPER: Final = (
    int(ApiKey.LEADER_AND_ISR), int(ApiKey.STOP_REPLICA), int(ApiKey.UPDATE_METADATA),
)  # fmt: skip
"""
Requests of a controller to brokers, which exist in ZooKeeper mode alone.

There a request that only validates costs nothing (`ZkAdminManager`).
"""
_COUNTED: Final = (ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
"""Errors of topics that the quota was asked for: charged, or refused."""
_AT_THE_QUOTA: Final = (None, *_COUNTED, ErrorCode.REQUEST_TIMED_OUT)
"""
Errors of requests that may have come to the quota: None without a response.

After a timeout the controller may still have changed the topics.
"""


class TopicCounts:
    """
    Partitions by topic and time (ms), as far as the log shows them.

    CreateTopics and CreatePartitions that succeeded show them from then on, whatever order their lines come in. A
    snapshot gives them for the time before the first such request. All other numbers are unknown: nothing is guessed.
    """

    def __init__(self, snapshot: Mapping[str, int] | None = None) -> None:
        """Start with `snapshot`, the partitions by topic before the first line."""
        self._events: dict[str, list[tuple[int, int]]] = {
            name: [(_ALWAYS, count)] for name, count in (snapshot or {}).items()
        }
        """Times (ms) with the number of partitions from then on, by topic."""

    def learn(self, row: Row) -> None:
        """
        Learn partitions from a request; learning twice from one changes nothing.

        A deleted topic has 0 partitions.
        """
        deleted = row["api_key"] == ApiKey.DELETE_TOPICS
        for topic in row["topics"]:
            partitions = 0 if deleted else topic["partitions"]
            has_changed = topic["error"] == ErrorCode.NONE and not topic["validate_only"]
            if partitions is None or not has_changed or not topic["name"]:
                continue
            events = self._events.setdefault(topic["name"], [])
            event = (row["completed"], partitions)
            place = bisect_left(events, event)
            if events[place : place + 1] != [event]:
                events.insert(place, event)

    def requested(self, row: Row, topic: Mapping[str, Any]) -> int | None:
        """Return the partitions that a request asks the quota for by one of its topics; None when they are unknown."""
        count: int | None = topic["partitions"]
        if row["api_key"] == ApiKey.CREATE_TOPICS:
            return count
        events = self._events.get(topic["name"] or "", [])
        # the last event before the request; a topic that was deleted before has no known number of partitions
        place = bisect_left(events, (row["completed"], -1))
        previous = (events[place - 1][1] or None) if place else None
        if row["api_key"] == ApiKey.DELETE_TOPICS or previous is None:
            return previous
        return count - previous if count is not None and count > previous else None


@dataclass(slots=True)
class OneSide:
    """Lines of clients, or of controllers, each once, with the line of the other side for each."""

    capacity: int = MOST
    _rows: dict[_Key, dict[bytes, Row]] = field(default_factory=lambda: defaultdict(dict))
    """
    By `_key`, which includes the period.

    A program that is started again and again sends the same request with the same number.
    """
    _keys: dict[bytes, _Key] = field(default_factory=dict)
    """Keys by identity, in the order in which the lines came."""

    def add(self, row: Row) -> None:
        """
        Add a line; when it was added before, its pair stays.

        When there are too many lines, drop the one that came first.
        """
        key = _key(row)
        rows = self._rows[key]
        row.setdefault(_PAIR, rows.get(row["identity"], {}).get(_PAIR))
        rows[row["identity"]] = row
        self._keys.setdefault(row["identity"], key)
        if len(self._keys) > self.capacity:
            self.drop(next(iter(self._keys)))

    def drop(self, identity: bytes) -> None:
        """Remove a line, if it is there."""
        key = self._keys.pop(identity, None)
        if key is not None:
            del self._rows[key][identity]
            if not self._rows[key]:
                del self._rows[key]

    def pair(self, row: Row) -> Row | None:
        """
        Return the other side's line about the same request as a line.

        This is the line that was paired with it before, or the nearest one in time that has no pair yet.
        """

        def distance(candidate: Row) -> tuple[bool, int]:
            """Return the key by which a line that was paired before is first, and then the nearest one."""
            paired = candidate.get(_PAIR) == row["identity"]
            return not paired, abs(candidate["completed"] - row["completed"])

        period, *request = _key(row)
        rows = chain.from_iterable(
            self._rows.get((near, *request), {}).values() for near in range(period - 1, period + 2)
        )
        free = [candidate for candidate in rows if candidate.get(_PAIR) in (None, row["identity"])]
        nearest = min(free, key=distance, default=None)
        if nearest is None or abs(nearest["completed"] - row["completed"]) > NEAR_MS:
            return None
        nearest[_PAIR], row[_PAIR] = row["identity"], nearest["identity"]
        return nearest


def _key(row: Row) -> _Key:
    """
    Return the key of a request: its period of `NEAR_MS`, and the fields that both of its lines share.

    The other line may be of the period before or after it.
    """
    topics = sorted(topic["name"] or topic["id"] or "" for topic in row["topics"])
    request = row["api_key"], row["correlation_id"], row["client_id"], row["user"]
    return row["completed"] // NEAR_MS, *request, *topics


@dataclass(frozen=True, slots=True)
class ResolvedRequests:
    """Requests with their mutations, as far as the log shows them."""

    requests: pa.Table
    """Requests without the controllers' second lines."""
    forwarded: int
    """Number of second lines."""


class MutationLedger:
    """
    Partitions of topics and lines of both sides so far.

    Each request may come in any batch, in any order, and more than once.
    """

    def __init__(self, snapshot: Mapping[str, int] | None = None) -> None:
        """Start with `snapshot`, the partitions by topic before the first line."""
        self._counts = TopicCounts(snapshot)
        self._clients = OneSide()
        self._controllers = OneSide()
        self._zookeeper = False

    def _detect_zookeeper(self, requests: pa.Table) -> None:
        """Detect brokers in ZooKeeper mode: there the controller tells them of partitions, in requests of its own."""
        zookeeper_apis = pa.array(_OF_ZOOKEEPER, requests["api_key"].type)
        self._zookeeper |= bool(pc.any(pc.is_in(requests["api_key"], zookeeper_apis)).as_py())

    def remember(self, requests: pa.Table) -> None:
        """Learn from requests that were resolved before."""
        self._detect_zookeeper(requests)
        for row in _mutating(requests):
            self._counts.learn(row)
            (self._controllers if row["forwarded"] else self._clients).add(row)

    def resolve(self, requests: pa.Table) -> ResolvedRequests:
        """Return requests with the columns of `REQUESTS` about mutations, without the controllers' second lines."""
        self._detect_zookeeper(requests)
        rows = _mutating(requests)
        clients = [row for row in rows if not row["forwarded"]]
        charged = [row for row in clients if self._controllers.pair(row) is None]
        for row in clients:
            self._clients.add(row)
        second_lines: list[int] = []
        for row in rows:
            if not row["forwarded"]:
                continue
            client = self._clients.pair(row)
            if client is None:
                self._controllers.add(row)
                charged.append(row)
            else:
                self._controllers.drop(row["identity"])
                client["mutation_timestamp"] = row["mutation_timestamp"]
                second_lines.append(row["row"])
        for row in charged:
            self._counts.learn(row)
        # of a client's line that is not charged, the controller's line was, perhaps in an earlier batch
        values: dict[int, dict[str, Any]] = {
            row["row"]: {"mutations_known": True, "mutation_timestamp": None} for row in clients
        }
        values |= {row["row"]: self._mutation_columns(row) for row in charged}
        # a forwarded line that names no topics is left out: the client's line has all that quotas see of the request
        is_without_topics = pc.and_(requests["forwarded"], pc.is_null(requests["topics"]))
        is_kept = pc.invert(is_without_topics).combine_chunks().to_numpy(zero_copy_only=False).copy()
        is_kept[second_lines] = False
        resolved = with_values(requests, values).filter(pa.array(is_kept))
        return ResolvedRequests(resolved, len(requests) - len(resolved))

    def _mutation_columns(self, row: Row) -> dict[str, Any]:
        """Return the columns of a request that is charged for its topics."""
        topics = [
            (topic["error"], 0 if self._zookeeper and topic["validate_only"] else self._counts.requested(row, topic))
            for topic in row["topics"]
            if topic["error"] in _AT_THE_QUOTA
        ]
        is_known = bool(row["topics"]) and all(error in _COUNTED and count is not None for error, count in topics)
        values = {"mutations_known": is_known, "mutation_timestamp": row["mutation_timestamp"]}
        if is_known:
            # each of its topics may ask for as many partitions as an int32 holds
            counts = [(count or 0, error) for error, count in topics]
            charged = sum(count for count, error in counts if error == ErrorCode.NONE)
            values[_COLUMN_OF[row["api_key"]]] = min(INT_MAX, sum(count for count, _ in counts))
            values["mutations_charged"] = min(INT_MAX, charged)
        return values


def _mutating(requests: pa.Table) -> list[Row]:
    """Return requests that name topics, with their place in the table, the oldest first."""
    places = pc.indices_nonzero(pc.is_valid(requests["topics"]))
    rows = requests.select(LEDGER_COLUMNS).take(places).to_pylist()
    for place, row in zip(places.to_pylist(), rows, strict=True):
        row["row"] = place
    return sorted(rows, key=lambda row: row["completed"])


def with_values(table: pa.Table, values: Mapping[int, Mapping[str, Any]]) -> pa.Table:
    """Return the table with other values in some columns of some rows, by the row's number."""
    for name in sorted({name for row in values.values() for name in row}):
        changed = {number: row[name] for number, row in values.items() if name in row}
        place = table.schema.get_field_index(name)
        column = table.schema.field(place)
        mask = np.zeros(len(table), np.bool_)
        mask[list(changed)] = True
        new = pa.array([changed[number] for number in sorted(changed)], column.type)
        replaced = pc.replace_with_mask(table[name].combine_chunks(), pa.array(mask), new)
        table = table.set_column(place, column, replaced)
    return table
