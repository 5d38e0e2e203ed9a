"""The state of a job at one moment as plain values, and the file of its throttle times, which an event log lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.pages.files import put
from quotascope.pages.words import counted, seconds, shown

from ..errors import UnreadableSummary
from ..events import FailureCause
from .catching_up import CatchUp

_SIDES = ("read", "write", "admin")
_FORMAT = 2
_COUNTS = ("throttled_ms", "responses", "longest_ms", "quota_retries")

ClientKind = Literal["python", "jvm"]
"""
Kind of Kafka clients: clients of Python code in a scope, or clients of JVMs, such as Spark's Kafka connector.

The plugin reads the clients of JVMs.
"""
NOT_MEASURED = "Throttle times: not measured"
MEASURED_NONE = "Throttle times: measured, none"
"""Answer of reports and printed snapshots that must not look like `NOT_MEASURED`."""
_KINDS: Mapping[ClientKind, str] = {"python": "Python", "jvm": "JVMs"}
QueryTotals = tuple[str, ClientTotals]
"""
A streaming query, by its name or id, and the absolute counts of one of its clients.

The query is empty for counts that belong to no query.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySnapshot:
    """A streaming query, under one name for all of its starts."""

    name: str
    """Name of the query, else its id, which stays the same over restarts from a checkpoint."""
    active: bool
    """True if it runs."""
    restarts: int
    """Number of starts after the first one."""
    phases: Mapping[str, float]
    """Duration of the phases of the last micro-batch in seconds (`durationMs`); empty without a micro-batch."""
    progress_age_seconds: float | None
    """
    Seconds since the listener got the last report: a start, the end of a micro-batch, or idle time.

    It is None if the query does not run.
    """
    trigger_seconds: float | None
    """
    Interval of the trigger, or length of a batch in Real-Time Mode.

    It is None without an interval, if it is unknown, or if the query does not run.
    """
    max_offsets_behind: float | None
    """Offsets behind, of the worst partition of the worst Kafka source; None if no source reports them."""
    avg_offsets_behind: float | None
    """Mean offsets behind, over the partitions of the worst Kafka source; None if no source reports them."""
    catch_up: CatchUp | None
    """Time to read the backlog; None without offsets, or with too few micro-batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """The state of one application. Counts never go down."""

    app: str
    """`spark.app.name`."""
    failures: Mapping[FailureCause, int]
    """Number of failed attempts of tasks by cause, with 0 for causes that did not occur."""
    retries: Mapping[FailureCause, int]
    """Number of attempts that repeated a failed one, by the cause of that failure, with 0 for other causes."""
    stage_retries: int
    """Number of attempts of stages after the first one."""
    executors_lost: int
    """Number of executors that were removed, with or without tasks, except those that were no longer needed."""
    executors_inferred: int = 0
    """Number of executors that count as no longer needed by their idle time (`LostExecutors`), and not as lost."""
    queries: tuple[QuerySnapshot, ...]
    """Streaming queries, sorted by name."""
    throttles: tuple[QueryTotals, ...]
    """Throttle times, one entry for each query and client, sorted."""
    seen_clients: tuple[ClientKind, ...]
    """
    Kinds of clients whose throttle times are all in `throttles`. The throttle times of other kinds are unknown.

    `jvm` is among them once the plugin has answered. `python` is among them once a client has reported, as long as no
    event of a failed attempt was missed.
    """
    tasks_seen: bool
    """
    True if there was a source with events of tasks.

    Otherwise failures, retries, lost executors and `unknown_attempts` are unknown, and not 0.
    """
    unknown_attempts: int
    """
    Attempts that neither succeeded nor left a note, in stages with attempts that report throttle times.

    `throttles` lacks their throttle times.
    """
    events: int
    """Number of events that were handled, or left out on purpose."""
    lost_events: int
    """Number of events that sources missed, or that could not be read."""
    lag_seconds: float
    """Time in seconds by which the source is behind."""
    sources: tuple[str, ...]
    """Sources of the events: pull, callbacks, streaming or event_log; empty while none is live."""
    problems: tuple[tuple[str, int], ...]
    """Parts of the listener, and how often they failed. `queries` counts streaming queries that were forgotten."""

    def __str__(self) -> str:
        """Return a table of the throttled clients, longest first, and the counts, for `print` in a notebook or log."""
        rows = [row for row in self.throttles if row[1].throttled_ms or row[1].quota_retries]
        rows.sort(key=lambda row: row[1].throttled_ms, reverse=True)
        lines = [shown(self.app) or "A Spark job", self._measured(throttled=bool(rows))]
        if rows:
            lines += _aligned([_HEADS, *map(_cells, rows)])
        if self.tasks_seen:
            causes = ", ".join(f"{count} {cause}" for cause, count in self.failures.items() if count)
            failed = counted(sum(self.failures.values()), "failed attempt") + (f" ({causes})" if causes else "")
            retries, lost = counted(sum(self.retries.values()), "retry"), counted(self.executors_lost, "lost executor")
            lines.append(f"{failed}, {retries}, {counted(self.stage_retries, 'stage retry')}, {lost}")
        else:
            lines.append("failed attempts, retries and lost executors: not measured, no source has events of tasks")
        lines += [f"{part} failed {count} times" for part, count in self.problems]
        if self.lost_events:
            lines.append(f"{counted(self.lost_events, 'event')} lost: counts are lower bounds")
        return "\n".join(lines)

    def _measured(self, *, throttled: bool) -> str:
        """Return the sum of the throttle times, and which of them are known, as a sentence of the report."""
        if not self.seen_clients and not self.throttles:
            return f"{NOT_MEASURED}: no Kafka client of the job has reported (documentation: Spark)"
        parts = []
        if self.seen_clients:
            parts.append(f"clients of {' and '.join(_KINDS[kind] for kind in self.seen_clients)}")
        if self.unknown_attempts:
            parts.append(f"{counted(self.unknown_attempts, 'attempt')} ended without a report")
        is_in_part = bool(self.unknown_attempts) or not self.seen_clients
        if throttled:
            total_ms = sum(totals.throttled_ms for _, totals in self.throttles)
            found = f"Throttled {'at least ' if is_in_part else ''}{seconds(total_ms / 1_000)}"
        else:
            found = "Throttle times: measured in part, none" if is_in_part else MEASURED_NONE
        return f"{found} ({'; '.join(parts)})" if parts else found


_HEADS = ("query", "user", "client id", "side", "throttled", "responses", "longest", "quota retries")
_NAMES = 4
"""Number of columns, from the first, that are names; the others are figures, aligned at their ends."""


def _cells(row: QueryTotals) -> tuple[str, ...]:
    """Return the cells of a client, in the order of `_HEADS`."""
    query, totals = row
    names = (shown(query, 40), shown(totals.client.user, 40), shown(totals.client.client_id, 40), totals.client.side)
    times = seconds(totals.throttled_ms / 1_000), f"{totals.responses:,}", seconds(totals.longest_ms / 1_000)
    return (*names, *times, f"{totals.quota_retries:,}")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines of a table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < _NAMES else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


class Summary(NamedTuple):
    """The throttle times of an application, from the file that its listener wrote."""

    throttles: tuple[QueryTotals, ...]
    """Throttle times by query and client; empty where no Kafka client reported anything, not even zeros."""
    unknown_attempts: int
    """Number of unknown attempts, see `JobSnapshot`."""
    seen_clients: tuple[ClientKind, ...]
    """Kinds of clients, see `JobSnapshot`."""
    app_id: str
    """`spark.app.id`; empty if it is unknown."""


def write_summary(snapshot: JobSnapshot, path: Path, app_id: str = "") -> None:
    """
    Write the throttle times of a job, with `spark.app.id`, to a file for `quotascope spark report --summary`.

    Spark leaves accumulators without a name out of the event log, and with them the throttle times of successful tasks.
    Raises `OSError`.
    """
    document = {
        "quotascope_summary": _FORMAT,
        "app": snapshot.app,
        "app_id": app_id,
        "unknown_attempts": snapshot.unknown_attempts,
        "seen_clients": snapshot.seen_clients,
        "throttles": [
            {
                "query": query,
                **totals.client._asdict(),
                **{name: getattr(totals, name) for name in _COUNTS},
            }
            for query, totals in snapshot.throttles
        ],
    }
    put(path, json.dumps(document, indent=1))


def read_summary(path: Path) -> Summary:
    """Read a file that `write_summary` wrote. Raises `UnreadableSummary` and `OSError`."""
    try:
        document = json.loads(path.read_bytes())
        if document["quotascope_summary"] != _FORMAT:
            raise UnreadableSummary(f"{path}: written by another version of quotascope")
        throttles = tuple(_totals(row) for row in document["throttles"])
        seen_clients = tuple(kind for kind in get_args(ClientKind) if kind in document["seen_clients"])
        return Summary(throttles, _count(document["unknown_attempts"]), seen_clients, str(document.get("app_id", "")))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UnreadableSummary(f"{path} is not a summary of a Spark job") from error


def _totals(row: dict[str, Any]) -> QueryTotals:
    """Return the counts of a client in a summary. Raises `KeyError`, `TypeError` and `ValueError`."""
    names = [row[name] for name in ("query", "user", "client_id")]
    counts = {name: row[name] for name in _COUNTS}
    if not all(isinstance(name, str) for name in names) or row["side"] not in _SIDES:
        raise ValueError("a name is not a text")
    counts = {name: _count(count) for name, count in counts.items()}
    return names[0], ClientTotals(Client(names[1], names[2], row["side"]), **counts)


def _count(count: object) -> int:
    """Return a count of a summary. Raises `ValueError` if it is none."""
    if type(count) is not int or count < 0:
        raise ValueError("a count is not a number")
    return count
