"""Reads all sources at the same time, and gives up on those that are late."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import structlog

from ..errors import SourceError
from ..snapshot import SourceHealth, SourceRead
from ..sources.source import Source

log = structlog.get_logger()


async def read_all(
    sources: Sequence[Source],
    expired: asyncio.Event,
    also: Coroutine[object, object, None],
) -> list[SourceRead]:
    """
    One read of each source, in their order, whatever became of it.

    Waits for ``also`` as well. What is not done when ``expired`` is set is cancelled.
    """
    started = asyncio.get_running_loop().time()
    reads = [asyncio.create_task(_read(source)) for source in sources]
    others = [asyncio.create_task(also), asyncio.create_task(_wait(expired))]
    everything = asyncio.gather(*reads, others[0], return_exceptions=True)
    watched: set[asyncio.Future[Any]] = {everything, others[1]}
    try:
        await asyncio.wait(watched, return_when="FIRST_COMPLETED")
    finally:
        for task in (*reads, *others):
            task.cancel()
        await asyncio.gather(*reads, *others, return_exceptions=True)
    waited = asyncio.get_running_loop().time() - started
    return [
        _abandoned(source, waited) if task.cancelled() else task.result()
        for source, task in zip(sources, reads, strict=True)
    ]


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


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
