"""Pushes snapshots at an interval, beside the scrapes; counts how that goes, and logs when it changes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit, urlunsplit

import structlog

from quotascope.metrics.catalog import Family

from ..config import OtlpProtocol
from ..expiry import Expiring
from ..snapshot import PushHealth, Snapshot
from ..threads import BlockingCalls
from ..untrusted import shown

log = structlog.get_logger()

LONGEST_FLUSH_SECONDS = 5.0
"""Longest wait for the last push at the end, whatever the timeout of a request is."""
FORGET_AFTER_NS: Final = 3600 * 10**9
"""Kafka keeps the sensors of an idle entity that long, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpReceiver:
    """A receiver, and how to send to it."""

    protocol: OtlpProtocol
    endpoint: str = field(repr=False)
    """The complete URL for HTTP; scheme, host and port for gRPC."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | None = None
    """Path of a PEM file, as the next two; None for none."""
    cert_file: str | None = None
    key_file: str | None = None
    gzip: bool = True
    timeout_seconds: float = 10.0
    """Longest time for one request, further attempts included."""

    @property
    def place(self) -> str:
        """The endpoint as it may be shown: a query can hold a key."""
        return urlunsplit(urlsplit(self.endpoint)._replace(query="", fragment=""))


class Outcome(StrEnum):
    """What became of a push."""

    SUCCESS = "success"
    PARTIAL = "partial"
    """The receiver rejected some points."""
    FAILURE = "failure"
    """Some points did not reach the receiver, or it took none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """The points of one push by what became of them."""

    accepted: int = 0
    rejected: int = 0
    """By a receiver that took others of the same request."""
    lost: int = 0
    """The receiver was not reached, or refused the request."""
    reason: str = ""
    """Why some were not accepted; free of secrets."""

    @property
    def outcome(self) -> Outcome:
        """The result in one word."""
        if self.lost or (self.reason and not self.accepted and not self.rejected):
            return Outcome.FAILURE
        return Outcome.PARTIAL if self.rejected else Outcome.SUCCESS


class PushCounts:
    """Adds up the results of pushes. ``receiver`` is how log lines call the other side."""

    def __init__(self, receiver: str) -> None:
        self._pushes: Counter[Outcome] = Counter()
        self._points = Counter(accepted=0, rejected=0, lost=0)
        self.switch(receiver)

    @property
    def failing(self) -> bool:
        """Whether the last push failed."""
        return self._last is Outcome.FAILURE

    @property
    def health(self) -> PushHealth:
        """All counts, with the zeros that ``increase()`` needs."""
        return PushHealth(
            exports_total={each.value: self._pushes[each] for each in Outcome},
            points_total=dict(self._points),
        )

    def switch(self, receiver: str) -> None:
        """Continue to count with another receiver; its first result is logged."""
        self.receiver = receiver
        self._last: Outcome | None = None

    def add(self, result: PushResult) -> None:
        """Count a push, and log it if its outcome is not that of the push before."""
        outcome = result.outcome
        self._pushes[outcome] += 1
        self._points.update(accepted=result.accepted, rejected=result.rejected, lost=result.lost)
        before, self._last = self._last, outcome
        if outcome is before:
            return
        line = log.bind(receiver=self.receiver)
        if outcome is Outcome.SUCCESS:
            line.info("metrics are pushed", points=result.accepted)
        elif outcome is Outcome.PARTIAL:
            event = "the receiver rejects some points"
            line.warning(event, rejected=result.rejected, error=result.reason)
        else:
            line.warning("metrics cannot be pushed", error=result.reason)


class _Count(NamedTuple):
    start_ns: int
    seen_ns: int
    value: float


class Starts:
    """
    Since when counters count: OTLP wants it of each, and neither Kafka nor Prometheus's format has it.

    The exporter's own counters count since it began. Any other counts since it was first seen here: its
    first point starts and ends at the same time, which in OTLP's data model means that the true start is
    not known. When a counter has become smaller, its node was started again since the counter was seen last.
    """

    def __init__(self, began_ns: int) -> None:
        self._began_ns = began_ns
        self._counts = Expiring[tuple[str, bytes], _Count](FORGET_AFTER_NS)

    def of(self, family: Family, series: Mapping[bytes, float], at_ns: int) -> list[int]:
        """The starts of a family's series, Unix time; ``series`` are their values at ``at_ns`` by a key."""
        if family.name.startswith("quotascope_"):
            return [min(self._began_ns, at_ns)] * len(series)
        starts = []
        for one, value in series.items():
            last = self._counts.get((family.name, one))
            if last is None or last.seen_ns > at_ns:  # the clock was set back
                start = at_ns
            else:
                start = last.seen_ns if value < last.value else last.start_ns
            self._counts.see((family.name, one), _Count(start, at_ns, value), at_ns)
            starts.append(start)
        return starts

    def forget(self, at_ns: int) -> None:
        """Drop the counters that have not been seen for an hour."""
        self._counts.expire(at_ns)


class SnapshotSender(Protocol):
    """Pushes a snapshot."""

    def send(self, snapshot: Snapshot, now: float) -> PushResult:
        """Push, and wait for the answers. May block; never runs twice at once."""
        ...

    def close(self) -> None:
        """End what is under way."""
        ...


class OtlpPush:
    """
    Sends a snapshot at every interval, from the beginning of one push to that of the next, and a last one at the end.

    ``open_sender`` makes the sender when the URL of this exporter is known; log lines name the ``receiver``.
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
        self.counts = PushCounts(receiver)
        """What became of all pushes: their ``health`` is how pushing goes."""
        self.starts = Starts(time.time_ns()) if starts is None else starts
        self._sender: SnapshotSender | None = None
        self._calls = BlockingCalls("otlp-push")
        self._task: asyncio.Task[None] | None = None
        self._sending: asyncio.Future[PushResult] | None = None

    def resume(self, before: OtlpPush) -> None:
        """Continue to count where another push has ended, or will end before this one starts."""
        before.counts.switch(self.counts.receiver)
        self.counts = before.counts

    def open(self, url: str) -> SnapshotSender:
        """Make the sender, unless there is one. ``url`` is where this exporter answers."""
        if self._sender is None:
            self._sender = self._open_sender(url)
        return self._sender

    def start(self, url: str, collect: Callable[[], Awaitable[Snapshot]]) -> None:
        """Begin, in the running loop. ``url`` is where this exporter answers."""
        self._collect = collect
        self._task = asyncio.create_task(self._run(self.open(url)))

    async def close(self) -> None:
        """Wait for the push under way, or else send a last snapshot, unless the receiver is down; then stop."""
        if self._task is None or self._sender is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_FLUSH_SECONDS):
                if self._sending is not None and not self._sending.done():
                    self.counts.add(await _settled(self._sending))
                elif not self.counts.failing:
                    await self._push(self._sender)
        self._sender.close()

    async def _run(self, sender: SnapshotSender) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._interval_seconds
            await self._push(sender)
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def _push(self, sender: SnapshotSender) -> None:
        async def sent() -> PushResult:
            snapshot, now = await self._collect(), self._clock()
            call = self._calls.run(lambda: sender.send(snapshot, now))
            self._sending = asyncio.ensure_future(call)
            return await asyncio.shield(self._sending)

        self.counts.add(await _settled(sent()))


async def _settled(result: Awaitable[PushResult]) -> PushResult:
    """The result of a push, also of one that raises."""
    try:
        return await result
    except Exception as error:
        log.debug("a push failed unexpectedly", exc_info=True)
        return PushResult(reason=f"unexpected {type(error).__name__}: {shown(error)}")
