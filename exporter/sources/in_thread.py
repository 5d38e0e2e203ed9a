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
_LARGE_BYTES: Final = 4 << 20
_LARGE_POOL: Final = ThreadPoolExecutor(
    max_workers=1, thread_name_prefix="large-answers"
)
"""Large answers take turns, so that several agents cannot make us hold all of theirs decoded at once."""


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

    async def run(self, read: Callable[[], _Result], length: int = 0) -> _Result:
        """What ``read`` returns, which reads an answer of ``length`` bytes. Raises what it raises, and ``SourceUnreachable`` as ``check`` does."""
        self.check()
        self._busy.acquire()
        try:
            pool = _LARGE_POOL if length > _LARGE_BYTES else _POOL
            work = pool.submit(read)
        except BaseException:
            self._busy.release()
            raise
        work.add_done_callback(lambda _: self._busy.release())  # also if it never began
        try:
            return await asyncio.wrap_future(work)
        finally:
            del work  # an error holds this frame and so the answer: in a circle with it, until they are looked for
