"""A collection under way, and who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..snapshot import Snapshot


class Run:
    """
    Makes one snapshot for everybody who asks meanwhile.

    Args:
        work: Makes it; it has to end soon after the event is set.
        longest_seconds: When the event is set.

    """

    def __init__(
        self,
        work: Callable[[asyncio.Event], Coroutine[object, object, Snapshot]],
        longest_seconds: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._started = loop.time()
        self._ends = self._started + longest_seconds
        self._expired = asyncio.Event()
        self._timer = loop.call_later(longest_seconds, self._expired.set)
        self._waiting = 0
        self.task = asyncio.create_task(work(self._expired))
        self.task.add_done_callback(self._ended)

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.task.done()

    async def result(self, seconds: float) -> Snapshot | None:
        """The snapshot, or None when it is not made within this time; the run goes on all the same."""
        loop = asyncio.get_running_loop()
        patient = loop.time() + seconds >= self._ends
        self._waiting += 1
        try:
            await asyncio.wait({self.task}, timeout=None if patient else seconds)
        finally:
            self._waiting -= 1
        return self.task.result() if self.done else None

    def abandoned(self, after_seconds: float) -> bool:
        """Whether it is older than this, and nobody waits for it any more."""
        age = asyncio.get_running_loop().time() - self._started
        return self._waiting == 0 and age > after_seconds

    async def expire(self) -> None:
        """End it now, with what there is."""
        self._expired.set()
        await asyncio.wait({self.task})

    async def cancel(self) -> None:
        """End it without a result."""
        self.task.cancel()
        await asyncio.wait({self.task})

    def _ended(self, task: asyncio.Task[Snapshot]) -> None:
        self._timer.cancel()
        if not task.cancelled():
            task.exception()  # seen, even when all who asked have gone


async def unless(
    expired: asyncio.Event, *work: Coroutine[object, object, object]
) -> None:
    """Wait for all of these, or until the event is set; what is not done then is cancelled. Raises what they raise."""
    tasks = [asyncio.ensure_future(each) for each in work]
    end = asyncio.ensure_future(expired.wait())
    everything = asyncio.gather(*tasks)
    watched: set[asyncio.Future[Any]] = {everything, end}
    try:
        await asyncio.wait(watched, return_when="FIRST_COMPLETED")
    finally:
        for task in (*tasks, end):
            task.cancel()
        outcomes = await asyncio.gather(*tasks, end, everything, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
