"""
The two lines about one forwarded request.

A broker passes CreateTopics and the like on to the controller: the broker logs the client's request, the controller the forwarded one
(`isForwarded`), under the same header. The two finish within milliseconds of each other; what a broker forwards on its own account
(topics that Metadata creates) has no line of a client.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

NEAR_MS: Final = 5_000
"""How far apart two clocks may be for lines to be of one request; a client that counts from 1 again sends its next one later."""
MOST: Final = 100_000
"""Lines that one side holds, at some 2 kB each: those that came last. A broker forwards a few a second at most, and a stream gets both lines at once."""

Row: TypeAlias = dict[str, Any]
_Key: TypeAlias = tuple[Any, ...]
_TWIN: Final = "twin"
"""Where a row has its pair's identity."""


def _key(row: Row) -> _Key:
    topics = sorted(topic["name"] or topic["id"] or "" for topic in row["topics"])
    return (
        row["api_key"],
        row["correlation_id"],
        row["client_id"],
        row["user"],
        *topics,
    )


@dataclass(slots=True)
class OneSide:
    """
    Lines of clients, or of controllers, each once, and which line of the other side belongs to each.

    Pairs are remembered: the same two lines may come again, from a copy of a log, or because a commit is tried again.
    """

    most: int = MOST
    _rows: dict[_Key, dict[bytes, Row]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _keys: dict[bytes, _Key] = field(default_factory=dict)
    """By identity, in the order in which they came."""

    def add(self, row: Row) -> None:
        """Keep a line; when it was there before, its pair stays. Of too many the one that came first goes."""
        key = _key(row)
        rows = self._rows[key]
        row.setdefault(_TWIN, rows.get(row["identity"], {}).get(_TWIN))
        rows[row["identity"]] = row
        self._keys.setdefault(row["identity"], key)
        if len(self._keys) > self.most:
            self._drop(next(iter(self._keys)))

    def forget(self, row: Row) -> None:
        """Let go of a line, if it is there."""
        self._drop(row["identity"])

    def _drop(self, identity: bytes) -> None:
        key = self._keys.pop(identity, None)
        if key is None:
            return
        rows = self._rows[key]
        del rows[identity]
        if not rows:
            del self._rows[key]

    def pair(self, row: Row) -> Row | None:
        """Return the line that is about the same request as one of the other side: its pair, else the nearest in time that has none."""
        rows = self._rows.get(_key(row), {}).values()
        free = [other for other in rows if other.get(_TWIN) in (None, row["identity"])]
        twin = min(free, key=lambda other: _unlikeliness(row, other), default=None)
        if twin is None or abs(twin["completed"] - row["completed"]) > NEAR_MS:
            return None
        twin[_TWIN], row[_TWIN] = row["identity"], twin["identity"]
        return twin


def _unlikeliness(row: Row, other: Row) -> tuple[bool, int]:
    paired = other.get(_TWIN) == row["identity"]
    return not paired, abs(other["completed"] - row["completed"])
