"""Reads all sources at the same time, and gives up on those that are late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from ..errors import SourceError
from ..snapshot import SourceHealth, SourceRead
from ..sources.source import Source

log = structlog.get_logger()


class Reading:
    """One read of each source, all at the same time, under way since this was made."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self._started = asyncio.get_running_loop().time()
        self._tasks = [asyncio.create_task(_read(source)) for source in self._sources]

    async def done(self) -> None:
        """Wait until every source has answered or failed."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def so_far(self) -> list[SourceRead]:
        """What became of each read until now, in the order of the sources; those that are late count as failed."""
        waited = asyncio.get_running_loop().time() - self._started
        return [
            task.result()
            if task.done() and not task.cancelled()
            else _abandoned(source, waited)
            for source, task in zip(self._sources, self._tasks, strict=True)
        ]

    async def end(self) -> None:
        """Give up on those that are late."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _read(source: Source) -> SourceRead:
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
        remark=table.remark,
        hint=table.hint,
    )
    return SourceRead(health=health, table=table)


def _abandoned(source: Source, waited: float) -> SourceRead:
    text = f"no answer after {waited:.1f} s, when the scrape had to be answered"
    return _failed(source, text, waited)


def _failed(source: Source, error: str, duration: float) -> SourceRead:
    health = SourceHealth(
        name=source.name,
        dialect=source.dialect,
        up=False,
        duration_seconds=duration,
        error=error,
    )
    return SourceRead(health=health, table=None)
