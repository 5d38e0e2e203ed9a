"""
Calls that block, in threads beside the event loop.

``asyncio.to_thread`` is for work of our own that surely ends. What can hang, or take longer than the pause until it is
called again, goes through ``BlockingCalls``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Lock, Thread
from typing import Final, TypeVar

from .errors import ExporterError, SourceUnreachable

_Result = TypeVar("_Result")
_LONGEST_CLOSE_SECONDS: Final = 2.0
ANSWERS: Final = ThreadPoolExecutor(max_workers=16, thread_name_prefix="answers")
"""Threads that decode the answers of agents; the cost of the answers decides which are decoded at once."""

RENDERING: Final = ThreadPoolExecutor(max_workers=4, thread_name_prefix="rendering")
"""
Threads that render scrapes, apart from asyncio's own: looking up the host of an agent blocks one of those, for long if
no name server answers.
"""


class BlockingCalls:
    """
    The blocking calls of one owner, one at a time.

    A thread cannot be ended: that of a call that was canceled runs on. Until it ends, further calls are refused, so
    that calls that take too long pile up neither threads nor memory.

    Args:
        name: Name of the threads.
        error: Raised while an earlier call still runs.
        busy: The message of that error.

    """

    def __init__(
        self, name: str, error: type[ExporterError] = ExporterError, busy: str = "the last attempt has not ended yet"
    ) -> None:
        self._name = name
        self._error, self._message = error, busy
        self._busy = Lock()

    def check(self) -> None:
        """Raise the owner's error while an earlier call still runs."""
        if self._busy.locked():
            raise self._error(self._message)

    async def run(self, call: Callable[[], _Result], pool: Executor | None = None) -> _Result:
        """
        Return the call's result or exception, from a thread of ``pool`` or else a daemon thread.

        Raises as ``check``.
        """
        self.check()
        self._busy.acquire()
        try:
            work = pool.submit(call) if pool else in_daemon_thread(self._name, call)
        except BaseException:
            self._busy.release()
            raise
        work.add_done_callback(lambda _: self._busy.release())  # also for a call that never began
        try:
            return await asyncio.wrap_future(work)
        finally:
            del work  # an error holds this frame and so the result: a cycle, which the garbage collector finds late

    async def close(self, call: Callable[[], object]) -> None:
        """
        Run the call that ends the others, beside one that still runs, for two seconds at most.

        Its errors are ignored.
        """
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_LONGEST_CLOSE_SECONDS):
                await asyncio.wrap_future(in_daemon_thread(f"{self._name}-close", call))


def answer_thread() -> BlockingCalls:
    """
    Return a thread that decodes the answers of one source.

    The source is not asked while its last answer is still decoded.
    """
    return BlockingCalls(
        "answers",
        SourceUnreachable,
        "its last answer is still being read: it is too long for this machine, or for the time between two scrapes; "
        "max_answer_bytes can bound it",
    )


def in_daemon_thread(name: str, call: Callable[[], _Result]) -> Future[_Result]:
    """Start a call in a thread that, unlike an executor's, does not keep the process alive when the call hangs."""
    work: Future[_Result] = Future()
    work.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            work.set_exception(error)
        else:
            work.set_result(result)

    Thread(target=run, name=name, daemon=True).start()
    return work
