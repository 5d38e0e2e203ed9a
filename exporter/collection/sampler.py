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

    async def snapshot(self, timeout_seconds: float) -> Snapshot:
        """A snapshot, an earlier one if that is recent enough."""
        ...


class Sampler:
    """
    Asks for a snapshot at an interval, sharing those that scrapes ask for.

    Timed from the start, whatever a read takes: a read that takes longer than the pause costs the
    samples that were due meanwhile, which are counted, and never makes two at once. It counts on from ``before``.
    """

    def __init__(
        self,
        collection: Sampled,
        every_seconds: float,
        timeout_seconds: float,
        before: Sampling | None = None,
    ) -> None:
        self._collection = collection
        self._every_seconds = every_seconds
        self._timeout_seconds = timeout_seconds
        self.sampling = before or Sampling()
        """How it goes."""

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
            taken = 1
            try:
                await self._collection.snapshot(self._timeout_seconds)
            except Exception:
                log.exception("a sample failed")
                taken = 0
            missed = max(0, int((now() - due) // self._every_seconds))
            self.sampling = Sampling(
                samples=self.sampling.samples + taken,
                missed=self.sampling.missed + missed,
            )
            due += (1 + missed) * self._every_seconds
