"""Work that goes on beside the answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine


class Background:
    """Tasks, each under a name, so that one of them can be ended and begun again."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Coroutine[object, object, None]) -> None:
        """Begin, in the running loop; what had this name before must have been stopped."""
        self._tasks[name] = asyncio.create_task(work, name=f"quotascope {name}")

    async def stop(self, name: str) -> None:
        """End the work of this name, if there is any, and wait until it has ended."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        """End all work."""
        for name in tuple(self._tasks):
            await self.stop(name)
