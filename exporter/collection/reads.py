"""Reads all sources at the same time, each for as long as it takes, and shows what there is when a scrape has to be answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import structlog

from ..errors import SourceError
from ..snapshot import SourceHealth, SourceRead
from ..sources.source import Source

STALE_AFTER_SECONDS: Final = 120.0
"""Numbers that were asked for longer ago are not shown any more: the source is down until its read ends."""

log = structlog.get_logger()


class Reads:
    """
    The reads of all sources, which may last longer than the collections that began them.

    A source has one read under way at most. One that takes longer than a scrape can wait is
    read in the background, and the next collections show its last numbers with their age.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._of: dict[int, _SourceReads] = {}
        """By the identity of the source."""
        self._asked: list[_SourceReads] = []
        self._patience_seconds = 0.0

    def begin(self, sources: Iterable[Source], patience_seconds: float) -> None:
        """Read each source that is not being read, for a collection that waits so long for each."""
        self._patience_seconds = patience_seconds
        self._asked = []
        for source in sources:
            each = self._of.get(id(source))
            if each is None:
                each = self._of[id(source)] = _SourceReads(source, self._clock)
            if each.task is None or each.task.done():
                each.begun = asyncio.get_running_loop().time()
                each.task = asyncio.create_task(each.read())
            self._asked.append(each)

    async def done(self) -> None:
        """
        Wait until every source has answered or failed that is likely to do so in time.

        No read is waited for when it is older than the patience, or when the one before took longer and can still be shown.
        """
        now, patience = asyncio.get_running_loop().time(), self._patience_seconds
        waits = []
        for each in self._asked:
            late_before = each.took > patience and each.recent(now) is not None
            if each.task is not None and not late_before:
                left = max(0.0, each.begun + patience - now)
                waits.append(asyncio.wait({each.task}, timeout=left))
        await asyncio.gather(*waits)
        self._patience_seconds = 0.0  # whatever the timers' resolution, it is over

    def so_far(self) -> list[SourceRead]:
        """What each source gave until now, in their order."""
        return [each.shown(self._patience_seconds) for each in self._asked]

    async def keep_only(self, sources: Iterable[Source]) -> None:
        """End the reads of all other sources, and forget what these gave."""
        tasks = []
        for key in self._of.keys() - set(map(id, sources)):
            task = self._of.pop(key).task
            if task is not None:
                task.cancel()
                tasks.append(task)
        await asyncio.gather(*tasks, return_exceptions=True)


class _SourceReads:
    """One source: the read under way, and what became of the one before. Times are those of the event loop's clock."""

    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self.task: asyncio.Task[None] | None = None
        self.begun = 0.0
        self.took = 0.0
        """Seconds that the last read took."""
        self._last: SourceRead | None = None
        self._last_begun = 0.0

    def recent(self, now: float) -> SourceRead | None:
        """What the read before gave, unless that is too old to be shown."""
        old = now - self._last_begun > STALE_AFTER_SECONDS
        return None if old else self._last

    def shown(self, patience_seconds: float) -> SourceRead:
        """The outcome of this read, or that of the one before while this one is not over."""
        now = asyncio.get_running_loop().time()
        waited = now - self.begun
        read = self.recent(now)
        if read is None:
            text, last = f"no answer after {waited:.1f} s", self._last
            if last is not None:
                text += f", and its last values are older than {STALE_AFTER_SECONDS:g} s"
            text += "; the read continues in the background"
            if last is not None and last.health.up and self.took > waited:
                text += f". The last one took {self.took:.1f} s: raise Prometheus's scrape_timeout to more than twice as long, or read between scrapes (collection.sample_every_seconds)"
            read = self._failed(text, waited)
        if self.task is None or self.task.done():
            return read
        pending = max(waited, self.took) < patience_seconds
        health = replace(read.health, pending=pending, late=read.health.up and not pending)
        return replace(read, health=health)

    async def read(self) -> None:
        """Read once, and keep how that ended."""
        loop, source, asked_at = asyncio.get_running_loop(), self._source, self._clock()
        started = loop.time()
        try:
            table = await source.read()
        except SourceError as error:
            read = self._failed(str(error), loop.time() - started)
        except Exception as error:
            # not promised by any source, but the others are still worth showing
            log.debug("a source failed unexpectedly", source=source.name, exc_info=True)
            read = self._failed(f"unexpected {type(error).__name__}: {error}", loop.time() - started)
        else:
            health = SourceHealth(
                name=source.name,
                dialect=source.dialect,
                up=True,
                duration_seconds=loop.time() - started,
                readings=len(table.values),
                read_at=asked_at,
                remark=table.remark,
                hint=table.hint,
            )
            read = SourceRead(health=health, table=table)
        self._last, self._last_begun = read, self.begun
        self.took = loop.time() - self.begun

    def _failed(self, error: str, seconds: float) -> SourceRead:
        name, dialect = self._source.name, self._source.dialect
        health = SourceHealth(name=name, dialect=dialect, up=False, duration_seconds=seconds, error=error)
        return SourceRead(health=health, table=None)


class States:
    """Whether each source was up in the last collection, and how much its last successful read gave."""

    def __init__(self) -> None:
        self._up: dict[str, bool] = {}
        self._readings: dict[str, int] = {}

    def shown(self, sources: Sequence[SourceHealth], *, over: bool) -> tuple[SourceHealth, ...]:
        """
        The sources of a collection, those that are down with their last known number of readings.

        When it is ``over``, changes are logged, and sources that are not among these forgotten. One that may
        still answer in time has not changed yet.
        """
        shown, names = [], set()
        for health in sources:
            names.add(health.name)
            if over and not health.pending:
                before = self._up.get(health.name)
                self._up[health.name] = health.up
                if health.up:
                    self._readings[health.name] = health.readings
                if health.up and not before:
                    event = "source is up" if before is None else "source is up again"
                    log.info(event, source=health.name, readings=health.readings)
                if not health.up and before is not False:
                    error = health.error
                    log.warning("source is down", source=health.name, error=error)
            known = self._readings.get(health.name, 0)
            shown.append(health if health.up else replace(health, readings=known))
        for name in self._up.keys() - names if over else ():
            del self._up[name]
            self._readings.pop(name, None)
        return tuple(shown)
