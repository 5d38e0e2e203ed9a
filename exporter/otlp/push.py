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
from ..logs import FailureLog
from ..snapshot import PushHealth, Snapshot
from ..steady import steady
from ..threads import BlockingCalls
from ..untrusted import shown

log = structlog.get_logger()

LONGEST_FLUSH_SECONDS = 5.0
"""Longest wait for the last push at the end, whatever the timeout of a request is."""
LONGEST_PAUSE_SECONDS: Final = 600.0
"""Longest pause that a receiver can ask for: a mistake there must not end pushes for a day."""
FORGET_AFTER_SECONDS: Final = 3600.0
"""Seconds after which an unseen counter is forgotten, as Kafka forgets the sensors of an idle entity."""


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
    """The outcome of a push."""

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
    """Points rejected by a receiver that took others of the same request."""
    lost: int = 0
    """The receiver was not reached, or refused the request."""
    reason: str = ""
    """Why some were not accepted; free of secrets."""
    pause_seconds: float = 0.0
    """Time that the receiver asks to be left alone (`Retry-After` of HTTP); 0 when it does not."""

    @property
    def outcome(self) -> Outcome:
        """The result in one word."""
        has_only_reason = self.reason and not self.accepted and not self.rejected
        if self.lost or has_only_reason:
            return Outcome.FAILURE
        return Outcome.PARTIAL if self.rejected else Outcome.SUCCESS


class PushCounts:
    """Adds up the results of pushes. ``receiver`` is the name of the other side in log lines."""

    def __init__(self, receiver: str) -> None:
        self._pushes: Counter[Outcome] = Counter()
        self._points = Counter(accepted=0, rejected=0, lost=0)
        self.switch(receiver)

    @property
    def failing(self) -> bool:
        """Return whether the last push failed."""
        return self._last is Outcome.FAILURE

    @property
    def health(self) -> PushHealth:
        """All counts, including the zeros that ``increase()`` needs."""
        return PushHealth(
            exports_total={outcome.value: self._pushes[outcome] for outcome in Outcome},
            points_total=dict(self._points),
            error=self._reason,
        )

    def switch(self, receiver: str) -> None:
        """Continue to count with another receiver; its first result is logged."""
        self.receiver = receiver
        self._last: Outcome | None = None
        self._reason: str | None = None
        self._failures = {
            Outcome.PARTIAL: FailureLog("the receiver rejects some points"),
            Outcome.FAILURE: FailureLog("metrics cannot be pushed"),
        }

    def add(self, result: PushResult) -> None:
        """Count a push, and log it if its outcome is not that of the push before."""
        outcome = result.outcome
        self._pushes[outcome] += 1
        self._points.update(accepted=result.accepted, rejected=result.rejected, lost=result.lost)
        previous, self._last = self._last, outcome
        self._reason = None if outcome is Outcome.SUCCESS else (result.reason or None)
        if outcome is not previous:
            for failures in self._failures.values():
                failures.works()
        if outcome is Outcome.SUCCESS:
            if outcome is not previous:
                log.info("metrics are pushed", receiver=self.receiver, points=result.accepted)
        else:
            details = {"rejected": result.rejected} if outcome is Outcome.PARTIAL else {}
            self._failures[outcome].fails(result.reason or "", receiver=self.receiver, **details)


class _Count(NamedTuple):
    start_ns: int
    seen_ns: int
    value: float


class Starts:
    """
    The start times of counters, which OTLP requires, and which neither Kafka nor Prometheus's format has.

    The exporter's own counters start when it does. Any other counter starts when it is first seen here: its first point
    starts and ends at the same time, which in OTLP's data model means that the true start is unknown. A counter that
    has become smaller starts when it was last seen, since its node was started again after that.

    A start is Unix time. It stays the same when the clock is set, since another start means another counter, unless it
    would be later than the point. Arguments ``steady`` are seconds of a clock that is never set.
    """

    def __init__(self, began_ns: int) -> None:
        self._began_ns = began_ns
        self._counts = Expiring[tuple[str, bytes], _Count](FORGET_AFTER_SECONDS)

    def of(self, family: Family, series: Mapping[bytes, float], at_ns: int, steady: float) -> list[int]:
        """Return the start of each series of a family in Unix time; ``series`` has their values at ``at_ns``."""
        if family.name.startswith("quotascope_"):
            self._began_ns = min(self._began_ns, at_ns)
            return [self._began_ns] * len(series)
        starts = []
        for key, value in series.items():
            last_count = self._counts.get((family.name, key))
            start = at_ns
            if last_count is not None:
                was_reset = value < last_count.value
                start = min(at_ns, last_count.seen_ns if was_reset else last_count.start_ns)
            self._counts.see((family.name, key), _Count(start, at_ns, value), steady)
            starts.append(start)
        return starts

    def forget(self, steady: float) -> None:
        """Drop the counters that have not been seen for an hour."""
        self._counts.expire(steady)


class SnapshotSender(Protocol):
    """Pushes a snapshot."""

    def send(self, snapshot: Snapshot, now_seconds: float) -> PushResult:
        """Push, and wait for the answers. May block; never runs twice at once."""
        ...

    def close(self) -> None:
        """End the push that is under way."""
        ...


class OtlpPush:
    """
    Sends a snapshot at every interval, from the beginning of one push to that of the next, and a last one at the end.

    ``open_sender`` makes the sender when the URL of this exporter is known; log lines name the ``receiver``.
    ``clock`` returns steady seconds, by which numbers age.
    """

    def __init__(
        self,
        open_sender: Callable[[str], SnapshotSender],
        receiver: str,
        interval_seconds: float,
        clock: Callable[[], float] = steady,
        starts: Starts | None = None,
    ) -> None:
        self._open_sender = open_sender
        self._interval_seconds = interval_seconds
        self._clock = clock
        self.counts = PushCounts(receiver)
        """The outcomes of all pushes: their ``health`` is the state of pushing."""
        self.starts = Starts(time.time_ns()) if starts is None else starts
        self._sender: SnapshotSender | None = None
        self._calls = BlockingCalls("otlp-push")
        self._task: asyncio.Task[None] | None = None
        self._sending: asyncio.Future[PushResult] | None = None

    def resume(self, counts: PushCounts) -> None:
        """Continue with the counts of another push that has ended, or will end before this one starts."""
        counts.switch(self.counts.receiver)
        self.counts = counts

    def open(self, url: str) -> SnapshotSender:
        """Make the sender, unless there is one. ``url`` is the address of this exporter."""
        if self._sender is None:
            self._sender = self._open_sender(url)
        return self._sender

    def start(self, url: str, collect: Callable[[], Awaitable[Snapshot]]) -> None:
        """Start pushing in the running loop. ``url`` is the address of this exporter."""
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
                if self._sending is not None:
                    self.counts.add(await self._sending)
                elif not self.counts.failing:
                    await self._push(self._sender)
        self._sender.close()

    async def _run(self, sender: SnapshotSender) -> None:
        """Push at the interval, or later if the receiver asks for a pause, until canceled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._interval_seconds
            result = await self._push(sender)
            pause_seconds = min(result.pause_seconds, LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(max(due - loop.time(), pause_seconds))

    async def _push(self, sender: SnapshotSender) -> PushResult:
        """Collect and send one snapshot, and count the result."""

        async def collect_and_send() -> PushResult:
            snapshot = await self._collect()
            now_seconds = snapshot.time_at(self._clock())
            call = self._calls.run(lambda: sender.send(snapshot, now_seconds))
            self._sending = asyncio.ensure_future(_settled(call))
            return await asyncio.shield(self._sending)

        result = await _settled(collect_and_send())
        self._sending = None
        self.counts.add(result)
        return result


async def _settled(result: Awaitable[PushResult]) -> PushResult:
    """Return the result of a push; for one that raises an error, a result without points and with the reason."""
    try:
        return await result
    except Exception as error:
        log.debug("a push failed unexpectedly", exc_info=True)
        return PushResult(reason=f"unexpected {type(error).__name__}: {shown(error)}")
