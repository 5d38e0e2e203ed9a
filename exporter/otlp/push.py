"""Pushes snapshots at an interval, beside the scrapes and without getting into their way."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

import structlog

from ..snapshot import PushHealth, Snapshot
from ..untrusted import shown
from .ledger import Ledger, Report
from .starts import Starts

log = structlog.get_logger()

LONGEST_FLUSH_SECONDS = 5.0
"""What the end waits at most, however long one request may take."""

_Result = TypeVar("_Result")


class SnapshotSender(Protocol):
    """Who can push a snapshot."""

    def send(self, snapshot: Snapshot, now: float) -> Report:
        """Push, and wait for the answers. May block; never runs twice at once."""
        ...

    def close(self) -> None:
        """End what is under way."""
        ...


class Push:
    """
    Sends a snapshot at every interval, and a last one at the end.

    Args:
        open_sender: Makes the sender when the URL of this exporter is known.
        receiver: How log lines call the other side.
        interval_seconds: From the beginning of one push to that of the next.
        clock: Gives Unix time in seconds.
        starts: Since when counters count.

    """

    def __init__(
        self,
        open_sender: Callable[[str], SnapshotSender],
        receiver: str,
        interval_seconds: float,
        clock: Callable[[], float] = time.time,
        starts: Starts | None = None,
    ) -> None:
        self._open_sender = open_sender
        self._interval_seconds = interval_seconds
        self._clock = clock
        self.ledger = Ledger(receiver)
        """What became of all pushes."""
        self.starts = Starts(time.time_ns()) if starts is None else starts
        self._sender: SnapshotSender | None = None
        self._task: asyncio.Task[None] | None = None
        self._sending: asyncio.Future[Report] | None = None

    @property
    def health(self) -> PushHealth:
        """How pushing goes."""
        return self.ledger.health

    def resume(self, before: Push) -> None:
        """Count on where another push has ended, or will end before this one starts."""
        receiver = self.ledger.receiver
        self.ledger = before.ledger
        self.ledger.begin_anew(receiver)

    def open(self, url: str) -> SnapshotSender:
        """Make what sends, unless that is done. ``url`` is where this exporter answers."""
        if self._sender is None:
            self._sender = self._open_sender(url)
        return self._sender

    def start(self, url: str, collect: Callable[[], Awaitable[Snapshot]]) -> None:
        """Begin, in the running loop. ``url`` is where this exporter answers."""
        sender = self.open(url)
        self._collect = collect
        self._task = asyncio.create_task(self._run(sender))

    async def close(self) -> None:
        """Send what is under way, or else a last snapshot, unless the receiver is down; then stop."""
        if self._task is None or self._sender is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_FLUSH_SECONDS):
                await self._flush(self._sender)
        self._sender.close()

    async def _run(self, sender: SnapshotSender) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._interval_seconds
            await self._push(sender)
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def _flush(self, sender: SnapshotSender) -> None:
        if self._sending is not None and not self._sending.done():
            self.ledger.add(await _settled(self._sending))
        elif not self.ledger.failing:
            await self._push(sender)

    async def _push(self, sender: SnapshotSender) -> None:
        self.ledger.add(await _settled(self._sent(sender)))

    async def _sent(self, sender: SnapshotSender) -> Report:
        snapshot = await self._collect()
        now = self._clock()
        self._sending = in_thread(lambda: sender.send(snapshot, now))
        return await asyncio.shield(self._sending)


async def _settled(report: Awaitable[Report]) -> Report:
    """The report, whatever goes wrong with making it."""
    try:
        return await report
    except Exception as error:
        log.debug("a push failed unexpectedly", exc_info=True)
        return Report(reason=f"unexpected {type(error).__name__}: {shown(error)}")


def in_thread(call: Callable[[], _Result]) -> asyncio.Future[_Result]:
    """
    Run a call that may block in a thread that keeps nobody from exiting.

    The threads of ``asyncio.to_thread`` are waited for at the end of the program.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        if not future.cancelled():
            done()

    def run() -> None:
        try:
            done = partial(future.set_result, call())
        except Exception as error:  # noqa: BLE001 - handed on
            done = partial(future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: none waits
            loop.call_soon_threadsafe(settle, done)

    threading.Thread(target=run, name="otlp-push", daemon=True).start()
    return future
