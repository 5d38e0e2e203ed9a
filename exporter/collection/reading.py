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


class Readers:
    """
    The reads of all sources, which go on beside the collections that began them.

    A source has one read under way at most. One that takes longer than a scrape can wait is
    read in the background, and the next collections show its last numbers with their age.

    Args:
        clock: Unix time in seconds.

    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._of: dict[int, _Reader] = {}

    def begin(self, sources: Iterable[Source], patience_seconds: float) -> Reading:
        """A read of each source that has none under way, for a collection that waits so long for each."""
        readers = [
            self._of.setdefault(id(source), _Reader(source, self._clock))
            for source in sources
        ]
        for reader in readers:
            reader.begin()
        return Reading(readers, patience_seconds)

    async def keep_only(self, sources: Iterable[Source]) -> None:
        """End the reads of all other sources, and forget what these gave."""
        kept = set(map(id, sources))
        gone = [self._of.pop(key) for key in self._of.keys() - kept]
        await asyncio.gather(*(reader.end() for reader in gone))

    async def close(self) -> None:
        """End all reads."""
        await self.keep_only(())


class Reading:
    """The reads that one collection waits for."""

    def __init__(
        self, readers: Sequence[_Reader] = (), patience_seconds: float = 0.0
    ) -> None:
        self._readers = readers
        self._patience_seconds = patience_seconds

    async def done(self) -> None:
        """
        Wait until every source has answered or failed that is likely to do so in time.

        No read is waited for when it is older than the patience, or when the one before took longer and can still be shown.
        """
        patience = self._patience_seconds
        await asyncio.gather(*(each.wait(patience) for each in self._readers))
        self._patience_seconds = 0.0  # whatever the timers' resolution, it is over

    def so_far(self) -> list[SourceRead]:
        """What each source gave until now, in their order."""
        return [reader.shown(self._patience_seconds) for reader in self._readers]


class _Reader:
    """One source: the read under way, and what became of the one before."""

    def __init__(self, source: Source, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._begun = 0.0
        self._last: SourceRead | None = None
        self._last_begun = 0.0
        self._took = 0.0

    def begin(self) -> None:
        if self._task is None or self._task.done():
            self._begun = asyncio.get_running_loop().time()
            self._task = asyncio.create_task(self._read())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait(self, patience_seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        if self._task is None or (
            self._took > patience_seconds and self._recent(now) is not None
        ):
            return
        left = max(0.0, patience_seconds - (now - self._begun))
        await asyncio.wait({self._task}, timeout=left)

    def shown(self, patience_seconds: float) -> SourceRead:
        """The outcome of this read, or that of the one before while this one is not over."""
        now = asyncio.get_running_loop().time()
        waited = now - self._begun
        read = self._recent(now) or self._late(waited)
        if self._task is None or self._task.done():
            return read
        pending = max(waited, self._took) < patience_seconds
        health = replace(
            read.health, pending=pending, late=read.health.up and not pending
        )
        return replace(read, health=health)

    def _recent(self, now: float) -> SourceRead | None:
        """What the read before gave, unless that is too old to be shown."""
        old = now - self._last_begun > STALE_AFTER_SECONDS
        return None if old else self._last

    def _late(self, waited: float) -> SourceRead:
        older = f", and its last numbers are older than {STALE_AFTER_SECONDS:g} s"
        text = f"no answer after {waited:.1f} s{older if self._last else ''}; the read continues in the background"
        return _failed(self._source, text, waited)

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        asked_at = self._clock()
        read = await _outcome(self._source, asked_at)
        self._last, self._last_begun = read, self._begun
        self._took = loop.time() - self._begun


async def _outcome(source: Source, asked_at: float) -> SourceRead:
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        table = await source.read()
    except SourceError as error:
        return _failed(source, str(error), loop.time() - started)
    except Exception as error:
        # not promised by any source, but the others are still worth showing
        log.debug("a source failed unexpectedly", source=source.name, exc_info=True)
        text = f"unexpected {type(error).__name__}: {error}"
        return _failed(source, text, loop.time() - started)
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
    return SourceRead(health=health, table=table)


def _failed(source: Source, error: str, duration: float) -> SourceRead:
    health = SourceHealth(
        name=source.name,
        dialect=source.dialect,
        up=False,
        duration_seconds=duration,
        error=error,
    )
    return SourceRead(health=health, table=None)
