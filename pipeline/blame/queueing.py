"""
Simulation of the queue of a broker's handler threads: how long requests wait if they arrive at other times.

Kafka has one queue for all listeners of a broker (`RequestChannel.requestQueue`) and `num.io.threads` handler threads
that take requests from it, first in, first out (`KafkaRequestHandlerPool`). The next request in order of arrival is
taken by the thread that is free first, so the waits follow from arrivals and holding times alone (Kiefer and
Wolfowitz, 1955). An instant at which all threads are free starts the queue from scratch.

Two times are in no line of the log. They are estimated from all lines:

- The *dispatch* is the time from reading a request until an idle thread takes it: `SocketServer.Processor` parses the
  request and puts it into the queue, and a thread wakes.
- The *handover* is the time for which a thread is still busy after its request's local time has ended:
  `RequestChannel.sendResponse` wakes the network thread, delayed operations are completed, and buffers are freed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..replay.compiled import Heap, Ints, kernel, new_heap, pop, push, run
from .intervals import RESOLUTION_US

MOST_ERROR: Final = 0.25
"""
Largest allowed difference between the simulated and the logged mean wait, as a part of the logged one.

No prediction is made above it.
"""
CLOCK_US: Final = 100.0
"""
Largest difference between two mean waits that does not count as an error.

The log has its times in whole milliseconds, and waking a thread takes about as long.
"""
_QUIET_US: Final = 1_500
"""Time without a busy thread before a request, from which on the request met an idle pool for certain."""
_MAX_DISPATCH: Final = 10
"""Largest dispatch that is used, as a multiple of the median."""
_LOAD_WINDOW_US: Final = 100_000
"""
Length of the window before a request whose arrivals are its load.

It is long compared with the resolution of the log, and short compared with changes of load.
"""
_MIN_CAUSED_SHARE: Final = 0.5
"""
Least part of the simulated wait that some clients must cause before `scale_of` blames them for missing wait too.
"""
_SURE_WAIT_US: Final = 2 * RESOLUTION_US
"""Wait above which a request certainly met no idle thread, although the log rounds its times."""
_MIN_REQUESTS: Final = 100
"""Least number of requests for an estimate, because any logged time may be off by a millisecond."""
_STRIDE: Final = 7_919
"""Stride in `LoggedQueue.idle_waits` between the draws of two successive requests; a prime, so that draws differ."""


class Queue(NamedTuple):
    """
    Input of `serve`: requests in order of arrival, all times in us.

    A request is named by its number in this order.
    """

    arrivals: Ints
    """Arrival of each request that is among `starts`."""
    holds: Ints
    """Time for which each request holds a handler thread."""
    handover: int
    """Time for which a thread is still busy after a request, when the client already has its answer."""
    starts: Ints
    """Numbers of the requests that arrive at their logged time. All other requests are followers, or never arrive."""
    followers: Ints
    """Number of the next request of each request's connection, sent when this one is answered; negative for none."""
    pauses: Ints
    """Time between the previous answer on the connection and each follower."""
    heap: Heap
    """Followers that have been sent and not yet taken by a thread."""


class Served(NamedTuple):
    """Output of `serve`."""

    waits: Ints
    """Wait of each request, us."""
    free: Ints
    """Time when each thread is free, us."""


Served.WRITTEN = True  # type: ignore[attr-defined]


@kernel
def serve(queue: Queue, served: Served) -> None:
    """Give the requests, in order of arrival, to the thread that is free first; write their waits to `served`."""
    place, count, threads = 0, len(queue.starts), len(served.free)
    while True:
        has_start, has_follower = place < count, queue.heap.size[0] > 0
        if not has_start and not has_follower:
            break
        if has_follower and (not has_start or queue.heap.times[0] < queue.arrivals[queue.starts[place]]):
            time, number = pop(queue.heap)
        else:
            number = queue.starts[place]
            time = queue.arrivals[number]
            place += 1
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
    Return the wait of each request for a handler thread in us, 0 for a request that never arrives.

    Args:
        arrivals: us, in any order. Requests that arrive at the same time are served in the order of the arrays.
        holds: time for which each request holds a thread, us.
        threads: `num.io.threads`.
        present: mask of the requests that arrive; all by default.
        chains: two arrays: the connection of each request, negative if its arrival does not depend on the queue; and
            its pause after the previous request of the connection has left, us. None if no arrival depends on the
            queue.
        handover: time for which a thread is still busy after each request, us.

    """
    order = np.argsort(arrivals, kind="stable")
    is_start = np.ones(len(order), np.bool_) if present is None else present[order]
    followers, pauses = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int64)
    if chains is not None:
        connections, pauses = (column[order] for column in chains)
        # the requests of one connection after the other, each in order of arrival; all but a first one are followers
        chained = np.flatnonzero(is_start & (connections >= 0))
        chained = chained[np.argsort(connections[chained], kind="stable")]
        earlier, later = chained[:-1], chained[1:]
        is_next = connections[earlier] == connections[later]
        followers[earlier[is_next]] = later[is_next]
        is_start[later[is_next]] = False
    heap = new_heap(int((followers >= 0).sum()) + 1)
    queue = Queue(arrivals[order], holds[order], handover, np.flatnonzero(is_start), followers, pauses, heap)
    served = Served(np.zeros(len(order), np.int64), np.full(threads, arrivals.min(initial=0), np.int64))
    run(serve, queue, served, work=len(order))
    return served.waits[np.argsort(order)]  # in the order of the arguments again


class LoggedQueue:
    """
    The requests of a pool of handler threads as logged, and the simulation of their queue.

    Arrivals, holding times and queue times (`logged`) are in us, one of each for a request; `threads` is
    `num.io.threads`.
    """

    def __init__(self, arrivals: Ints, holds: Ints, logged: Ints, threads: int) -> None:
        self.arrivals, self.holds, self.logged, self.threads = arrivals, holds, logged, threads
        self.idle_waits, self.idle_loads = _waits_of_idle_pool(arrivals, holds, logged)
        self.handover = _handover(arrivals + logged, arrivals + logged + holds, logged, threads)

    def waits(
        self, late_us: Ints | None = None, present: NDArray[np.bool_] | None = None, connections: Ints | None = None
    ) -> Ints:
        """
        Return the simulated wait of each request in us, if some requests arrive later than logged, or never.

        Args:
            late_us: delay of each request; none by default.
            present: mask of the requests that arrive; all by default.
            connections: connection of each request, negative if its arrival does not depend on the queue. A client
                sends the next request of a connection as long after the previous one has left its thread as logged,
                and later by the difference of their `late_us`. None if no arrival depends on the queue.

        """
        late_us = np.zeros_like(self.arrivals) if late_us is None else late_us
        arrivals = self.arrivals + late_us
        dispatch = self._dispatch(_loads(arrivals, np.sort(arrivals if present is None else arrivals[present])))
        chains = None
        if connections is not None:
            # The pause of a request is from the release of the one before it on its connection. The first request of a
            # connection gets one as well, which is not used.
            order = np.lexsort((self.arrivals, connections))
            released = (self.arrivals + self.logged + self.holds)[order]
            logged_pauses = np.maximum(0, self.arrivals[order[1:]] - released[:-1])
            growing_delays = np.maximum(0, np.diff(late_us[order]))
            pauses = dispatch.copy()
            pauses[order[1:]] += logged_pauses + growing_delays
            chains = connections, pauses
        waits: Ints = dispatch + waits_of(arrivals + dispatch, self.holds, self.threads, present, chains, self.handover)
        return waits

    def _dispatch(self, loads: Ints) -> Ints:
        """Return the dispatch of each request in us, drawn from the waits of an idle pool at about the same load."""
        begin = np.maximum(0, np.searchsorted(self.idle_loads, loads) - _MIN_REQUESTS // 2)
        end = np.searchsorted(self.idle_loads, loads, "right") + _MIN_REQUESTS // 2
        choices = np.minimum(len(self.idle_loads), end) - begin
        # the stride takes the place of a random draw, so that results are the same each time
        dispatch: Ints = self.idle_waits[begin + np.arange(len(loads)) * _STRIDE % choices]
        return dispatch


def scale_of(simulated: Ints, without: Ints, logged: Ints) -> float:
    """
    Return the factor by which a simulated wait must be multiplied to be as long as in the log.

    The wait is the part of the victims' wait that some other clients, the culprits, cause. The log's holding times lack
    the cost of a request for its thread beyond the handover, and they are longer while the culprits saturate the
    broker. So the simulation is nearly right without the culprits' requests, and wrong in the wait that they cause.

    The factor is 1 if the culprits cause less than half of the wait, or less than the resolution of the log: then the
    error may have other causes.

    Args:
        simulated: simulated waits of the victims with all requests, us.
        without: simulated waits of the victims without the culprits' requests, us.
        logged: logged queue times of the victims, us.

    """
    caused = float(simulated.sum() - without.sum())
    if caused <= max(_MIN_CAUSED_SHARE * float(simulated.sum()), CLOCK_US * len(logged)):
        return 1.0
    return max(0.0, float(logged.sum() - without.sum()) / caused)


def _loads(times: Ints, arrivals: Ints) -> Ints:
    """Return the number of arrivals in the `_LOAD_WINDOW_US` before each time; the arrivals are in order."""
    return np.searchsorted(arrivals, times) - np.searchsorted(arrivals, times - _LOAD_WINDOW_US)


def _waits_of_idle_pool(arrivals: Ints, holds: Ints, logged: Ints) -> tuple[Ints, Ints]:
    """
    Return the queue times of requests that met an idle pool, us, and the load of each, in the order of loads.

    A request met an idle pool if all earlier ones had left for `_QUIET_US`: times of the log may be off by a
    millisecond. Queue times above `_MAX_DISPATCH` times the median are left out: their requests waited for something
    that the log does not have, such as garbage collection.
    """
    order = np.argsort(arrivals, kind="stable")
    arrived = arrivals[order]
    released = np.maximum.accumulate((arrivals + logged + holds)[order])
    is_idle = np.ones(len(order), np.bool_)
    is_idle[1:] = released[:-1] + _QUIET_US <= arrived[1:]
    waits, loads = logged[order][is_idle], _loads(arrived, arrived)[is_idle]
    by_load = np.argsort(loads, kind="stable")
    waits, loads = waits[by_load], loads[by_load]
    if not len(waits):
        return waits, loads
    is_usual = waits <= _MAX_DISPATCH * np.median(waits)
    return waits[is_usual], loads[is_usual]


def _handover(taken: Ints, released: Ints, logged: Ints, threads: int) -> int:
    """
    Return the mean time from the end of a request to the begin of the next one on its thread, us.

    It is measured from requests that waited too long to have met an idle thread: while all threads are busy, the i-th
    request taken follows the (i - threads)-th that ended. The log's rounding of times does not change the mean, because
    it is in the begin and in the end. A gap above `_SURE_WAIT_US` is a pause, such as garbage collection, and left out.
    With fewer than `_MIN_REQUESTS` gaps, return 0.
    """
    # the first `threads` requests follow no other one
    order = np.argsort(taken, kind="stable")[threads:]
    gaps = taken[order] - np.sort(released)[:-threads]
    usual_gaps = gaps[(logged[order] > _SURE_WAIT_US) & (np.abs(gaps) <= _SURE_WAIT_US)]
    if len(usual_gaps) < _MIN_REQUESTS:
        return 0
    return max(0, round(float(usual_gaps.mean())))
