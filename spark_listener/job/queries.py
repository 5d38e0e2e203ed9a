"""The state of streaming queries: their starts, progress and triggers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..events import OffsetsBehind, QueryIdle, QueryProgressed, QueryStarted, QueryTerminated
from .catching_up import Positions
from .recent import Recent
from .snapshot import QuerySnapshot

TriggerReader = Callable[[str], float | None]
"""
Function that returns the interval of the trigger of a running query, by its id, in seconds.

It returns None if there is no interval, or it is unknown, and never raises.
"""

_MOST_RUNS = 100
_FORGOTTEN = 10
"""Number of forgotten queries whose names and starts are kept, as a multiple of the known queries."""
_REPORTS_IDLE = 30.0
"""
Time in seconds without a report after which a query must have waited for its trigger.

A query without a trigger reports idle time every ten seconds (spark.sql.streaming.noDataProgressEventInterval).
"""


@dataclass(slots=True)
class _QueryState:
    """State of one query id, which a checkpoint keeps over restarts."""

    name: str
    active: bool = True
    starts: int = 0
    runs: Recent[str, None] = field(default_factory=lambda: Recent(_MOST_RUNS))
    last_report: float = 0.0
    """Arrival of the last report by the listener's clock, since the driver's may differ under Spark Connect."""
    phases: Mapping[str, float] = field(default_factory=dict)
    offsets_behind: OffsetsBehind | None = None
    positions: Positions = field(default_factory=Positions)
    trigger_seconds: float | None = None
    """Interval of the trigger as Spark reports it; None if Spark cannot be asked."""
    measured_seconds: float | None = None
    """Interval of the trigger as `measure_trigger` measured it."""
    triggered: tuple[float, float] | None = None
    """Begin and end of the last micro-batch, or the time of the last idle report twice."""

    def measure_trigger(self, began: float | None, ended: float | None) -> None:
        """
        Measure the interval of the trigger as the time between two micro-batches, if the query waited between them.

        No event has the interval, and under Spark Connect no client can ask for it. The first micro-batch of a query
        begins at once and the second at a multiple of the interval, so that the first measurement may be too short. In
        Real-Time Mode, batches do not wait.
        """
        if began is None or ended is None:
            return
        if self.triggered is not None and began - self.triggered[1] > _REPORTS_IDLE:
            self.measured_seconds = began - self.triggered[0]
        self.triggered = (began, ended)


class _PastQuery(NamedTuple):
    """The part of a forgotten query's state that is kept."""

    name: str
    starts: int
    run: str | None
    """The last run."""


class QueryStates:
    """
    Queries of an application, by id. `now` is in seconds since 1970.

    Args:
        trigger: asked once for each run.
        most: number of queries that are known at a time; one that ended is forgotten first.

    """

    def __init__(self, trigger: TriggerReader = lambda _: None, max_queries: int = 1_000) -> None:
        self._trigger = trigger
        self._most = max_queries
        self._queries: dict[str, _QueryState] = {}
        self._past: Recent[str, _PastQuery] = Recent(_FORGOTTEN * max_queries)
        """The little that is kept of a forgotten query, by its id."""
        self.forgotten = 0

    def started(self, event: QueryStarted, now: float) -> None:
        """Record that a query starts or starts again."""
        self._running(event.query, event.run, now, event.name)

    def progressed(self, event: QueryProgressed, now: float) -> None:
        """Record the end of a micro-batch."""
        query = self._running(event.query, event.run, now, event.name)
        query.phases = event.phases
        query.offsets_behind = event.offsets_behind
        query.positions.add(event)
        query.measure_trigger(event.began, event.ended)

    def idle(self, event: QueryIdle, now: float) -> None:
        """Record that a query has nothing to do."""
        query = self._running(event.query, event.run, now)
        query.positions.idle()
        query.measure_trigger(event.time, event.time)

    def terminated(self, event: QueryTerminated) -> None:
        """Record the end of a run, which another run may already have followed."""
        query = self._queries.get(event.query)
        if query is not None and next(reversed(query.runs), None) == event.run:
            query.active = False

    def name(self, query: str) -> str:
        """Return the name of the query with an id, or the id if the query is unknown."""
        state = self._queries.get(query) or self._past.get(query)
        return query if state is None else state.name

    def snapshots(self, now: float) -> tuple[QuerySnapshot, ...]:
        """Return a snapshot for each name of a query, sorted by name."""
        by_name: dict[str, list[_QueryState]] = {}
        for query in self._queries.values():
            by_name.setdefault(query.name, []).append(query)
        past = Counter[str]()
        for forgotten in self._past.values():
            past[forgotten.name] += max(0, forgotten.starts - 1)
        return tuple(_snapshot(by_name[name], now, past[name]) for name in sorted(by_name))

    def _running(self, query: str, run: str, now: float, name: str = "") -> _QueryState:
        """Return the state of a query that has reported a run at `now`; count the run if it is new."""
        state = self._queries.get(query)
        if state is None:
            if len(self._queries) >= self._most:
                self._forget()
            past = self._past.pop(query, _PastQuery(name or query, 0, None))
            state = self._queries[query] = _QueryState(past.name, starts=past.starts)
            if past.run is not None:
                state.runs[past.run] = None
        state.name = name or state.name
        state.last_report = now
        if run not in state.runs:
            state.starts += 1
            state.active = True
            state.trigger_seconds = self._trigger(query)
            state.triggered = state.measured_seconds = None
            state.positions.restarted()
        state.runs[run] = None
        return state

    def _forget(self) -> None:
        """Forget the oldest query that has ended, or the oldest of all."""
        ended = (key for key, candidate in self._queries.items() if not candidate.active)
        query = next(ended, next(iter(self._queries)))
        state = self._queries.pop(query)
        self._past[query] = _PastQuery(state.name, state.starts, next(reversed(state.runs), None))
        self.forgotten += 1


def _snapshot(queries: Iterable[_QueryState], now: float, past: int) -> QuerySnapshot:
    """
    Return a snapshot of the queries with the same name.

    Its figures are those of the active query, or of the one that reported last. Its restarts are those of all queries,
    with `past` restarts of forgotten ones.
    """
    queries = list(queries)
    latest = max(queries, key=lambda query: (query.active, query.last_report))
    behind = latest.offsets_behind
    return QuerySnapshot(
        name=latest.name,
        active=latest.active,
        restarts=past + sum(max(0, query.starts - 1) for query in queries),
        phases=latest.phases,
        progress_age_seconds=max(0.0, now - latest.last_report) if latest.active else None,
        trigger_seconds=(latest.trigger_seconds or latest.measured_seconds) if latest.active else None,
        max_offsets_behind=None if behind is None else behind.maximum,
        avg_offsets_behind=None if behind is None else behind.average,
        catch_up=latest.positions.catch_up(),
    )
