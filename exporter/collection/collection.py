"""One collection at a time, shared by everybody who asks while it runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ..cardinality import Cardinality
from ..discovery import Roster
from ..join import Join
from ..limits.refresh import LimitsKeeper
from ..snapshot import PushHealth, ReloadHealth, Sampling, Snapshot, SourceHealth
from ..sources.source import Source
from .memory import SourceMemory
from .peaks import PeakKeeper
from .reading import Readers, Reading
from .run import Run, unless

_PATIENCE_SECONDS: Final = 9.0
_SHARE: Final = 0.5
"""Of the time of a collection, what it waits for a source at most: the rest is for joining and writing the answer."""


class Collection:
    """
    Makes snapshots on demand.

    Whoever asks gets a snapshot no older than ``max_age_seconds``: the last one, the
    one being made, or a new one. A collection goes on for ``patience_seconds`` even when those who asked have gone.
    ``clock`` gives Unix time in seconds; without ``cardinality`` everybody is shown.
    """

    def __init__(
        self,
        sources: Sequence[Source] | Roster,
        limits: LimitsKeeper,
        max_age_seconds: float = 1.0,
        clock: Callable[[], float] = time.time,
        cardinality: Cardinality | None = None,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._roster = sources if isinstance(sources, Roster) else Roster(sources)
        self._limits = limits
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._cardinality = cardinality
        self._patience_seconds = patience_seconds
        self._join = Join()
        self._memory = SourceMemory()
        self._readers = Readers(clock)
        self._peaks = PeakKeeper()
        self._run: Run | None = None
        self._reading: Reading | None = None
        self._fresh_until = float("-inf")
        self.sampling: Sampling | None = None
        """How reading between scrapes goes, None when only scrapes read."""
        self.push_health: Callable[[], PushHealth | None] = lambda: None
        """How pushing goes, if there is somebody who pushes."""
        self.reload_health: Callable[[], ReloadHealth | None] = lambda: None
        """How reading the configuration again goes, where that can be done."""
        self.restarts: Callable[[], Mapping[str, int]] = dict
        """How often work beside the answers failed and began again, by its name."""
        self.latest: Snapshot | None = None
        """The last snapshot, whatever its age."""
        self.latest_began = float("-inf")
        """When its collection began, by the event loop's clock, which no one sets back."""

    async def snapshot(
        self, timeout_seconds: float, scraper: str | None = None
    ) -> Snapshot:
        """
        A snapshot, within about ``timeout_seconds``.

        Sources that have not answered by then are shown with their last numbers, or as down where there are none. With sampling, a ``scraper`` gets the maxima since it last called.
        """
        snapshot = await self._recent(timeout_seconds)
        return snapshot if scraper is None else self.shown_to(scraper, snapshot)

    def shown_to(self, scraper: str, snapshot: Snapshot) -> Snapshot:
        """With sampling, the snapshot with the maxima since this scraper last got some; they begin anew."""
        if self.sampling is None:
            return snapshot
        at = asyncio.get_running_loop().time()
        peaks = self._peaks.since_last(scraper, snapshot, at)
        return replace(snapshot, sampling=self.sampling, peaks=peaks)

    def configure(self, max_age_seconds: float, patience_seconds: float) -> None:
        """Have other bounds of time from the next collection on."""
        self._max_age_seconds = max_age_seconds
        self._patience_seconds = patience_seconds

    async def close(self) -> None:
        """End the collection under way and release the sources' connections."""
        if self._run is not None:
            await self._run.cancel()
        await self._readers.close()
        await self._roster.close()

    async def _recent(self, timeout_seconds: float) -> Snapshot:
        loop = asyncio.get_running_loop()
        if self.latest is not None and loop.time() < self._fresh_until:
            return self.latest
        run = await self._under_way(timeout_seconds)
        result = await run.result(timeout_seconds)
        return self._so_far() if result is None else result

    async def _under_way(self, timeout_seconds: float) -> Run:
        run = self._run
        if run is not None and not run.done and run.abandoned(self._max_age_seconds):
            await run.expire()  # numbers as old as those would be no answer
            run = self._run
        if run is None or run.done:
            longest = max(self._patience_seconds, timeout_seconds)
            run = self._run = Run(partial(self._collect, longest * _SHARE), longest)
        return run

    async def _collect(self, patience: float, expired: asyncio.Event) -> Snapshot:
        started = asyncio.get_running_loop().time()
        await unless(expired, self._roster.settled())
        await self._readers.keep_only(self._roster.all)
        async with self._roster.reading() as sources:
            self._reading = reading = self._readers.begin(sources, patience)
            await unless(expired, reading.done(), self._limits.settled())
        self._roster.note(reading.so_far())
        snapshot = self._joined(reading, self._memory.complete)
        self._memory.keep_only({source.name for source in snapshot.sources})
        self.latest, self.latest_began = snapshot, started
        self._fresh_until = started + self._max_age_seconds
        if self.sampling is not None:
            self._peaks.note(snapshot, asyncio.get_running_loop().time())
        return snapshot

    def _so_far(self) -> Snapshot:
        """What can be told before the collection under way is over."""
        return self._joined(self._reading or Reading(), self._memory.glance)

    def _joined(
        self, reading: Reading, complete: Callable[[SourceHealth], SourceHealth]
    ) -> Snapshot:
        joined = self._join.snapshot(
            self._roster.once_each(reading.so_far()),
            self._limits.limits,
            self._limits.health,
            self._clock(),
        )
        return self._shown(
            replace(
                joined,
                sources=tuple(map(complete, joined.sources)),
                discoveries=self._roster.discoveries,
                push=self.push_health(),
                reload=self.reload_health(),
                restarts=self.restarts(),
            )
        )

    def _shown(self, joined: Snapshot) -> Snapshot:
        return joined if self._cardinality is None else self._cardinality.apply(joined)
