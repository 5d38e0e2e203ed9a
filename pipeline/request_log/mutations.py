"""
How many partitions a request mutates, which other lines of the log decide.

Charged is what the controller let through (error 0); asked for is also what it refused for the quota (89). A request that failed otherwise
never came to the quota (`ReplicationControlManager`, where `applyPartitionChangeQuota` comes after all checks).

A request that a broker forwards to the controller has two lines: the broker logs the client's request, the controller the forwarded one
(`isForwarded`), under the same header. Both finish within milliseconds. What a broker forwards on its own account (topics that Metadata
creates) has no line of a client.
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

from quotascope.metrics.numbers import INT_MAX
from quotascope.metrics.protocol import ApiKey, ErrorCode

LEDGER_COLUMNS: Final = (
    "completed", "api_key", "correlation_id", "user", "client_id", "mutation_timestamp", "topics", "forwarded", "identity",
)  # fmt: skip
"""The columns that a ledger needs of earlier requests."""
NEAR_MS: Final = 5_000
"""How far apart two clocks may be for lines to be of one request; a client that counts from 1 again sends its next one later."""
MOST: Final = 100_000
"""Lines that one side holds, at some 2 kB each: those that came last. A broker forwards a few a second at most, and a stream gets both lines at once."""

Row: TypeAlias = dict[str, Any]
_Key: TypeAlias = tuple[Any, ...]
_ALWAYS: Final = -(1 << 62)
_PAIR: Final = "pair"
"""Where a row has the identity of the other line about the same request."""
_COLUMN_OF: Final = {
    ApiKey.CREATE_TOPICS: "partitions_created",
    ApiKey.DELETE_TOPICS: "partitions_deleted",
    ApiKey.CREATE_PARTITIONS: "partitions_added",
}
_COUNTED: Final = (ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
_AT_THE_QUOTA: Final = (None, *_COUNTED, ErrorCode.REQUEST_TIMED_OUT)
"""Errors of requests that may have come to the quota: None without a response; after a timeout the controller may have done it nevertheless."""


class TopicCounts:
    """
    Partitions by topic and time (ms), as far as the log shows them.

    CreateTopics and CreatePartitions that succeeded show them from then on, whatever order their lines come in. A snapshot gives them for
    the time before the first of these. All others are unknown: nothing is guessed.
    """

    def __init__(self, snapshot: Mapping[str, int] | None = None) -> None:
        """`snapshot`: partitions by topic before the first line."""
        self._events: dict[str, list[tuple[int, int]]] = {
            name: [(_ALWAYS, count)] for name, count in (snapshot or {}).items()
        }

    def learn(self, row: Row) -> None:
        """Learn from a request; to learn twice from one changes nothing. A deleted topic has 0 partitions."""
        deleted = row["api_key"] == ApiKey.DELETE_TOPICS
        for topic in row["topics"]:
            if topic["error"] == ErrorCode.NONE and not topic["validate_only"] and topic["name"]:
                partitions = 0 if deleted else topic["partitions"]
                events = self._events.setdefault(topic["name"], [])
                event = (row["completed"], partitions)
                place = bisect_left(events, event) if partitions is not None else 0
                if partitions is not None and events[place : place + 1] != [event]:
                    events.insert(place, event)

    def asked(self, row: Row, topic: Mapping[str, Any]) -> int | None:
        """Partitions that a request asks the quota for by one of its topics; None when they are unknown."""
        count: int | None = topic["partitions"]
        if row["api_key"] == ApiKey.CREATE_TOPICS:
            return count
        events = self._events.get(topic["name"] or "", [])
        place = bisect_left(events, (row["completed"], -1))
        before = (events[place - 1][1] or None) if place else None
        if row["api_key"] == ApiKey.DELETE_TOPICS or before is None:
            return before
        return count - before if count is not None and count > before else None


@dataclass(slots=True)
class OneSide:
    """
    Lines of clients, or of controllers, each once, and which line of the other side belongs to each.

    Pairs are remembered: the same two lines may come again, from a copy of a log, or because a commit is tried again.
    """

    most: int = MOST
    _rows: dict[_Key, dict[bytes, Row]] = field(default_factory=lambda: defaultdict(dict))
    """By `_key`, which includes the period: a program that is started again and again sends the same request with the same number."""
    _keys: dict[bytes, _Key] = field(default_factory=dict)
    """By identity, in the order in which they came."""

    def add(self, row: Row) -> None:
        """Keep a line; when it was there before, its pair stays. Of too many the one that came first is dropped."""
        key = _key(row)
        rows = self._rows[key]
        row.setdefault(_PAIR, rows.get(row["identity"], {}).get(_PAIR))
        rows[row["identity"]] = row
        self._keys.setdefault(row["identity"], key)
        if len(self._keys) > self.most:
            self.drop(next(iter(self._keys)))

    def drop(self, identity: bytes) -> None:
        """Remove a line, if it is there."""
        key = self._keys.pop(identity, None)
        if key is not None:
            del self._rows[key][identity]
            if not self._rows[key]:
                del self._rows[key]

    def pair(self, row: Row) -> Row | None:
        """Return the line that is about the same request as one of the other side: its pair, else the nearest in time without one."""

        def distance(other: Row) -> tuple[bool, int]:
            paired = other.get(_PAIR) == row["identity"]
            return not paired, abs(other["completed"] - row["completed"])

        period, *asked = _key(row)
        rows = chain.from_iterable(
            self._rows.get((near, *asked), {}).values() for near in range(period - 1, period + 2)
        )
        free = [other for other in rows if other.get(_PAIR) in (None, row["identity"])]
        found = min(free, key=distance, default=None)
        if found is None or abs(found["completed"] - row["completed"]) > NEAR_MS:
            return None
        found[_PAIR], row[_PAIR] = row["identity"], found["identity"]
        return found


def _key(row: Row) -> _Key:
    """The number of the row's period of `NEAR_MS`, which for the other line may be one before or after it, and what both have in common."""
    topics = sorted(topic["name"] or topic["id"] or "" for topic in row["topics"])
    asked = row["api_key"], row["correlation_id"], row["client_id"], row["user"]
    return row["completed"] // NEAR_MS, *asked, *topics


@dataclass(frozen=True, slots=True)
class ResolvedRequests:
    """Requests with their mutations, as far as the log shows them."""

    requests: pa.Table
    """Without the controllers' second lines."""
    forwarded: int
    """How many second lines there were."""


class MutationLedger:
    """What was learned of topics from all lines so far; each request may come in any batch, in any order, and more than once."""

    def __init__(self, snapshot: Mapping[str, int] | None = None) -> None:
        """`snapshot`: partitions by topic before the first line."""
        self._counts = TopicCounts(snapshot)
        self._clients = OneSide()
        self._controllers = OneSide()

    def remember(self, requests: pa.Table) -> None:
        """Learn from requests that were resolved before."""
        for row in _mutating(requests):
            self._counts.learn(row)
            (self._controllers if row["forwarded"] else self._clients).add(row)

    def resolve(self, requests: pa.Table) -> ResolvedRequests:
        """Fill in the columns of `REQUESTS` about mutations, and leave out the second lines of forwarded requests."""
        rows = _mutating(requests)
        clients = [row for row in rows if not row["forwarded"]]
        charged = [row for row in clients if self._controllers.pair(row) is None]
        for row in clients:
            self._clients.add(row)
        second: list[int] = []
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
                second.append(row["row"])
        for row in charged:
            self._counts.learn(row)
        # of the others the controller's line, which charges, was kept before the client's came
        values: dict[int, dict[str, Any]] = {
            row["row"]: {"mutations_known": True, "mutation_timestamp": None} for row in clients
        }
        values |= {row["row"]: self._values(row) for row in charged}
        # of other forwarded requests none is kept: a client's line has all that quotas see of them
        plain = pc.and_(requests["forwarded"], pc.is_null(requests["topics"]))
        keep = pc.invert(plain).combine_chunks().to_numpy(zero_copy_only=False).copy()
        keep[second] = False
        left = with_values(requests, values).filter(pa.array(keep))
        return ResolvedRequests(left, len(requests) - len(left))

    def _values(self, row: Row) -> dict[str, Any]:
        """Columns of a request that is charged for what it asks."""
        asked = [
            (topic["error"], self._counts.asked(row, topic))
            for topic in row["topics"]
            if topic["error"] in _AT_THE_QUOTA
        ]
        known = bool(row["topics"]) and all(error in _COUNTED and count is not None for error, count in asked)
        values = {"mutations_known": known, "mutation_timestamp": row["mutation_timestamp"]}
        if known:
            # each of its topics may ask for as many as an int32 holds
            counts = [(count or 0, error) for error, count in asked]
            charged = sum(count for count, error in counts if error == ErrorCode.NONE)
            values[_COLUMN_OF[row["api_key"]]] = min(INT_MAX, sum(count for count, _ in counts))
            values["mutations_charged"] = min(INT_MAX, charged)
        return values


def _mutating(requests: pa.Table) -> list[Row]:
    """Requests that name topics, with their place in the table, the oldest first."""
    places = pc.indices_nonzero(pc.is_valid(requests["topics"]))
    rows = requests.select(LEDGER_COLUMNS).take(places).to_pylist()
    for place, row in zip(places.to_pylist(), rows, strict=True):
        row["row"] = place
    return sorted(rows, key=lambda row: row["completed"])


def with_values(table: pa.Table, values: Mapping[int, Mapping[str, Any]]) -> pa.Table:
    """The table with other values in some columns of some rows, by the row's number."""
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
