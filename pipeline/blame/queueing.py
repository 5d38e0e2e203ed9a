"""
A broker's handler threads as servers of one queue, first in, first out: how long its requests wait under other arrivals.

Kafka has one queue for all listeners of a broker (`RequestChannel.requestQueue`) and `num.io.threads` handlers that take from it
(`KafkaRequestHandlerPool`). The k-th request in order of arrival is taken by the thread that is free first, so the waits follow from arrivals
and holding times alone (Kiefer and Wolfowitz, 1955). An instant at which all threads are free starts the queue from scratch.

Two times are in no line of the log, and measured from all lines: the *dispatch*, from reading a request to an idle thread that takes it
(`SocketServer.Processor` parses it, puts it into the queue, and a thread wakes), and the *handover*, for which a thread is still busy after
its request's local time has ended (`RequestChannel.sendResponse` wakes the network thread, delayed operations are completed, buffers freed).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..replay.compiled import Heap, Ints, kernel, new_heap, pop, push, run
from .intervals import RESOLUTION_US

MOST_ERROR: Final = 0.25
"""The mean wait as simulated may differ from the logged one by this part of it; else no prediction is made."""
CLOCK_US: Final = 100.0
"""A difference of mean waits below this is no error: logged times are a millisecond apart, and waking a thread takes about as long."""
QUIET_US: Final = 1_500
MOST_DISPATCH: Final = 10
LOAD_US: Final = 100_000
"""How busy a broker is when a request comes, is how many came in so long before it: long beside the log's times, short beside changes of load."""
_MOSTLY: Final = 0.5
"""From this part of the simulated wait on, the clients that cause it are taken to cause what the simulation lacks as well."""
_SURELY_US: Final = 2 * RESOLUTION_US
"""What waited for longer found no idle thread; two instants of the log that are the same are nearer to each other."""
_FEWEST: Final = 100
"""Gaps below which their mean says nothing, as each is up to a millisecond out of place."""
_STRIDE: Final = 7_919
"""A prime: neighbors draw from different places."""


class Queue(NamedTuple):
    """Requests in order of arrival, us."""

    arrivals: Ints
    holds: Ints
    """How long each holds a handler thread."""
    handover: int
    """How long the thread is busy after that, while the client has its answer."""
    starts: Ints
    """Those that come at their time: all others never do, or as followers."""
    followers: Ints
    """The next request of its connection, which its client sends once this one is answered; negative for none."""
    pauses: Ints
    """By follower: how long after that."""
    heap: Heap
    """Followers that have been sent."""


class Served(NamedTuple):
    """What the queue writes: waits in us, and by thread when it is free."""

    waits: Ints
    free: Ints


Served.WRITTEN = True  # type: ignore[attr-defined]


@kernel
def serve(queue: Queue, made: Served) -> None:
    """Give each request to the thread that is free first."""
    place, places, threads = 0, len(queue.starts), len(made.free)
    while True:
        sent = queue.heap.size[0] > 0
        if sent and (place >= places or queue.heap.times[0] < queue.arrivals[queue.starts[place]]):
            now, number = pop(queue.heap)
        elif place < places:
            number = queue.starts[place]
            now = queue.arrivals[number]
            place += 1
        else:
            break
        first = 0
        for thread in range(1, threads):
            if made.free[first] <= now:  # of idle threads any will do, and there may be thousands
                break
            if made.free[thread] < made.free[first]:
                first = thread
        begin = max(now, made.free[first])
        made.waits[number] = begin - now
        end = begin + queue.holds[number]
        made.free[first] = end + queue.handover
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
    How long each request waits for a handler thread, us; 0 for one that never comes.

    Args:
        arrivals: us, in any order; requests of the same instant are served in the order given.
        holds: how long each holds a thread, us.
        threads: `num.io.threads`.
        present: those that come; all unless given.
        chains: by request its connection, negative for one that comes at its time whatever the queue; and how long after the previous one of
            its connection has left it comes, us. None where all come at their time.
        handover: for how long a thread is still busy after each, us.

    """
    order = np.argsort(arrivals, kind="stable")
    coming = np.ones(len(order), np.bool_) if present is None else present[order]
    followers, pauses = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int64)
    if chains is not None:
        connections, pauses = (column[order] for column in chains)
        chained = np.flatnonzero(coming & (connections >= 0))
        chained = chained[np.argsort(connections[chained], kind="stable")]
        same = connections[chained[1:]] == connections[chained[:-1]]
        followers[chained[:-1][same]] = chained[1:][same]
        coming[chained[1:][same]] = False
    heap = new_heap(int((followers >= 0).sum()) + 1)
    queue = Queue(arrivals[order], holds[order], handover, np.flatnonzero(coming), followers, pauses, heap)
    made = Served(np.zeros(len(order), np.int64), np.full(threads, arrivals.min(initial=0), np.int64))
    run(serve, queue, made, work=len(order))
    return made.waits[np.argsort(order)]


class LoggedQueue:
    """
    The requests of a pool of handler threads as logged, and what their queue makes of them.

    Arrivals, the times that each holds a thread, and the queue times of the log are us; `threads` is `num.io.threads`.
    """

    def __init__(self, arrivals: Ints, holds: Ints, logged: Ints, threads: int) -> None:
        self.arrivals, self.holds, self.logged, self.threads = arrivals, holds, logged, threads
        order = np.argsort(arrivals, kind="stable")
        arrived, taken = arrivals[order], arrivals + logged
        left = np.maximum.accumulate((taken + holds)[order])
        idle = np.r_[True, left[:-1] + QUIET_US <= arrived[1:]][: len(order)]
        quiet, loads = logged[order][idle], _loads(arrived, arrived)[idle]
        usual = np.argsort(loads, kind="stable")
        usual = usual[quiet[usual] <= MOST_DISPATCH * np.median(quiet)] if len(quiet) else usual
        self.quiet: Ints = quiet[usual]
        """
        The queue times of requests that found the pool idle, us: each request waits for at least as long as one of those at about its load.

        None came in the `QUIET_US` after another had left, as times of the log may be a millisecond out of place. Those that waited
        `MOST_DISPATCH` times the median are left out: they waited for what the log does not have, as garbage collection.
        """
        self.loads: Ints = loads[usual]
        """How many requests came in the `LOAD_US` before each of these, ascending."""
        self.handover = _handover(taken, taken + holds, logged, threads)
        """
        The mean time from a request's end to the next one's begin on its thread, of requests that waited too long to have found an idle one, us.

        As the threads were all busy, the i-th request taken followed on the (i - threads)-th that ended. The log's rounding of times is in both,
        and so not in the mean. A gap of more than `_SURELY_US` is a pause, as garbage collection, and left out; 0 with fewer than `_FEWEST`.
        """

    def waits(
        self, late_us: Ints | None = None, present: NDArray[np.bool_] | None = None, connections: Ints | None = None
    ) -> Ints:
        """
        The wait of each request that comes, us: as logged, or if some come later, or never.

        Args:
            late_us: by how much they come later.
            present: those that come; all unless given.
            connections: by request, negative where it comes at that time whatever the queue; else its client sends it as long after the
                last one of the connection has left the thread as logged, and as much later as `late_us` grows. None where all come at that time.

        """
        late_us = np.zeros_like(self.arrivals) if late_us is None else late_us
        came = self.arrivals + late_us
        loads = _loads(came, np.sort(came if present is None else came[present]))
        first = np.maximum(0, np.searchsorted(self.loads, loads) - _FEWEST // 2)
        last = np.minimum(len(self.loads), np.searchsorted(self.loads, loads, "right") + _FEWEST // 2)
        dispatch = self.quiet[first + np.arange(len(loads)) * _STRIDE % (last - first)]
        chains = None
        if connections is not None:
            order = np.lexsort((self.arrivals, connections))
            left = (self.arrivals + self.logged + self.holds)[order]
            pauses = dispatch.copy()
            later = np.maximum(0, np.diff(late_us[order]))
            pauses[order[1:]] += np.maximum(0, self.arrivals[order[1:]] - left[:-1]) + later
            chains = connections, pauses
        waits: Ints = dispatch + waits_of(came + dispatch, self.holds, self.threads, present, chains, self.handover)
        return waits


def scale_of(simulated: Ints, without: Ints, logged: Ints) -> float:
    """
    By which factor the wait that some clients cause others is longer in the log than simulated.

    Holding times of the log lack what a request costs its thread beyond the handover, and they are longer while these clients saturate the
    broker. A simulation is nearly right without them, and off by a part of what they cause. If most of the wait is not theirs, or it is
    below the log's clock, the error may be of others, and the factor is 1.

    Args:
        simulated: waits of the others as logged, us.
        without: the same without the requests of these clients, us.
        logged: queue times of the others, us.

    """
    caused = float(simulated.sum() - without.sum())
    if caused <= max(_MOSTLY * float(simulated.sum()), CLOCK_US * len(logged)):
        return 1.0
    return max(0.0, float(logged.sum() - without.sum()) / caused)


def _loads(times: Ints, came: Ints) -> Ints:
    return np.searchsorted(came, times) - np.searchsorted(came, times - LOAD_US)


def _handover(taken: Ints, left: Ints, logged: Ints, threads: int) -> int:
    order = np.argsort(taken, kind="stable")[threads:]
    gaps = taken[order] - np.sort(left)[:-threads]
    usual = gaps[(logged[order] > _SURELY_US) & (np.abs(gaps) <= _SURELY_US)]
    return max(0, round(float(usual.mean()))) if len(usual) >= _FEWEST else 0
