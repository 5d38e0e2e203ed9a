"""A thread for calls that block, which nobody has to wait for at the end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from .errors import ExporterError

_Result = TypeVar("_Result")
_LONGEST_CLOSE_SECONDS: Final = 2.0


class Worker:
    """
    Runs one blocking call at a time in a daemon thread.

    Unlike an executor's, such a thread does not keep the process alive when a call
    hangs, and calls do not queue up behind one that does.

    Args:
        name: Name of the thread.
        busy: What to raise while an abandoned call still runs.

    """

    def __init__(self, name: str, busy: type[ExporterError] = ExporterError) -> None:
        self._name = name
        self._busy_error = busy
        self._busy = False

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """The call's result or exception. Raises ``busy`` while an abandoned call still runs."""
        if self._busy:
            raise self._busy_error("the last attempt has not ended yet")
        self._busy = True

        def done() -> None:
            self._busy = False

        return await _in_thread(self._name, call, done)

    async def close(self, call: Callable[[], object]) -> None:
        """
        Run the call that ends the others, beside one that still runs, for two seconds at most.

        What it raises is nobody's concern any more.
        """
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_LONGEST_CLOSE_SECONDS):
                await _in_thread(f"{self._name}-close", call, lambda: None)


async def _in_thread(
    name: str, call: Callable[[], _Result], done: Callable[[], None]
) -> _Result:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def work() -> None:
        settle = _outcome(call, future)
        done()
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future


def _outcome(
    call: Callable[[], _Result], future: asyncio.Future[_Result]
) -> Callable[[], None]:
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - raised again where it is awaited
        return partial(_fail, future, error)
    return partial(_succeed, future, result)


def _succeed(future: asyncio.Future[_Result], result: _Result) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[_Result], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
