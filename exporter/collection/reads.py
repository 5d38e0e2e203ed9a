"""
Reads all sources at the same time, each for as long as it takes.

A scrape gets the values that are there when it has to be answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import structlog

from ..errors import SourceError
from ..logs import FailureLog
from ..snapshot import SourceHealth, SourceRead
from ..sources.source import Source
from ..steady import steady

STALE_AFTER_SECONDS: Final = 120.0
"""Numbers that were asked for longer ago are not shown any more: the source is down until its read ends."""

_DOWN_SECONDS: Final = 1.0
"""Longest wait for a source whose last read failed, and took longer: once it is up, the next scrape shows it."""

log = structlog.get_logger()


class Reads:
    """
    The reads of all sources, which may last longer than the collections that began them.

    A source has one read under way at most. One that takes longer than a scrape can wait is
    read in the background, and the next collections show its last numbers with their age, by ``clock``: steady seconds.
    """

    def __init__(self, clock: Callable[[], float] = steady) -> None:
        self._clock = clock
        self._of: dict[int, _SourceReads] = {}
        """The reads of each source, by its identity."""
        self._asked: list[_SourceReads] = []
        self._patience_seconds = 0.0

    def begin(self, sources: Iterable[Source], patience_seconds: float) -> None:
        """Begin a read of each source that is not being read; the collection waits so many seconds for each."""
        self._patience_seconds = patience_seconds
        self._asked = []
        for source in sources:
            source_reads = self._of.get(id(source))
            if source_reads is None:
                source_reads = self._of[id(source)] = _SourceReads(source, self._clock)
            if source_reads.task is None or source_reads.task.done():
                source_reads.begun = asyncio.get_running_loop().time()
                source_reads.task = asyncio.create_task(source_reads.read())
            self._asked.append(source_reads)

    async def done(self) -> None:
        """
        Wait until each source that is likely to answer in time has answered or failed.

        A read is not waited for when it is older than the patience, or when the read before took longer and can still
        be shown. The wait is a second at most when the read before failed after more than a second: a source without
        useful answers keeps no scrape waiting.
        """
        now_seconds, patience = asyncio.get_running_loop().time(), self._patience_seconds
        waiting_tasks = []
        for source_reads in self._asked:
            late_before = source_reads.took > patience and source_reads.recent is not None
            if source_reads.task is not None and not late_before:
                longest = min(patience, _DOWN_SECONDS) if source_reads.is_slow_to_fail else patience
                remaining_seconds = max(0.0, source_reads.begun + longest - now_seconds)
                waiting_tasks.append(asyncio.wait({source_reads.task}, timeout=remaining_seconds))
        await asyncio.gather(*waiting_tasks)
        self._patience_seconds = 0.0  # the time is over, whatever the timers' resolution

    def so_far(self) -> list[SourceRead]:
        """Return the results of the sources so far, in their order."""
        return [source_reads.shown(self._patience_seconds) for source_reads in self._asked]

    async def keep_only(self, sources: Iterable[Source]) -> None:
        """End the reads of all other sources, and forget their results."""
        tasks = []
        for key in self._of.keys() - set(map(id, sources)):
            task = self._of.pop(key).task
            if task is not None:
                task.cancel()
                tasks.append(task)
        await asyncio.gather(*tasks, return_exceptions=True)


class _SourceReads:
    """
    One source: the read under way, and the outcome of the one before.

    Times are those of the event loop's clock, but for ``_last_asked``.
    """

    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self.task: asyncio.Task[None] | None = None
        self.begun = 0.0
        self.took = 0.0
        """Seconds that the last read took."""
        self._last: SourceRead | None = None
        self._last_asked = 0.0
        """Time at which the read before was begun, by the clock of ages."""

    @property
    def is_slow_to_fail(self) -> bool:
        """Return whether the last read failed, and took long for that."""
        return self._last is not None and not self._last.health.up and self.took > _DOWN_SECONDS

    @property
    def recent(self) -> SourceRead | None:
        """The result of the earlier read, unless that is too old to be shown."""
        old = self._clock() - self._last_asked > STALE_AFTER_SECONDS
        return None if old else self._last

    def shown(self, patience_seconds: float) -> SourceRead:
        """Return the outcome of this read, or that of the one before while this one is not over."""
        waited_seconds = asyncio.get_running_loop().time() - self.begun
        result = self.recent
        if result is None:
            text, last_read = f"no answer after {waited_seconds:.1f} s", self._last
            if last_read is not None:
                text += f", and its last values are older than {STALE_AFTER_SECONDS:g} s"
            text += "; the read continues in the background"
            if last_read is not None and last_read.health.up and self.took > waited_seconds:
                text += (
                    f". The last one took {self.took:.1f} s: raise Prometheus's scrape_timeout to "
                    "more than twice as long, or read between scrapes (collection.sample_every_seconds)"
                )
            result = self._failed(text, waited_seconds)
        if self.task is None or self.task.done():
            return result
        pending = max(waited_seconds, self.took) < patience_seconds
        health = replace(result.health, pending=pending, late=result.health.up and not pending)
        return replace(result, health=health)

    async def read(self) -> None:
        """Read once, and keep the outcome."""
        loop, source, asked_at = asyncio.get_running_loop(), self._source, self._clock()
        started = loop.time()
        try:
            table = await source.read()
        except SourceError as error:
            result = self._failed(str(error), loop.time() - started)
        except Exception as error:
            # no source promises to raise this, but the other sources are still worth showing
            log.debug("a source failed unexpectedly", source=source.name, exc_info=True)
            result = self._failed(f"unexpected {type(error).__name__}: {error}", loop.time() - started)
        else:
            health = SourceHealth(
                name=source.name,
                dialect=source.dialect,
                up=True,
                duration_seconds=loop.time() - started,
                readings=len(table.values),
                remark=table.remark,
                hint=table.hint,
                node_id=table.node_id,
                stale=table.stale,
            )
            result = SourceRead(health=health, table=table, asked_at=asked_at - table.age_seconds)
        self._last, self._last_asked = result, asked_at
        self.took = loop.time() - self.begun

    def _failed(self, error: str, seconds: float) -> SourceRead:
        name, dialect = self._source.name, self._source.dialect
        health = SourceHealth(name=name, dialect=dialect, up=False, duration_seconds=seconds, error=error)
        return SourceRead(health=health, table=None)


class States:
    """The state of each source in the last collection, and the number of readings of its last successful read."""

    def __init__(self) -> None:
        self._up: dict[str, bool] = {}
        self._readings: dict[str, int] = {}
        self._failures: dict[str, FailureLog] = {}

    def shown(self, sources: Sequence[SourceHealth], *, over: bool) -> tuple[SourceHealth, ...]:
        """
        Return the state of each source; one that is down has its last known number of readings.

        When the collection is ``over``, log changes, and forget sources that are not among these. A source that may
        still answer in time has not changed yet.
        """
        exposed, names = [], set()
        for health in sources:
            names.add(health.name)
            if over and not health.pending:
                was_up = self._up.get(health.name)
                self._up[health.name] = health.up
                if health.up:
                    self._readings[health.name] = health.readings
                if health.up and not was_up:
                    event = "source is up" if was_up is None else "source is up again"
                    log.info(event, source=health.name, readings=health.readings)
                failures = self._failures.setdefault(health.name, FailureLog("source is down"))
                if health.up:
                    failures.works()
                else:
                    failures.fails(health.error or "", source=health.name)
            readings = self._readings.get(health.name, 0)
            exposed.append(health if health.up else replace(health, readings=readings))
        for name in self._up.keys() - names if over else ():
            del self._up[name]
            self._readings.pop(name, None)
            self._failures.pop(name, None)
        return tuple(exposed)
