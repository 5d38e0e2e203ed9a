"""One collection at a time, shared by everybody who asks while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace

from ..cardinality import Cardinality
from ..join import Join
from ..limits.refresh import LimitsKeeper
from ..snapshot import Snapshot
from ..sources.source import Source
from .memory import SourceMemory
from .reading import read_all


class Collection:
    """
    Makes snapshots on demand.

    Whoever asks gets a snapshot no older than ``max_age_seconds``: the last one, the
    one being made, or a new one. ``clock`` gives Unix time in seconds; without ``cardinality``
    everybody is shown.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        limits: LimitsKeeper,
        max_age_seconds: float = 1.0,
        clock: Callable[[], float] = time.time,
        cardinality: Cardinality | None = None,
    ) -> None:
        self._sources = sources
        self._limits = limits
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._cardinality = cardinality
        self._join = Join()
        self._memory = SourceMemory()
        self._run: _Run | None = None
        self._fresh_until = float("-inf")
        self.latest: Snapshot | None = None
        """The last snapshot, whatever its age."""

    async def snapshot(self, timeout_seconds: float) -> Snapshot:
        """
        A snapshot, within about ``timeout_seconds``.

        Sources that have not answered by then are shown as down. Somebody who joins a
        collection with less patience than those before ends it earlier for all.
        """
        loop = asyncio.get_running_loop()
        if self.latest is not None and loop.time() < self._fresh_until:
            return self.latest
        if self._run is None:
            self._run = _Run(self._collect)
            self._run.task.add_done_callback(self._finished)
        self._run.expire_after(timeout_seconds)
        return await asyncio.shield(self._run.task)

    async def close(self) -> None:
        """End the collection under way and release the sources' connections."""
        if self._run is not None:
            self._run.task.cancel()
            await asyncio.wait({self._run.task})
        for source in self._sources:
            await source.close()

    async def _collect(self, expired: asyncio.Event) -> Snapshot:
        started = asyncio.get_running_loop().time()
        reads = await read_all(self._sources, expired, self._limits.settled())
        joined = self._join.snapshot(
            reads, self._limits.limits, self._limits.health, self._clock()
        )
        sources = tuple(map(self._memory.complete, joined.sources))
        snapshot = self._shown(replace(joined, sources=sources))
        self.latest = snapshot
        self._fresh_until = started + self._max_age_seconds
        return snapshot

    def _shown(self, joined: Snapshot) -> Snapshot:
        return joined if self._cardinality is None else self._cardinality.apply(joined)

    def _finished(self, task: asyncio.Task[Snapshot]) -> None:
        if self._run is not None:
            self._run.forget_timers()
        self._run = None
        if not task.cancelled():
            task.exception()  # seen, even when all who asked have gone


class _Run:
    """A collection under way, and when it must end."""

    def __init__(
        self, collect: Callable[[asyncio.Event], Coroutine[object, object, Snapshot]]
    ) -> None:
        self._expired = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []
        self.task = asyncio.create_task(collect(self._expired))

    def expire_after(self, seconds: float) -> None:
        """End the run at this time if no earlier one was set."""
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(seconds, self._expired.set))

    def forget_timers(self) -> None:
        """Cancel what would still end the run."""
        for timer in self._timers:
            timer.cancel()
