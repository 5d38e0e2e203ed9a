"""
How many partitions a request mutates: what its own line does not tell, and other lines do.

Charged is what the controller let through (error 0), asked for is what it refused for the quota (89) as well; a request that failed
otherwise never came to the quota (`ReplicationControlManager`, where `applyPartitionChangeQuota` comes after all checks).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .columns import with_values
from .topic_counts import TopicCounts
from .topics import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from .twins import OneSide, Row

LEDGER_COLUMNS: Final = (
    "completed", "api_key", "correlation_id", "user", "client_id", "mutation_timestamp", "topics", "forwarded", "identity",
)  # fmt: skip
"""The columns that a ledger needs of earlier requests."""

_ASKED_COLUMN: Final = {
    CREATE_TOPICS: "partitions_created",
    DELETE_TOPICS: "partitions_deleted",
    CREATE_PARTITIONS: "partitions_added",
}
_CHARGED_ELSEWHERE: Final = {"mutations_known": True}
"""The controller's line was kept before the client's came."""
_DONE: Final = 0
_REFUSED: Final = 89
_TIMED_OUT: Final = 7
"""The controller may have done it all the same."""
_AT_THE_QUOTA: Final = (None, _DONE, _REFUSED, _TIMED_OUT)
"""What an answer holds when the request may have come to the quota; None when there is no answer."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Requests whose mutations are told as far as the log tells them."""

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
            self._learn(row)
            (self._controllers if row["forwarded"] else self._clients).add(row)

    def resolve(self, requests: pa.Table) -> Resolved:
        """Fill in what `REQUESTS` says of mutations, and leave out the second lines of forwarded requests."""
        rows = _mutating(requests)
        clients = [row for row in rows if not row["forwarded"]]
        here = [row for row in clients if self._controllers.pair(row) is None]
        for row in clients:
            self._clients.add(row)
        second = {
            row["row"] for row in rows if row["forwarded"] and self._is_second(row)
        }
        here += [row for row in rows if row["forwarded"] and row["row"] not in second]
        for row in here:
            self._learn(row)
        values = {row["row"]: _CHARGED_ELSEWHERE for row in clients}
        values |= {row["row"]: self._values(row) for row in here}
        left = with_values(requests, values).filter(_first_lines(requests, second))
        return Resolved(left, len(requests) - len(left))

    def _is_second(self, row: Row) -> bool:
        """Whether the client's line is known; it then gets the controller's time."""
        client = self._clients.pair(row)
        if client is None:
            self._controllers.add(row)
            return False
        self._controllers.forget(row)
        client["mutation_timestamp"] = row["mutation_timestamp"]
        return True

    def _learn(self, row: Row) -> None:
        for topic in row["topics"]:
            if topic["error"] == _DONE and not topic["validate_only"] and topic["name"]:
                known = 0 if row["api_key"] == DELETE_TOPICS else topic["partitions"]
                if known is not None:
                    self._counts.learn(topic["name"], row["completed"], known)

    def _values(self, row: Row) -> dict[str, Any]:
        """Columns of a request that is charged for what it asks."""
        asked = [
            (topic["error"], self._asked(row, topic))
            for topic in row["topics"]
            if topic["error"] in _AT_THE_QUOTA
        ]
        known = bool(row["topics"]) and all(
            error in (_DONE, _REFUSED) and count is not None for error, count in asked
        )
        if not known:
            return {"mutations_known": False, "mutation_timestamp": row["mutation_timestamp"]}  # fmt: skip
        return {
            _ASKED_COLUMN[row["api_key"]]: sum(count for _, count in asked),
            "mutations": sum(count for error, count in asked if error == _DONE),
            "mutations_known": True,
            "mutation_timestamp": row["mutation_timestamp"],
        }

    def _asked(self, row: Row, topic: dict[str, Any]) -> int | None:
        if row["api_key"] == CREATE_TOPICS:
            told: int | None = topic["partitions"]
            return told
        before = self._counts.before(topic["name"], row["completed"])
        if row["api_key"] == DELETE_TOPICS or before is None:
            return before
        return topic["partitions"] - before if topic["partitions"] > before else None


def _mutating(requests: pa.Table) -> list[Row]:
    """Requests that name topics, with their place in the table, the oldest first."""
    places = pc.indices_nonzero(pc.is_valid(requests["topics"]))
    rows = requests.select(LEDGER_COLUMNS).take(places).to_pylist()
    for place, row in zip(places.to_pylist(), rows, strict=True):
        row["row"] = place
    return sorted(rows, key=lambda row: row["completed"])


def _first_lines(requests: pa.Table, second: Iterable[int]) -> Any:  # noqa: ANN401 - an array of Arrow
    """What is kept: not the second lines, and of other forwarded requests none, for a client's line tells all that quotas see of them."""
    plain = pc.and_(requests["forwarded"], pc.is_null(requests["topics"]))
    keep = pc.invert(plain).combine_chunks().to_numpy(zero_copy_only=False).copy()
    keep[list(second)] = False
    return pa.array(keep)
