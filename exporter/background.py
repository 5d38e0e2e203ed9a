"""Tasks in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

AGAIN_SECONDS: Final = 10.0
"""The pause before lasting work that failed starts again."""

log = structlog.get_logger()


class Background:
    """
    Tasks, each under a name, so that one of them can be stopped and started again.

    A failure is logged with its traceback. Lasting work starts again after ``AGAIN_SECONDS``, without a limit;
    ``restarts`` counts that.
    """

    def __init__(self, pause: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._pause = pause
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.restarts: dict[str, int] = {}
        """Failures after which lasting work was started again, by its name; 0 if it never failed."""

    def start(self, name: str, work: Callable[[], Awaitable[None]], *, lasting: bool = False) -> None:
        """
        Start in the running loop; earlier work of this name must have been stopped.

        ``lasting`` work never ends without a failure.
        """
        if lasting:
            self.restarts.setdefault(name, 0)
        task = asyncio.create_task(self._guarded(name, work, lasting=lasting))
        task.set_name(f"quotascope {name}")
        self._tasks[name] = task

    async def _guarded(self, name: str, work: Callable[[], Awaitable[None]], *, lasting: bool) -> None:
        """Do the work, log its failure, and begin again if it is lasting."""
        while True:
            try:
                await work()
            except Exception:
                log.exception(
                    "background work failed, which is a defect of quotascope",
                    work=name,
                    again_in_seconds=AGAIN_SECONDS if lasting else None,
                )
            if not lasting:
                return
            self.restarts[name] += 1
            await self._pause(AGAIN_SECONDS)

    async def stop(self, *names: str) -> None:
        """End the work with these names, if there is any, and wait until it has ended."""
        tasks = [self._tasks.pop(name) for name in names if name in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """End all work."""
        await self.stop(*self._tasks)
