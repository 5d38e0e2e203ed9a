"""
Reads all sources at the same time, however long a source takes.

A scrape gets the values that are there when it has to be answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

import structlog

from ..errors import SourceError
from ..logs import FailureLog
from ..snapshot import SourceHealth, SourceRead
from ..sources.source import Source
from ..steady import steady

STALE_AFTER_SECONDS: Final = 120.0
"""Maximum age of numbers that are shown. With older ones, the source is down until its read ends."""

_DOWN_SECONDS: Final = 1.0
"""Longest wait for a source whose last read failed after a longer time."""

log = structlog.get_logger()


class Reads:
    """
    Reads all sources. A read may last longer than the collection that began it.

    A source has one read under way at most. A read that takes longer than a scrape can wait continues in the
    background, and the next collections show the last numbers of the source with their age.

    Args:
        clock: Function that returns steady seconds, by which ages are measured.

    """

    def __init__(self, clock: Callable[[], float] = steady) -> None:
        self._clock = clock
        self._by_source: dict[int, _SourceReads] = {}
        """The reads of each source, by its identity."""
        self._current: list[_SourceReads] = []
        """The reads of the sources of the last collection, in their order."""
        self._patience_seconds = 0.0

    def begin(self, sources: Iterable[Source], patience_seconds: float) -> None:
        """Begin a read of each source that is not being read; `wait` waits ``patience_seconds`` for it."""
        self._patience_seconds = patience_seconds
        self._current = []
        for source in sources:
            source_reads = self._by_source.get(id(source))
            if source_reads is None:
                source_reads = self._by_source[id(source)] = _SourceReads(source, self._clock)
            if source_reads.task is None or source_reads.task.done():
                source_reads.begun = asyncio.get_running_loop().time()
                source_reads.task = asyncio.create_task(source_reads.read())
            self._current.append(source_reads)

    async def wait(self) -> None:
        """
        Wait until the sources that are likely to answer in time have answered or failed.

        It does not wait for a read that is older than the patience, nor for a source whose last read took longer and
        can still be shown. If the last read failed after more than a second, it waits one second at most, so that a
        source without useful answers keeps no scrape waiting.
        """
        now_seconds, patience = asyncio.get_running_loop().time(), self._patience_seconds
        waits = []
        for source_reads in self._current:
            can_show_last = source_reads.took > patience and source_reads.recent is not None
            if source_reads.task is not None and not can_show_last:
                longest = min(patience, _DOWN_SECONDS) if source_reads.is_slow_to_fail else patience
                remaining_seconds = max(0.0, source_reads.begun + longest - now_seconds)
                waits.append(asyncio.wait({source_reads.task}, timeout=remaining_seconds))
        await asyncio.gather(*waits)
        self._patience_seconds = 0.0  # the time is over, whatever the timers' resolution

    def so_far(self) -> list[SourceRead]:
        """Return the result of each source so far, in the order of the sources."""
        return [source_reads.result(self._patience_seconds) for source_reads in self._current]

    async def keep_only(self, sources: Iterable[Source]) -> None:
        """End the reads of all other sources, and forget their results."""
        tasks = []
        for key in self._by_source.keys() - set(map(id, sources)):
            task = self._by_source.pop(key).task
            if task is not None:
                task.cancel()
                tasks.append(task)
        await asyncio.gather(*tasks, return_exceptions=True)


class _SourceReads:
    """
    The read of a source that is under way, and the result of the read before.

    Times are times of the event loop's clock, except ``_last_asked``.
    """

    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self.task: asyncio.Task[None] | None = None
        """The read under way, or the last one."""
        self.begun = 0.0
        """Time at which this read began."""
        self.took = 0.0
        """Seconds that the last read took."""
        self._last: SourceRead | None = None
        """The result of the last complete read, also if it failed."""
        self._last_asked = 0.0
        """Time at which the last complete read began, by the clock of ages."""

    @property
    def is_slow_to_fail(self) -> bool:
        """Return whether the last read failed after a long time."""
        return self._last is not None and not self._last.health.up and self.took > _DOWN_SECONDS

    @property
    def recent(self) -> SourceRead | None:
        """The result of the last complete read; None without one, and if it is too old to be shown."""
        is_old = self._clock() - self._last_asked > STALE_AFTER_SECONDS
        return None if is_old else self._last

    def result(self, patience_seconds: float) -> SourceRead:
        """
        Return the result of the last complete read, or a failure if that is too old to be shown.

        While a read is under way, the result says whether that may still answer within ``patience_seconds``.
        """
        waited_seconds = asyncio.get_running_loop().time() - self.begun
        result = self.recent
        if result is None:
            result = self._failure(self._no_answer(waited_seconds), waited_seconds)
        if self.task is None or self.task.done():
            return result
        pending = max(waited_seconds, self.took) < patience_seconds  # if it takes as long as the last one
        health = replace(result.health, pending=pending, late=result.health.up and not pending)
        return replace(result, health=health)

    def _no_answer(self, waited_seconds: float) -> str:
        """Return the error text of a read that has not ended after ``waited_seconds``."""
        text, last_read = f"no answer after {waited_seconds:.1f} s", self._last
        if last_read is not None:
            text += f", and its last values are older than {STALE_AFTER_SECONDS:g} s"
        text += "; the read continues in the background"
        if last_read is not None and last_read.health.up and self.took > waited_seconds:
            text += (
                f". The last one took {self.took:.1f} s: raise Prometheus's scrape_timeout to "
                "more than twice as long, or read between scrapes (collection.sample_every_seconds)"
            )
        return text

    async def read(self) -> None:
        """Read the source, and keep the result."""
        loop, source, asked_at = asyncio.get_running_loop(), self._source, self._clock()
        started = loop.time()
        try:
            table = await source.read()
        except SourceError as error:
            result = self._failure(str(error), loop.time() - started)
        except Exception as error:
            # a defect in one source must not hide the others
            log.debug("a source failed unexpectedly", source=source.name, exc_info=True)
            result = self._failure(f"unexpected {type(error).__name__}: {error}", loop.time() - started)
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

    def _failure(self, error: str, seconds: float) -> SourceRead:
        """Return the result of a read that failed after ``seconds``."""
        name, dialect = self._source.name, self._source.dialect
        health = SourceHealth(name=name, dialect=dialect, up=False, duration_seconds=seconds, error=error)
        return SourceRead(health=health, table=None)


class States:
    """Remembers and logs whether sources are up, and the number of readings of their last successful read."""

    def __init__(self) -> None:
        self._up: dict[str, bool] = {}
        self._readings: dict[str, int] = {}
        self._failures: dict[str, FailureLog] = {}

    def update(self, sources: Sequence[SourceHealth], *, over: bool) -> tuple[SourceHealth, ...]:
        """
        Return the health of the sources of a collection; a source that is down has its last number of readings.

        If the collection is ``over``, log the sources that went up or down, and forget sources that it did not read. A
        source that may still answer in time has not changed yet.
        """
        states = []
        for health in sources:
            if over and not health.pending:
                self._note(health)
            states.append(health if health.up else replace(health, readings=self._readings.get(health.name, 0)))
        if over:
            self._forget_except({health.name for health in sources})
        return tuple(states)

    def _note(self, health: SourceHealth) -> None:
        """Remember the state of a source, and log it if it has changed."""
        name, was_up = health.name, self._up.get(health.name)
        self._up[name] = health.up
        if health.up:
            self._readings[name] = health.readings
        if health.up and not was_up:
            event = "source is up" if was_up is None else "source is up again"
            log.info(event, source=name, readings=health.readings)
        failures = self._failures.setdefault(name, FailureLog("source is down"))
        if health.up:
            failures.works()
        else:
            failures.fails(health.error or "", source=name)

    def _forget_except(self, names: AbstractSet[str]) -> None:
        """Forget the sources with other names."""
        for name in self._up.keys() - names:
            del self._up[name]
            self._readings.pop(name, None)
            self._failures.pop(name, None)
