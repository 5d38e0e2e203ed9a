"""
A broker's handler threads as servers of one queue, first in, first out, and the waits of requests under other arrivals.

Kafka has one queue for all listeners of a broker (`RequestChannel.requestQueue`) and `num.io.threads` handlers that
take from it (`KafkaRequestHandlerPool`). The k-th request in order of arrival is taken by the thread that is free
first, so the waits follow from arrivals and holding times alone (Kiefer and Wolfowitz, 1955). An instant at which all
threads are free starts the queue from scratch.

Two times are in no line of the log, and are measured from all lines: the *dispatch*, from reading a request to an idle
thread that takes it (`SocketServer.Processor` parses it, puts it into the queue, and a thread wakes), and the
*handover*, for which a thread is still busy after its request's local time has ended (`RequestChannel.sendResponse`
wakes the network thread, delayed operations are completed, buffers freed).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..replay.compiled import Heap, Ints, kernel, new_heap, pop, push, run
from .intervals import RESOLUTION_US

MOST_ERROR: Final = 0.25
"""Greatest part of the logged mean wait by which the simulated one may differ; above it no prediction is made."""
CLOCK_US: Final = 100.0
"""
Difference of mean waits that is no error.

Logged times are a millisecond apart, and waking a thread takes about as long.
"""
QUIET_US: Final = 1_500
MOST_DISPATCH: Final = 10
LOAD_US: Final = 100_000
"""
Time before a request in which arrivals measure the load.

It is long beside the log's times, and short beside changes of load.
"""
_MOSTLY: Final = 0.5
"""Part of the simulated wait from which on the clients that cause it are taken to cause the missing wait as well."""
_SURELY_US: Final = 2 * RESOLUTION_US
"""Wait above which a request found no idle thread: the log's rounding of times is smaller."""
_FEWEST: Final = 100
"""Least number of gaps for a mean, as each is up to a millisecond out of place."""
_STRIDE: Final = 7_919
"""Stride of the draw, a prime: neighbors draw from different places."""


class Queue(NamedTuple):
    """Requests in order of arrival, us."""

    arrivals: Ints
    holds: Ints
    """Times for which each request holds a handler thread."""
    handover: int
    """Time for which the thread is busy after that, while the client has its answer."""
    starts: Ints
    """Requests that arrive at their logged time; all others are followers, or never arrive."""
    followers: Ints
    """Next request of the connection, which its client sends after this one is answered; negative for none."""
    pauses: Ints
    """Pause between the answer and the follower, by follower."""
    heap: Heap
    """Followers that have been sent."""


class Served(NamedTuple):
    """Results of the queue: waits in us, and the time when each thread is free."""

    waits: Ints
    free: Ints


Served.WRITTEN = True  # type: ignore[attr-defined]


@kernel
def serve(queue: Queue, served: Served) -> None:
    """Give each request to the thread that is free first."""
    place, places, threads = 0, len(queue.starts), len(served.free)
    while True:
        sent = queue.heap.size[0] > 0
        if sent and (place >= places or queue.heap.times[0] < queue.arrivals[queue.starts[place]]):
            time, number = pop(queue.heap)
        elif place < places:
            number = queue.starts[place]
            time = queue.arrivals[number]
            place += 1
        else:
            break
        earliest = 0
        for thread in range(1, threads):
            if served.free[earliest] <= time:  # any idle thread will do, and there may be thousands
                break
            if served.free[thread] < served.free[earliest]:
                earliest = thread
        begin = max(time, served.free[earliest])
        served.waits[number] = begin - time
        end = begin + queue.holds[number]
        served.free[earliest] = end + queue.handover
        following = queue.followers[number]
        if following >= 0:
            push(queue.heap, end + queue.pauses[following], following)


def waits_of(
    arrivals: Ints,
    holds: Ints,
    threads: int,
    present: NDArray[np.bool_] | None = None,
    chains: tuple[Ints, Ints] | None = None,
    handover: int = 0,
) -> Ints:
    """
    Return the wait of each request for a handler thread, us; 0 for one that never comes.

    Args:
        arrivals: us, in any order; requests of the same instant are served in their order.
        holds: time for which each request holds a thread, us.
        threads: `num.io.threads`.
        present: mask of the requests that come; all by default.
        chains: connection of each request, negative for one that comes at its time whatever the queue; and its pause
            after the previous one of the connection has left, us. None if all come at their time.
        handover: time for which a thread is still busy after each request, us.

    """
    order = np.argsort(arrivals, kind="stable")
    coming = np.ones(len(order), np.bool_) if present is None else present[order]
    followers, pauses = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int64)
    if chains is not None:
        connections, pauses = (column[order] for column in chains)
        chained = np.flatnonzero(coming & (connections >= 0))
        chained = chained[np.argsort(connections[chained], kind="stable")]
        is_next = connections[chained[1:]] == connections[chained[:-1]]
        followers[chained[:-1][is_next]] = chained[1:][is_next]
        coming[chained[1:][is_next]] = False
    heap = new_heap(int((followers >= 0).sum()) + 1)
    queue = Queue(arrivals[order], holds[order], handover, np.flatnonzero(coming), followers, pauses, heap)
    served = Served(np.zeros(len(order), np.int64), np.full(threads, arrivals.min(initial=0), np.int64))
    run(serve, queue, served, work=len(order))
    return served.waits[np.argsort(order)]


class LoggedQueue:
    """
    The requests of a pool of handler threads as logged, and the simulation of their queue.

    Arrivals, the times for which each holds a thread, and the queue times of the log are us; `threads` is
    `num.io.threads`.
    """

    def __init__(self, arrivals: Ints, holds: Ints, logged: Ints, threads: int) -> None:
        self.arrivals, self.holds, self.logged, self.threads = arrivals, holds, logged, threads
        order = np.argsort(arrivals, kind="stable")
        arrived, taken = arrivals[order], arrivals + logged
        released = np.maximum.accumulate((taken + holds)[order])
        idle = np.r_[True, released[:-1] + QUIET_US <= arrived[1:]][: len(order)]
        quiet, loads = logged[order][idle], _loads(arrived, arrived)[idle]
        usual = np.argsort(loads, kind="stable")
        usual = usual[quiet[usual] <= MOST_DISPATCH * np.median(quiet)] if len(quiet) else usual
        self.quiet: Ints = quiet[usual]
        """
        Queue times of requests that found the pool idle, us.

        Each request waits for at least as long as one of those at about its load.

        None came in the `QUIET_US` after another had left, as times of the log may be a millisecond out of place. Those
        that waited `MOST_DISPATCH` times the median are left out: they waited for what the log does not have, as
        garbage collection.
        """
        self.loads: Ints = loads[usual]
        """Number of requests in the `LOAD_US` before each of these, ascending."""
        self.handover = _handover(taken, taken + holds, logged, threads)
        """
        Mean time from a request's end to the next one's begin on its thread, us.

        It is measured from requests that waited too long to have found an idle thread. As the threads were all busy,
        the i-th request taken followed on the (i - threads)-th that ended. The log's rounding of times is in both, and
        so not in the mean. A gap of more than `_SURELY_US` is a pause, as garbage collection, and left out; 0 with
        fewer than `_FEWEST`.
        """

    def waits(
        self, late_us: Ints | None = None, present: NDArray[np.bool_] | None = None, connections: Ints | None = None
    ) -> Ints:
        """
        Return the wait of each request that comes, us: as logged, or as it is if some come later or never.

        Args:
            late_us: delay of each request.
            present: mask of the requests that come; all by default.
            connections: connection of each request, negative if it comes at that time whatever the queue; else its
                client sends it as long after the last one of the connection has left the thread as logged, and as much
                later as `late_us` grows. None if all come at that time.

        """
        late_us = np.zeros_like(self.arrivals) if late_us is None else late_us
        arrivals = self.arrivals + late_us
        loads = _loads(arrivals, np.sort(arrivals if present is None else arrivals[present]))
        begin = np.maximum(0, np.searchsorted(self.loads, loads) - _FEWEST // 2)
        end = np.minimum(len(self.loads), np.searchsorted(self.loads, loads, "right") + _FEWEST // 2)
        dispatch = self.quiet[begin + np.arange(len(loads)) * _STRIDE % (end - begin)]
        chains = None
        if connections is not None:
            order = np.lexsort((self.arrivals, connections))
            released = (self.arrivals + self.logged + self.holds)[order]
            pauses = dispatch.copy()
            later = np.maximum(0, np.diff(late_us[order]))
            pauses[order[1:]] += np.maximum(0, self.arrivals[order[1:]] - released[:-1]) + later
            chains = connections, pauses
        waits: Ints = dispatch + waits_of(arrivals + dispatch, self.holds, self.threads, present, chains, self.handover)
        return waits


def scale_of(simulated: Ints, without: Ints, logged: Ints) -> float:
    """
    Return the factor by which the wait that some clients cause others is longer in the log than simulated.

    Holding times of the log lack the cost of a request for its thread beyond the handover, and they are longer while
    these clients saturate the broker. A simulation is nearly right without them, and off by a part of the wait that
    they cause. If most of the wait is not theirs, or it is below the log's clock, the error may be of others, and the
    factor is 1.

    Args:
        simulated: simulated waits of the others with all requests, us.
        without: the same without the requests of these clients, us.
        logged: queue times of the others, us.

    """
    caused = float(simulated.sum() - without.sum())
    if caused <= max(_MOSTLY * float(simulated.sum()), CLOCK_US * len(logged)):
        return 1.0
    return max(0.0, float(logged.sum() - without.sum()) / caused)


def _loads(times: Ints, arrivals: Ints) -> Ints:
    return np.searchsorted(arrivals, times) - np.searchsorted(arrivals, times - LOAD_US)


def _handover(taken: Ints, released: Ints, logged: Ints, threads: int) -> int:
    order = np.argsort(taken, kind="stable")[threads:]
    gaps = taken[order] - np.sort(released)[:-threads]
    usual = gaps[(logged[order] > _SURELY_US) & (np.abs(gaps) <= _SURELY_US)]
    return max(0, round(float(usual.mean()))) if len(usual) >= _FEWEST else 0
