"""What an event log lacks: who was told throttle times, in a file that the listener leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.pages.files import put

from ..errors import UnreadableSummary
from .snapshot import JobSnapshot, QueryTotals

_SIDES = ("read", "write", "admin")
_FORMAT = 1
_COUNTS = ("throttled_ms", "responses", "longest_ms", "quota_retries")


class Summary(NamedTuple):
    """What the listener of an application left behind."""

    throttles: tuple[QueryTotals, ...]
    """By query and client; empty where no Kafka client reported anything, not even zeros."""
    unknown_attempts: int
    """As in `JobSnapshot`."""


def write_summary(snapshot: JobSnapshot, path: Path) -> None:
    """
    Leave the throttle times of a job in a file, for `quotascope spark report --summary`.

    Spark writes accumulators without a name into no event log, so what successful tasks were told is in none. Raises `OSError`.
    """
    document = {
        "quotascope_summary": _FORMAT,
        "app": snapshot.app,
        "unknown_attempts": snapshot.unknown_attempts,
        "throttles": [_row(query, totals) for query, totals in snapshot.throttles],
    }
    put(path, json.dumps(document, indent=1))


def read_summary(path: Path) -> Summary:
    """What `write_summary` wrote. Raises `UnreadableSummary` and `OSError`."""
    try:
        document = json.loads(path.read_bytes())
        if document["quotascope_summary"] != _FORMAT:
            raise UnreadableSummary(f"{path}: written by another version of quotascope")
        throttles = tuple(_totals(row) for row in document["throttles"])
        return Summary(throttles, _count(document["unknown_attempts"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableSummary(f"{path} is no summary of a Spark job") from error


def _row(query: str, totals: ClientTotals) -> dict[str, Any]:
    counts = {name: getattr(totals, name) for name in _COUNTS}
    return {"query": query, **totals.client._asdict(), **counts}


def _totals(row: dict[str, Any]) -> QueryTotals:
    names = [row[name] for name in ("query", "user", "client_id")]
    counts = {name: row[name] for name in _COUNTS}
    if not all(isinstance(name, str) for name in names) or row["side"] not in _SIDES:
        raise ValueError("a name is no text")
    counts = {name: _count(count) for name, count in counts.items()}
    return names[0], ClientTotals(Client(names[1], names[2], row["side"]), **counts)


def _count(count: object) -> int:
    if type(count) is not int or count < 0:
        raise ValueError("a count is no number")
    return count
