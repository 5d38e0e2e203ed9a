"""
Effect of candidates on other clients.

The queue of each broker's handler threads, as logged and as it would have been.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.pages.words import counted, percent, shown
from quotascope.quotas.candidates import Candidate

from ..errors import NoTable
from ..history.charges import COLUMNS, history_of
from ..history.schema import PLACE
from ..replay import Mode, ReplaySettings
from ..replay.closed_loop import NEVER
from ..replay.compiled import Floats, Ints
from ..replay.delays import DelayedRequests, delays_of
from ..replay.results import lateness
from ..request_log.schema import REQUESTS
from ..table import File, Map, Table
from . import intervals
from .queueing import CLOCK_US, MOST_ERROR, LoggedQueue, scale_of
from .summing import ESTIMATED, Survey, plan_of, surveys

_OF_QUEUES: Final = (*intervals.COLUMNS, "connection", *PLACE)
_READ: Final = tuple(dict.fromkeys((*COLUMNS, *_OF_QUEUES)))
"""Columns of `REQUESTS` that are read: for queues, and for a replay as well."""
_MOST_UNKNOWN: Final = 0.01
"""Part of a broker's requests without a queue time above which its queue is unknown."""
_BINS: Final = np.r_[0.0, np.geomspace(10.0, 1e9, 1_601), np.inf]
"""Borders of the bins of waits, us: each 1.2 % above the last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerQueue:
    """
    Waits of a broker's requests, added up over days.

    *Others*, by candidate, are the clients that the candidate throttles in no request of a day.

    Times are us.
    """

    broker: str
    threads: int
    """Number of handler threads, as given or as estimated; the most of any day."""
    requests: int
    unknown: int
    """Number of requests without a queue time in the log."""
    logged_us: float
    """Sum of the logged queue times."""
    simulated_us: float
    """
    Sum of the queue times in the simulated queue, with the time that waking a thread takes.

    In a closed loop, each request comes as long after the previous one of its connection as logged, as a broker reads
    no request of a connection before it has answered the last one (`SocketServer` mutes the channel).
    """
    others_us: Floats
    """
    Waits of others as simulated, by candidate.

    In open loop they are as logged if the candidate's clients cause most of them.
    """
    predicted_us: Floats
    """Predicted waits of others, by candidate."""
    logged_waits: Ints
    """Number of queue times of others, by candidate and bin."""
    predicted_waits: Ints

    def added(self, day: BrokerQueue) -> BrokerQueue:
        """Return the sum of this queue and that of another day."""
        names = [name for name in self.__slots__ if name not in {"broker", "threads"}]
        sums = {name: getattr(self, name) + getattr(day, name) for name in names}
        return BrokerQueue(broker=self.broker, threads=max(self.threads, day.threads), **sums)

    @property
    def error(self) -> float:
        """
        Relative difference of the simulated mean wait to the logged one.

        It is 0 if the log's clock is too coarse to show it.
        """
        off = self.simulated_us - self.logged_us
        return 0.0 if abs(off) <= CLOCK_US * self.requests else off / max(self.logged_us, 1.0)

    @property
    def times_known(self) -> bool:
        """True if all but a few requests have a queue time."""
        return self.unknown <= _MOST_UNKNOWN * (self.requests + self.unknown)

    @property
    def refusal(self) -> str | None:
        """Reason for having no prediction for the broker; None if there is one."""
        if not self.times_known:
            return f"{self.unknown:,} requests of broker {shown(self.broker)} have no queue time"
        if abs(self.error) > MOST_ERROR:
            reason = (
                "as if the broker had more threads than were given, or in open loop near saturation"
                if self.error > 0
                else "as where requests wait for a CPU or garbage collection as well, which no log has"
            )
            return (
                f"a queue with {counted(self.threads, 'handler thread')} does not explain the queue times of broker "
                f"{shown(self.broker)}: its error is {percent(self.error, '+')}, {reason}"
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Benefit:
    """Effect of candidates on other clients, on the brokers whose queue times the queue explains."""

    names: Sequence[str]
    """Names of the candidates."""
    brokers: Sequence[BrokerQueue]
    estimated: bool = False
    """True if the numbers of handler threads are `ESTIMATED`."""

    @property
    def explained(self) -> Sequence[BrokerQueue]:
        """Brokers with a prediction."""
        return [queue for queue in self.brokers if queue.refusal is None]

    def predicted(self, number: int, part: float) -> list[float | None]:
        """
        Return for each broker the predicted wait that a part of the others' requests does not exceed, us.

        The wait is the one under the candidate with this number.
        """
        return [percentile_us(queue.predicted_waits[number], part) for queue in self.explained]

    @property
    def notes(self) -> Sequence[str]:
        """Error of the queues against the log, and reasons for unknown figures."""
        if not self.brokers:
            return ("The wait is unknown: there is no request of a broker; ingest request logs of brokers.",)
        if not any(queue.requests for queue in self.brokers):
            return ("The wait is unknown: the log has no queue times (requestQueueTimeMs).",)
        explained = [
            f"broker {shown(queue.broker)} ({counted(queue.threads, 'handler thread')}) {percent(queue.error, '+')}"
            for queue in self.explained
        ]
        refused = [queue.refusal for queue in self.brokers if queue.refusal is not None]
        notes = [f"Error of the simulated queue times against the log: {', '.join(explained)}."] if explained else []
        if self.estimated:
            notes.append(f"The number of handler threads is {ESTIMATED}.")
        return (*notes, *(f"Left out of the wait: {reason}." for reason in refused))

    def values(self) -> list[dict[str, Any]]:
        """Return the brokers for JSON: threads, error of the simulation, and the reason for no prediction."""
        return [
            {
                "broker": queue.broker,
                "io_threads": queue.threads,
                "io_threads_estimated": self.estimated,
                "requests": queue.requests,
                "without_queue_time": queue.unknown,
                "error": queue.error if queue.requests else None,
                "refusal": queue.refusal,
            }
            for queue in self.brokers
        ]

    @property
    def saved(self) -> Mapping[str, float | None]:
        """
        Part of the others' queue times that a candidate saves, by candidate.

        It is None if it is unknown, or no other client waits.
        """
        simulated_us = sum((queue.others_us for queue in self.explained), np.zeros(len(self.names)))
        predicted_us = sum((queue.predicted_us for queue in self.explained), np.zeros(len(self.names)))
        return {
            name: float(1 - predicted_us[n] / simulated_us[n]) if simulated_us[n] else None
            for n, name in enumerate(self.names)
        }


def benefit_of(  # noqa: PLR0913 - most by name
    folder: str,
    candidates: Sequence[Candidate],
    mode: Mode,
    map_items: Map,
    *,
    threads: int | None = None,
    settings: ReplaySettings | None = None,
    delayed: Sequence[DelayedRequests] | None = None,
) -> Benefit:
    """
    Run the queues of all brokers as logged and under each candidate, a UTC day at a time.

    Quotas and queues start each day from scratch.

    Args:
        folder: folder of the history.
        candidates: candidates as `replay` takes them.
        mode: open loop: of a throttled client, the requests above its limit never come, which is an upper bound of what
            is saved; others come as logged, so that an error adds up near saturation. Closed loop: they come later, and
            each request follows the last one of its connection.
        map_items: maps the work over days: `map`, or that of an engine.
        threads: `num.io.threads`; None for the estimate of `blame` for each broker.
        settings: settings of the replay.
        delayed: the requests that a replay of the same requests delays, if all are of one day; without them, each day
            is replayed.

    """
    names = [candidate.name for candidate in candidates]
    try:
        requests = Table.open(f"{folder}/requests", schema=REQUESTS)
    except NoTable:
        return Benefit(names=names, brokers=())
    files = sorted(requests.files(), key=lambda file: file.day)
    days = [list(group) for _, group in groupby(files, lambda file: file.day)]
    threads_by_broker: int | Mapping[str, int] | None = threads
    if threads_by_broker is None and len(days) > 1:
        threads_by_broker = _threads(chain.from_iterable(map_items(partial(surveys, requests), days)))
    replay = _DayReplay(tuple(candidates), mode, settings, delayed)
    work = partial(_day, requests, replay, threads_by_broker)
    queues: dict[str, BrokerQueue] = {}
    for queue in chain.from_iterable(map_items(work, days)):
        earlier = queues.get(queue.broker)
        queues[queue.broker] = queue if earlier is None else earlier.added(queue)
    return Benefit(names=names, brokers=[queues[name] for name in sorted(queues)], estimated=threads is None)


class _DayReplay(NamedTuple):
    """Replay of a day, or of a history of one day."""

    candidates: Sequence[Candidate]
    mode: Mode
    settings: ReplaySettings | None
    delayed: Sequence[DelayedRequests] | None
    """The requests that it delays, if it has been done."""

    def of_files(self, requests: Table, files: Sequence[File]) -> tuple[pa.Table, Ints]:
        """Return the rows of files in the order of their places, and the delay by candidate and row (`lateness`)."""
        if self.delayed is not None:
            rows = _in_order(requests.read(_OF_QUEUES, files=files))
            late_ms = delays_of(rows, self.delayed, len(self.candidates))
            if late_ms is not None:
                return rows, late_ms
        rows = _in_order(requests.read(_READ, files=files))
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        # rows of several files in one order, so that a position names a row
        numbered = pa.table({**columns, "file": pa.repeat("", len(rows)), "position": np.arange(len(rows))})
        return rows, lateness(history_of(numbered), self.candidates, self.mode, len(rows), self.settings)


def _in_order(rows: pa.Table) -> pa.Table:
    """Return rows in the order of their places."""
    return rows.sort_by([(name, "ascending") for name in PLACE])


def _threads(of_requests: Iterable[Survey]) -> Mapping[str, int]:
    """Return the estimated number of handler threads by broker."""
    plan = plan_of(list(of_requests))
    return dict(zip(plan.head.pools[0], plan.threads, strict=True))


def _day(
    requests: Table, replay: _DayReplay, threads: int | Mapping[str, int] | None, files: Sequence[File]
) -> list[BrokerQueue]:  # fmt: skip
    """Return the queues of all brokers in the files of a day; it estimates `threads` if they are None."""
    rows, late_ms = replay.of_files(requests, files)
    served = intervals.intervals(rows)
    if threads is None:
        threads = _threads([Survey.of(served)])
    throttled = _throttled(served, late_ms)
    following = _connections(rows) if replay.mode is Mode.CLOSED_LOOP else None
    queues: list[BrokerQueue] = []
    for broker in sorted({place.broker for place in served.listeners if place not in served.controllers}):
        # only a day's own lines tell controllers, so that a pool of the plan may be missing on a day
        count = threads if isinstance(threads, int) else threads.get(broker, 1)
        queues.append(_queue(broker, served.of_pool(broker), count, late_ms, throttled, following))
    return queues


def _connections(rows: pa.Table) -> Ints:
    """Return the number of each row's connection; -1 where it is unknown."""
    encoded = rows["connection"].combine_chunks().dictionary_encode().indices
    return np.asarray(encoded.fill_null(-1).to_numpy(), np.int64)


def _throttled(served: intervals.Intervals, late_ms: Ints) -> NDArray[np.bool_]:
    """Return for each candidate and client whether the candidate throttles any of the client's requests that day."""
    names, clients = served.clients
    if not len(served):
        return np.zeros((len(late_ms), len(names)), np.bool_)
    client_by_request = clients[served.groups]
    is_throttled = [np.bincount(client_by_request, late[served.rows] != 0, len(names)) > 0 for late in late_ms]
    return np.array(is_throttled, np.bool_).reshape(len(late_ms), len(names))


def _queue(
    broker: str,
    pool: intervals.Intervals,
    threads: int,
    late_ms: Ints,
    throttled: NDArray[np.bool_],
    connections: Ints | None,
) -> BrokerQueue:
    """
    Run the queue of a broker as logged and under each candidate.

    Args:
        broker: name of the broker.
        pool: requests of the broker.
        threads: number of its handler threads.
        late_ms: delay by candidate and row of the day, as `lateness` returns it.
        throttled: mask by candidate and client.
        connections: numbers by row of the day, in closed loop; None in open loop.

    """
    queue = LoggedQueue(
        arrivals=pool.enqueued,
        holds=pool.released - pool.dequeued,
        logged=pool.dequeued - pool.enqueued,
        threads=threads,
    )
    connection_by_request = None if connections is None else connections[pool.rows]
    as_logged = queue.waits(connections=connection_by_request)
    _, clients = pool.clients
    count = len(late_ms)
    logged_waits = np.zeros((count, len(_BINS) - 1), np.int64)
    predicted_waits, sums = np.zeros_like(logged_waits), np.zeros((2, count))
    for candidate in range(count):
        late = late_ms[candidate][pool.rows]
        is_sent = late != NEVER
        late_us = np.where(is_sent, late * 1_000, 0)
        of_others = ~throttled[candidate][clients[pool.groups]]
        waits = queue.waits(late_us, is_sent, connection_by_request)[of_others]
        base = as_logged[of_others]
        if connection_by_request is None:
            # in open loop, scale the part of a wait that the throttled clients cause, so that it is as long as logged
            waits_without = queue.waits(present=of_others)[of_others]
            scale = scale_of(base, waits_without, queue.logged[of_others])
            waits, base = (
                np.maximum(0.0, waits_without + scale * (simulated - waits_without)) for simulated in (waits, base)
            )
        sums[:, candidate] = base.sum(), waits.sum()
        logged_waits[candidate] = np.histogram(queue.logged[of_others], _BINS)[0]
        predicted_waits[candidate] = np.histogram(waits, _BINS)[0]
    return BrokerQueue(
        broker=broker,
        threads=queue.threads,
        requests=len(pool),
        unknown=int(pool.unknown.sum()),
        logged_us=float(queue.logged.sum()),
        simulated_us=float(as_logged.sum()),
        others_us=sums[0],
        predicted_us=sums[1],
        logged_waits=logged_waits,
        predicted_waits=predicted_waits,
    )


def percentile_us(counts: Ints, part: float) -> float | None:
    """Return the wait that this part of requests does not exceed, to 1.2 %; None without a request."""
    total = int(counts.sum())
    if not total:
        return None
    place = int(np.searchsorted(np.cumsum(counts), max(1, np.ceil(total * part))))
    # the upper border of the bin; the last one has none, so its lower border
    return float(_BINS[min(place + 1, len(_BINS) - 2)])
