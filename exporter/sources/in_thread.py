"""Reads what a source answered in a thread, so that a large answer keeps nobody else waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Final, TypeVar

from ..errors import SourceUnreachable

_Result = TypeVar("_Result")
_POOL: Final = ThreadPoolExecutor(max_workers=16, thread_name_prefix="answers")
"""Of its own: where scrapes are rendered, no answer can take all threads."""


class InThread:
    """
    The thread of one source: never two of its answers at a time.

    A thread cannot be ended: that of a read that was cancelled goes on. Until it is done the source is not even asked,
    so that one whose answers take longer than the pause between two scrapes piles up neither threads nor answers.
    """

    def __init__(self) -> None:
        self._busy = Lock()

    def check(self) -> None:
        """Raise ``SourceUnreachable`` while an earlier answer is still being read."""
        if self._busy.locked():
            raise SourceUnreachable(
                "its last answer is still being read: it is too long for this machine, or for the time between two scrapes; "
                "max_answer_bytes can bound it"
            )

    async def run(self, read: Callable[[], _Result]) -> _Result:
        """What ``read`` returns. Raises what it raises, and ``SourceUnreachable`` as ``check`` does."""
        self.check()
        self._busy.acquire()
        try:
            work = _POOL.submit(read)
        except BaseException:
            self._busy.release()
            raise
        work.add_done_callback(lambda _: self._busy.release())  # also if it never began
        return await asyncio.wrap_future(work)
