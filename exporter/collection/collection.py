"""One collection at a time, shared by all requests that come while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
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
from ..snapshot import OwnHealth, Shadow, Snapshot, SourceRead
from ..sources.source import Source
from ..steady import steady
from ..teams import SoldKeeper, TeamAdder, TeamCounter
from .reads import Reads, States
from .sampling import WINDOW_SECONDS, PeakKeeper

_SHARE: Final = 0.5
"""
The longest wait for a source, as a share of the time of a collection: the rest is for joining and writing the answer.
"""


@dataclass(slots=True)
class _UnderWay:
    """A collection under way; times are those of the event loop's clock."""

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

    Each is no older than ``max_age_seconds``: the last one, the one being made, or a new one. A collection continues
    for ``patience_seconds`` even when no request waits for it any more. Without ``cardinality`` all entities are shown.
    ``window_seconds`` is how far back maxima reach, when there is sampling. ``clock`` gives Unix time in seconds,
    ``steady`` seconds that no one sets, by which ages are measured, entities and nodes are forgotten and throttle
    episodes last.
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
        self._run: _UnderWay | None = None
        self._fresh_until = float("-inf")
        self.latest: Snapshot | None = None
        """The last snapshot, whatever its age."""
        self.latest_began = float("-inf")
        """Start of its collection by the event loop's clock, which no one sets back."""

    async def snapshot(self, timeout_seconds: float) -> Snapshot:
        """
        Return a snapshot, within about ``timeout_seconds``.

        Sources that have not answered by then are shown with their last numbers, or as down where there are none.
        """
        loop = asyncio.get_running_loop()
        if self.latest is not None and loop.time() < self._fresh_until:
            return self.latest
        run = self._run
        if run is not None and not run.task.done() and run.waiting == 0:
            if loop.time() - run.began > self._max_age_seconds:
                run.expired.set()  # numbers of that age would be no answer
                await asyncio.wait({run.task})
            run = self._run
        if run is None or run.task.done():
            run = self._run = self._begun(max(self._patience_seconds, timeout_seconds))
        patient = loop.time() + timeout_seconds >= run.ends
        run.waiting += 1
        try:
            await asyncio.wait({run.task}, timeout=None if patient else timeout_seconds)
        finally:
            run.waiting -= 1
        async with self._placing:
            if run.task.done():
                return run.task.result()
            return self._made(self._reads.so_far(), over=False)

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
        Have other bounds of time, shadows, thresholds, teams and capacities from the next collection on.

        Maxima of a window of another length begin from scratch.
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

    def _begun(self, longest_seconds: float) -> _UnderWay:
        loop = asyncio.get_running_loop()
        now_seconds, expired = loop.time(), asyncio.Event()
        timer = loop.call_later(longest_seconds, expired.set)
        task = loop.create_task(self._collect(longest_seconds * _SHARE, expired))

        def ended(task: asyncio.Task[Snapshot]) -> None:
            timer.cancel()
            if not task.cancelled():
                task.exception()  # marks the error as retrieved, even when all who asked have gone

        task.add_done_callback(ended)
        return _UnderWay(now_seconds, now_seconds + longest_seconds, expired, task)

    async def _collect(self, patience: float, expired: asyncio.Event) -> Snapshot:
        """Read, join and cap; end soon after the event is set."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await unless(expired, self._roster.settled.wait())
        await self._reads.keep_only(self._roster.all)
        async with self._roster.reading() as sources:
            self._reads.begin(sources, patience)
            await unless(expired, self._reads.done(), self._limits.settled.wait())
        await self._place()
        await self._look_up_teams()
        reads = self._reads.so_far()
        self._roster.note(reads)
        snapshot = self._made(reads, over=True, began=began)
        self.latest, self.latest_began = snapshot, began
        self._fresh_until = began + self._max_age_seconds
        return snapshot

    def _tables(self) -> list[BeanTable]:
        """Return the tables that were read so far, one for each node."""
        reads = self._roster.once_each(self._reads.so_far())
        return [source_read.table for source_read in reads if source_read.table is not None]

    async def _place(self) -> None:
        """
        Find the rows of new entities, in a thread if they are many, as after a start or with other quotas.

        A request that cannot wait for a collection waits for this all the same: the event loop serves others meanwhile.
        """
        while self._join.is_long(tables := self._tables(), limits := self._limits.limits):
            async with self._placing:
                await asyncio.to_thread(self._join.layout, tables, limits)

    async def _look_up_teams(self) -> None:
        """
        Find the teams of new entities, in a thread if they are many, as after a start or with another file of teams.

        Where a request cannot wait for that, its own snapshot finds them on the event loop.
        """
        adder = None
        while self._adder is not adder:  # a reload may have happened meanwhile
            adder = self._adder
            if adder is not None:
                await adder.look_up(self._join.layout(self._tables(), self._limits.limits))

    def _made(self, reads: Sequence[SourceRead], *, over: bool, began: float | None = None) -> Snapshot:
        """Return the snapshot of these reads, whether the collection that ``began`` then is ``over`` or not."""
        limits, own_health, taken_at, boot_seconds = self._limits, self._own(), self._clock(), self._steady()
        reads_by_node = [source_read.on_clock(taken_at, boot_seconds) for source_read in self._roster.once_each(reads)]
        health = limits.health_on_clock(taken_at, boot_seconds)
        joined = replace(
            self._join.snapshot(reads_by_node, limits.limits, health, taken_at, boot_seconds),
            thresholds=self._thresholds,
        )
        shadows: tuple[Shadow, ...] = ()
        if self._shadows is not None:
            late = {
                source_read.table.node_id
                for source_read in reads_by_node
                if source_read.table and (source_read.health.late or source_read.health.stale)
            }
            shadows = self._shadows.evaluate(joined, late)
        # before entities are folded, since sums include all of them
        teams = None
        if self._adder is not None:
            teams = self._adder.of(joined)
            if began is None:
                teams = self._counter.shown(teams)
            else:
                teams = self._counter.count(teams, self._adder.fresh(joined, teams), joined, began)
        sold = self._sold.of(joined)
        capped = self._cardinality.apply(joined) if self._cardinality else joined
        now_seconds = asyncio.get_running_loop().time()
        peaks = None if own_health.sampling is None else self._peaks.update(capped, now_seconds)
        sources = self._states.shown(joined.sources, over=over)
        health_fields = {field.name: getattr(own_health, field.name) for field in fields(OwnHealth)}
        return replace(capped, sources=sources, peaks=peaks, shadows=shadows, teams=teams, sold=sold, **health_fields)


async def unless(expired: asyncio.Event, *work: Coroutine[object, object, object]) -> None:
    """
    Wait for all of these tasks, or until the event is set; cancel those that are not done.

    Raises what a task raises.
    """
    tasks = list(map(asyncio.ensure_future, work))
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
