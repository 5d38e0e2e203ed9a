"""One collection at a time, shared by all requests that come while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from quotascope.metrics.catalog.teams import Team
from quotascope.metrics.catalog.thresholds import DEFAULTS, SharedThresholds
from quotascope.metrics.kafka.entities import QuotaType

from ..cardinality import Cardinality
from ..discovery import Roster
from ..join.join import Join
from ..limits.refresh import LimitsRefresh
from ..mapping import BeanTable
from ..shadow import Shadows
from ..snapshot import OwnHealth, Shadow, Snapshot, SourceRead, TeamSums
from ..sources.source import Source
from ..steady import steady
from ..teams import SoldKeeper, TeamAdder, TeamCounter
from .reads import Reads, States
from .sampling import WINDOW_SECONDS, PeakKeeper

_SOURCE_SHARE: Final = 0.5
"""
Longest wait for a source, as a share of the longest time of a collection.

The other half is for the join and for writing the answer.
"""


@dataclass(slots=True)
class _RunningCollection:
    """A collection under way. Times are times of the event loop's clock."""

    began: float
    ends: float
    """Time at which it ends with the reads that are complete by then."""
    expired: asyncio.Event
    """Event that is set at ``ends``."""
    task: asyncio.Task[Snapshot]
    waiting: int = 0
    """Number of callers that wait for it."""


class Collection:
    """
    Makes snapshots on demand.

    Args:
        sources: The sources to read.
        limits: The configured limits.
        max_age_seconds: Maximum age of a snapshot that is returned again.
        clock: Function that returns Unix time in seconds.
        cardinality: The bounds on the number of series; None shows all entities.
        patience_seconds: Time for which a collection continues even when no request waits for it any more.
        own_health: Function that returns the state of the exporter's own work.
        window_seconds: Time over which maxima are kept, when the exporter samples.
        shadows: The candidates to evaluate.
        steady: Function that returns steady seconds, which no one sets. Ages are measured by them.
        thresholds: The thresholds of the alerts.
        teams: The teams.
        capacity: The configured capacity of each broker, by quota type.

    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a snapshot is made of
        self,
        sources: Sequence[Source] | Roster,
        limits: LimitsRefresh,
        max_age_seconds: float = 1.0,
        clock: Callable[[], float] = time.time,
        cardinality: Cardinality | None = None,
        patience_seconds: float = 9.0,
        own_health: Callable[[], OwnHealth] = OwnHealth,
        window_seconds: float = WINDOW_SECONDS,
        shadows: Shadows | None = None,
        steady: Callable[[], float] = steady,
        thresholds: SharedThresholds = DEFAULTS,
        teams: Sequence[Team] = (),
        capacity: Mapping[QuotaType, float] | None = None,
    ) -> None:
        self._roster = sources if isinstance(sources, Roster) else Roster(sources)
        self._limits = limits
        self._max_age_seconds = max_age_seconds
        self._clock, self._steady = clock, steady
        self._cardinality = cardinality
        self._patience_seconds = patience_seconds
        self._own = own_health
        self._reads = Reads(steady)
        self._states = States()
        self._join = Join()
        self._placing = asyncio.Lock()
        """Held while a thread uses the join."""
        self._shadows = shadows
        self._thresholds = thresholds
        self._sold = SoldKeeper(capacity)
        self._teams = tuple(teams)
        self._adder = TeamAdder(teams) if teams else None
        self._counter = TeamCounter()
        self._peaks = PeakKeeper(window_seconds)
        self._run: _RunningCollection | None = None
        self._fresh_until = float("-inf")
        self.latest: Snapshot | None = None
        """The last snapshot, whatever its age."""
        self.latest_began = float("-inf")
        """Time at which the collection of the last snapshot began, by the event loop's clock."""

    async def snapshot(self, timeout_seconds: float) -> Snapshot:
        """
        Return a snapshot, within about ``timeout_seconds``.

        It is the last one while that is recent enough, the one under way, or a new one. Sources that have not answered
        in time are shown with their last numbers, or as down if they have none.
        """
        loop = asyncio.get_running_loop()
        if self.latest is not None and loop.time() < self._fresh_until:
            return self.latest
        run = self._run
        if run is not None and not run.task.done() and run.waiting == 0:
            if loop.time() - run.began > self._max_age_seconds:
                run.expired.set()  # numbers of that age would be no answer
                await asyncio.wait({run.task})
            run = self._run  # another request may have begun one meanwhile
        if run is None or run.task.done():
            run = self._run = self._begin(max(self._patience_seconds, timeout_seconds))
        can_wait_for_end = loop.time() + timeout_seconds >= run.ends
        run.waiting += 1
        try:
            await asyncio.wait({run.task}, timeout=None if can_wait_for_end else timeout_seconds)
        finally:
            run.waiting -= 1
        async with self._placing:
            if run.task.done():
                return run.task.result()
            # the time of this request is over, the collection is not: it gets what was read so far
            return self._make_snapshot(self._reads.so_far(), over=False)

    def configure(  # noqa: PLR0913, PLR0917 - as the class
        self,
        max_age_seconds: float,
        patience_seconds: float,
        window_seconds: float,
        shadows: Shadows | None = None,
        thresholds: SharedThresholds = DEFAULTS,
        teams: Sequence[Team] = (),
        capacity: Mapping[QuotaType, float] | None = None,
    ) -> None:
        """
        Use other bounds of time, shadows, thresholds, teams and capacities from the next collection on.

        If the window has another length, its maxima begin from scratch.
        """
        self._sold.configured = dict(capacity or {})
        if tuple(teams) != self._teams:
            self._teams = tuple(teams)
            self._adder = TeamAdder(teams) if teams else None
        self._shadows, self._thresholds = shadows, thresholds
        self._max_age_seconds = max_age_seconds
        self._patience_seconds = patience_seconds
        if window_seconds != self._peaks.window_seconds:
            self._peaks = PeakKeeper(window_seconds)

    async def close(self) -> None:
        """End the collection under way and release the sources' connections."""
        if self._run is not None:
            self._run.task.cancel()
            await asyncio.wait({self._run.task})
        await self._reads.keep_only(())
        await self._roster.close()

    def _begin(self, longest_seconds: float) -> _RunningCollection:
        """Begin a collection that ends after ``longest_seconds`` at the latest."""
        loop = asyncio.get_running_loop()
        now_seconds, expired = loop.time(), asyncio.Event()
        timer = loop.call_later(longest_seconds, expired.set)
        task = loop.create_task(self._collect(longest_seconds * _SOURCE_SHARE, expired))

        def on_end(task: asyncio.Task[Snapshot]) -> None:
            timer.cancel()
            if not task.cancelled():
                task.exception()  # marks the error as retrieved, even if no caller is left to retrieve it

        task.add_done_callback(on_end)
        return _RunningCollection(now_seconds, now_seconds + longest_seconds, expired, task)

    async def _collect(self, source_seconds: float, expired: asyncio.Event) -> Snapshot:
        """
        Read the sources, join them with the limits, and return the snapshot.

        Args:
            source_seconds: Longest wait for a source.
            expired: Event that ends the waits for sources and limits.

        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        await wait_unless(expired, self._roster.settled.wait())
        await self._reads.keep_only(self._roster.all)
        async with self._roster.reading() as sources:
            self._reads.begin(sources, source_seconds)
            await wait_unless(expired, self._reads.wait(), self._limits.settled.wait())
        await self._place()
        await self._look_up_teams()
        reads = self._reads.so_far()
        self._roster.record(reads)
        snapshot = self._make_snapshot(reads, over=True, began=began)
        self.latest, self.latest_began = snapshot, began
        self._fresh_until = began + self._max_age_seconds
        return snapshot

    def _tables(self) -> list[BeanTable]:
        """Return the tables that were read so far, one for each node."""
        reads = self._roster.one_table_per_node(self._reads.so_far())
        return [source_read.table for source_read in reads if source_read.table is not None]

    async def _place(self) -> None:
        """
        Find the rows of new entities in a thread if they are many, as after a start or with other quotas.

        Every request waits for that, also one that cannot wait for the collection. The event loop serves others
        meanwhile.
        """
        while self._join.is_long(tables := self._tables(), limits := self._limits.limits):
            async with self._placing:
                await asyncio.to_thread(self._join.layout, tables, limits)

    async def _look_up_teams(self) -> None:
        """
        Find the teams of new entities in a thread if they are many, as after a start or with another file of teams.

        The snapshot of a request that cannot wait for the collection finds them on the event loop.
        """
        adder = None
        while self._adder is not adder:  # a reload may have happened meanwhile
            adder = self._adder
            if adder is not None:
                await adder.look_up(self._join.layout(self._tables(), self._limits.limits))

    def _make_snapshot(self, reads: Sequence[SourceRead], *, over: bool, began: float | None = None) -> Snapshot:
        """
        Return a snapshot of the reads.

        Args:
            reads: The results of the sources.
            over: Whether the collection is over, so that the state of a source is final.
            began: Time at which the collection began, by the event loop's clock; None while it is under way.

        """
        limits, own_health, taken_at, boot_seconds = self._limits, self._own(), self._clock(), self._steady()
        reads_by_node = [
            source_read.on_clock(taken_at, boot_seconds) for source_read in self._roster.one_table_per_node(reads)
        ]
        health = limits.health_on_clock(taken_at, boot_seconds)
        joined = replace(
            self._join.snapshot(reads_by_node, limits.limits, health, taken_at, boot_seconds),
            thresholds=self._thresholds,
        )
        # shadows and sums include all entities, so they come before entities are folded
        shadows = self._evaluate_shadows(joined, reads_by_node)
        teams = self._add_up_teams(joined, began)
        sold = self._sold.update(joined)
        capped = self._cardinality.apply(joined) if self._cardinality else joined
        now_seconds = asyncio.get_running_loop().time()
        peaks = None if own_health.sampling is None else self._peaks.update(capped, now_seconds)
        sources = self._states.update(joined.sources, over=over)
        health_fields = {field.name: getattr(own_health, field.name) for field in fields(OwnHealth)}
        return replace(capped, sources=sources, peaks=peaks, shadows=shadows, teams=teams, sold=sold, **health_fields)

    def _evaluate_shadows(self, joined: Snapshot, reads: Iterable[SourceRead]) -> tuple[Shadow, ...]:
        """Return the shadows on a snapshot; nodes with late or stale reads count as nodes with old numbers."""
        if self._shadows is None:
            return ()
        late = {
            source_read.table.node_id
            for source_read in reads
            if source_read.table and (source_read.health.late or source_read.health.stale)
        }
        return self._shadows.evaluate(joined, late)

    def _add_up_teams(self, joined: Snapshot, began: float | None) -> TeamSums | None:
        """Return the sums of the teams, and count their bytes if a collection is over; None without teams."""
        if self._adder is None:
            return None
        sums = self._adder.add_up(joined)
        if began is None:
            return self._counter.with_counters(sums)
        return self._counter.count(sums, self._adder.usage_on_fresh_nodes(joined, sums), joined, began)


async def wait_unless(expired: asyncio.Event, *coroutines: Coroutine[object, object, object]) -> None:
    """
    Wait until all coroutines are done or the event is set, and cancel the coroutines that are not done.

    Raises the exception of a coroutine.
    """
    tasks = list(map(asyncio.ensure_future, coroutines))
    end = asyncio.ensure_future(expired.wait())
    everything = asyncio.gather(*tasks)
    watched: set[asyncio.Future[Any]] = {everything, end}
    try:
        await asyncio.wait(watched, return_when="FIRST_COMPLETED")
    finally:
        for task in (*tasks, end):
            task.cancel()
        outcomes = await asyncio.gather(*tasks, end, everything, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
