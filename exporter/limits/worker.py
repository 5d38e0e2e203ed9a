"""A thread for calls that block, which nobody has to wait for at the end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ..errors import LimitsError

_Result = TypeVar("_Result")


class Worker:
    """
    Runs one blocking call at a time in a daemon thread.

    Unlike an executor's, such a thread does not keep the process alive when a call
    hangs, and calls do not queue up behind one that does.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._busy = False

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """The call's result or exception. Raises ``LimitsError`` while an abandoned call still runs."""
        if self._busy:
            raise LimitsError("the last attempt has not ended yet")
        self._busy = True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()

        def work() -> None:
            settle = _outcome(call, future)
            self._busy = False
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(settle)

        threading.Thread(target=work, name=self._name, daemon=True).start()
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
