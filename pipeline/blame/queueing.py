"""
A broker's handler threads as servers of one queue, first in, first out: how long its requests wait under other arrivals.

Kafka has one queue for all listeners of a broker (`RequestChannel.requestQueue`) and `num.io.threads` handlers that take from it
(`KafkaRequestHandlerPool`). The k-th request in order of arrival is taken by the thread that is free first, so the waits follow from arrivals
and holding times alone (Kiefer and Wolfowitz, 1955). An instant at which all threads are free starts the queue from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..replay.compiled import Flags, Floats, Ints, kernel, run

MOST_THREADS: Final = 128
"""Handler threads that are looked for where their number is not given."""
MOST_ERROR: Final = 0.25
"""The mean wait as simulated may differ from the logged one by this part of it; else no prediction is made."""
CLOCK_US: Final = 100.0
"""A difference of mean waits below this is no error: logged times are a millisecond apart, and waking a thread takes about as long."""
_MOST_REQUESTS: Final = 200_000
"""Requests, those that wait longest, by which the number of threads is estimated."""


class Queue(NamedTuple):
    """Requests in order of arrival, us."""

    arrivals: Ints
    holds: Ints
    """How long each holds a handler thread."""
    present: Flags
    """0 for one that never comes."""


class Waits(NamedTuple):
    """What the queue writes: waits in us, and by thread when it is free."""

    waits: Ints
    free: Ints


Waits.WRITTEN = True  # type: ignore[attr-defined]


@kernel
def serve(queue: Queue, made: Waits) -> None:
    """Give each request to the thread that is free first."""
    threads = len(made.free)
    for row in range(len(queue.arrivals)):
        if queue.present[row] == 0:
            continue
        first = 0
        for thread in range(1, threads):
            if made.free[thread] < made.free[first]:
                first = thread
        begin = max(queue.arrivals[row], made.free[first])
        made.waits[row] = begin - queue.arrivals[row]
        made.free[first] = begin + queue.holds[row]


def waits_of(
    arrivals: Ints, holds: Ints, threads: int, present: NDArray[np.bool_] | None = None
) -> Ints:
    """
    How long each request waits for a handler thread, us; 0 for one that never comes.

    Args:
        arrivals: us, in any order; requests of the same instant are served in the order given.
        holds: how long each holds a thread, us.
        threads: `num.io.threads`.
        present: those that come; all unless given.

    """
    order = np.argsort(arrivals, kind="stable")
    coming = np.ones(len(order), np.int8) if present is None else present.astype(np.int8)  # fmt: skip
    queue = Queue(arrivals[order], holds[order], coming[order])
    earliest = int(arrivals.min(initial=0))
    made = Waits(np.zeros(len(order), np.int64), np.full(threads, earliest, np.int64))
    run(serve, queue, made, work=len(order))
    waits = np.empty_like(made.waits)
    waits[order] = made.waits
    return waits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoggedQueue:
    """The requests of a pool of handler threads as logged, and the queue that explains their waits."""

    arrivals: Ints
    holds: Ints
    logged: Ints
    """Queue times of the log, us."""
    threads: int
    simulated: Ints
    """Waits in the queue as logged, without the time that waking a thread takes, us."""

    @property
    def dispatch_us(self) -> float:
        """Median wait of the requests that found a thread free, which is what waking one takes; 0 where no request found one."""
        idle = self.logged[self.simulated == 0]
        return float(np.median(idle)) if len(idle) else 0.0

    @property
    def error(self) -> float:
        """By which part the mean wait of the queue, dispatch included, differs from the logged one; 0 below the clock's resolution."""
        if not len(self.logged):
            return 0.0
        logged = float(self.logged.mean())
        off = float(self.simulated.mean()) + self.dispatch_us - logged
        return 0.0 if abs(off) <= CLOCK_US else off / max(logged, 1.0)

    def predicted(self, late_us: Ints, present: NDArray[np.bool_]) -> Floats:
        """
        The wait of each request if some come later, or never, us; NaN for those that never come.

        It is what the log has, less what the queue is shorter: what no queue explains, as waking a thread, stays as it was, and no wait
        is below what the queue alone makes of it.
        """
        waits = waits_of(self.arrivals + late_us, self.holds, self.threads, present)
        found = np.maximum(waits, self.logged + (waits - self.simulated))
        return np.where(present, found, np.nan)


def logged_queue(
    arrivals: Ints, holds: Ints, logged: Ints, threads: int | None = None
) -> LoggedQueue:
    """The queue of a log; without `threads`, of as many as explain the logged waits best."""
    if threads is None:
        threads = _estimated(arrivals, holds, logged)
    simulated = waits_of(arrivals, holds, threads)
    return LoggedQueue(arrivals=arrivals, holds=holds, logged=logged, threads=threads, simulated=simulated)  # fmt: skip


def _estimated(arrivals: Ints, holds: Ints, logged: Ints) -> int:
    """More threads make all waits shorter: the number with the smallest difference of mean waits."""
    order = np.argsort(arrivals, kind="stable")
    begins = range(0, len(order), _MOST_REQUESTS)
    parts = [order[begin : begin + _MOST_REQUESTS] for begin in begins]
    busiest = max(parts, key=lambda part: int(logged[part].sum()), default=order)
    best, least = 1, np.inf
    for threads in range(1, MOST_THREADS + 1):
        queue = logged_queue(arrivals[busiest], holds[busiest], logged[busiest], threads)  # fmt: skip
        off = float((queue.simulated + queue.dispatch_us - queue.logged).mean())
        if abs(off) < least:
            best, least = threads, abs(off)
        if off <= 0:
            break
    return best
