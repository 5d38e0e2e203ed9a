"""Reads between scrapes, at a steady pace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from ..snapshot import Sampling, Snapshot

log = structlog.get_logger()


class Sampled(Protocol):
    """What is sampled: the collection."""

    sampling: Sampling | None

    async def snapshot(self, timeout_seconds: float) -> Snapshot:
        """A snapshot, an earlier one if that is recent enough."""
        ...


class Sampler:
    """
    Asks for a snapshot every so many seconds, sharing those that scrapes ask for.

    Timed from the start, whatever a read takes: a read that takes longer than the pause costs the
    samples that were due meanwhile, which are counted, and never makes two at once.

    Args:
        collection: What is asked.
        every_seconds: From one sample to the next.
        timeout_seconds: Longest wait for one.

    """

    def __init__(
        self, collection: Sampled, every_seconds: float, timeout_seconds: float
    ) -> None:
        self._collection = collection
        self._every_seconds = every_seconds
        self._timeout_seconds = timeout_seconds
        before = collection.sampling or Sampling()
        self._samples, self._missed = before.samples, before.missed
        collection.sampling = before

    async def run(
        self,
        clock: Callable[[], float] | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Sample until cancelled. ``clock`` gives a steady time in seconds, the loop's when None."""
        now = clock or asyncio.get_running_loop().time
        due = now() + self._every_seconds
        while True:
            await pause(max(0.0, due - now()))
            await self._sample()
            late = int((now() - due) // self._every_seconds)
            self._tell(missed=max(0, late))
            due += (1 + max(0, late)) * self._every_seconds

    async def _sample(self) -> None:
        try:
            await self._collection.snapshot(self._timeout_seconds)
        except Exception:
            log.exception("a sample failed")
        else:
            self._samples += 1

    def _tell(self, *, missed: int) -> None:
        self._missed += missed
        self._collection.sampling = Sampling(samples=self._samples, missed=self._missed)
