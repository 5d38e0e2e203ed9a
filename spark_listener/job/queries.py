"""Streaming queries: how often they started, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..events import OffsetsBehind, QueryIdle, QueryProgressed, QueryStarted, QueryTerminated
from .catching_up import Positions
from .recent import Recent
from .snapshot import QuerySnapshot

TriggerReader = Callable[[str], float | None]
"""Returns the seconds of a running query's trigger by the id of the query; None if it has none or that is unknown. Never raises."""

_MOST_RUNS = 100
_REPORTS_IDLE = 30.0
"""Seconds: a query without a trigger reports every ten that it is idle (spark.sql.streaming.noDataProgressEventInterval)."""


@dataclass(slots=True)
class _QueryState:
    """One id, which a checkpoint keeps over restarts."""

    name: str
    active: bool = True
    starts: int = 0
    runs: Recent[str, None] = field(default_factory=lambda: Recent(_MOST_RUNS))
    last_report: float = 0.0
    """When it arrived, by the listener's clock: that of the driver is another one under Spark Connect."""
    phases: Mapping[str, float] = field(default_factory=dict)
    offsets_behind: OffsetsBehind | None = None
    positions: Positions = field(default_factory=Positions)
    trigger_seconds: float | None = None
    """As Spark knows it, None where it cannot be asked."""
    measured_seconds: float | None = None
    """Its trigger's interval by `measure_trigger`."""
    triggered: tuple[float, float] | None = None
    """When its last trigger began, and when its micro-batch ended."""

    def measure_trigger(self, began: float | None, ended: float | None) -> None:
        """
        Take the time between two triggers for the interval, where the query waited for longer than it does without one.

        No event has the interval, and under Spark Connect no client can ask for it. A query's first trigger comes at once and the second at a
        multiple of the interval, so that the first measurement may be too short. Batches in Real-Time Mode do not wait.
        """
        if began is None or ended is None:
            return
        if self.triggered is not None and began - self.triggered[1] > _REPORTS_IDLE:
            self.measured_seconds = began - self.triggered[0]
        self.triggered = (began, ended)


class QueryStates:
    """
    The queries of an application, by id. `now` is in seconds since 1970.

    Args:
        trigger: asked once for each run.
        most: how many are known at a time; when there are more, one that ended is forgotten, if there is one.

    """

    def __init__(self, trigger: TriggerReader = lambda _: None, most: int = 1_000) -> None:
        self._trigger = trigger
        self._most = most
        self._queries: dict[str, _QueryState] = {}
        self.forgotten = 0

    def started(self, event: QueryStarted, now: float) -> None:
        """A query starts or is started again."""
        self._running(event.query, event.run, now, event.name)

    def progressed(self, event: QueryProgressed, now: float) -> None:
        """A micro-batch ended."""
        query = self._running(event.query, event.run, now, event.name)
        query.phases = event.phases
        query.offsets_behind = event.offsets_behind
        query.positions.add(event)
        query.measure_trigger(event.began, event.ended)

    def idle(self, event: QueryIdle, now: float) -> None:
        """A query has nothing to do."""
        query = self._running(event.query, event.run, now)
        query.positions.idle()
        query.measure_trigger(event.time, event.time)

    def terminated(self, event: QueryTerminated) -> None:
        """A run ended; it may have been followed by another already."""
        query = self._queries.get(event.query)
        if query is not None and next(reversed(query.runs), None) == event.run:
            query.active = False

    def name(self, query: str) -> str:
        """The name of the query with this id; the id itself where there is none."""
        known = self._queries.get(query)
        return query if known is None else known.name

    def snapshots(self, now: float) -> tuple[QuerySnapshot, ...]:
        """One for each name, sorted."""
        by_name: dict[str, list[_QueryState]] = {}
        for query in self._queries.values():
            by_name.setdefault(query.name, []).append(query)
        return tuple(_snapshot(by_name[name], now) for name in sorted(by_name))

    def _running(self, query: str, run: str, now: float, name: str = "") -> _QueryState:
        """The state of a query that reports now; a run that was not seen before is counted."""
        known = self._queries.get(query)
        if known is None:
            if len(self._queries) >= self._most:
                ended = (key for key, each in self._queries.items() if not each.active)
                del self._queries[next(ended, next(iter(self._queries)))]
                self.forgotten += 1
            known = self._queries[query] = _QueryState(name or query)
        known.name = name or known.name
        known.last_report = now
        if run not in known.runs:
            known.starts += 1
            known.active = True
            known.trigger_seconds = self._trigger(query)
            known.triggered = known.measured_seconds = None
            known.positions.restarted()
        known.runs[run] = None
        return known


def _snapshot(queries: Iterable[_QueryState], now: float) -> QuerySnapshot:
    """Of queries with the same name, the numbers of the one seen last, and the restarts of all."""
    queries = list(queries)
    latest = max(queries, key=lambda query: (query.active, query.last_report))
    behind = latest.offsets_behind
    return QuerySnapshot(
        name=latest.name,
        active=latest.active,
        restarts=sum(max(0, query.starts - 1) for query in queries),
        phases=latest.phases,
        progress_age_seconds=max(0.0, now - latest.last_report) if latest.active else None,
        trigger_seconds=(latest.trigger_seconds or latest.measured_seconds) if latest.active else None,
        max_offsets_behind=None if behind is None else behind.most,
        avg_offsets_behind=None if behind is None else behind.average,
        catch_up=latest.positions.catch_up(),
    )
