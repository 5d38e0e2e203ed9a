"""An event loop whose time jumps to the next timer: no sockets, no sleeps, no threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Final, TypeVar

_Result = TypeVar("_Result")
_MOST_ROUNDS_AT_ONCE: Final = 5_000
"""Rounds of the loop at one moment; work that needs more would never let time go on."""


class Blocked(AssertionError):
    """No event is left, or all are at one moment: the exporter would wait for ever."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """
    An event loop that runs what asyncio schedules, in simulated seconds.

    Calls that a program would make in threads are made in line, and end after the seconds that ``work_seconds`` gives.
    """

    def __init__(self, work_seconds: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__()
        self._at = 0.0
        self._rounds = 0
        self._work_seconds = work_seconds
        self._selector = self  # what BaseEventLoop asks how long to wait

    def time(self) -> float:
        return self._at

    def select(self, timeout: float | None) -> tuple[()]:
        if timeout is None:
            raise Blocked("no timer and no task is left, and the simulation has not ended")
        if timeout > 0:
            # at least the next float, so that a timer within the clock's resolution is due
            self._at = max(self._at + timeout, self._scheduled[0].when())  # type: ignore[attr-defined]
            self._rounds = 0
        self._rounds += 1
        if self._rounds > _MOST_ROUNDS_AT_ONCE:
            raise Blocked(f"work at second {self._at:g} does not end")
        return ()

    def _process_events(self, event_list: tuple[()]) -> None:
        """Do nothing, as all events are timers."""

    def _write_to_self(self) -> None:
        """Do nothing, as no other thread waits."""

    def run_in_executor(  # type: ignore[override]
        self,
        executor: Executor | None,  # noqa: ARG002 - none is used
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        return asyncio.wrap_future(self.in_thread("executor", lambda: func(*args)), loop=self)

    def in_thread(self, _name: str, call: Callable[[], _Result]) -> Future[_Result]:
        """Make the call now, and let its result be known when its work would be over."""
        work: Future[_Result] = Future()
        work.set_running_or_notify_cancel()
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            self._later(work.set_exception, error)
        else:
            self._later(work.set_result, result)
        return work

    def _later(self, end: Callable[..., None], outcome: object) -> None:
        seconds = self._work_seconds()
        if seconds:
            self.call_later(seconds, end, outcome)
        else:
            end(outcome)
