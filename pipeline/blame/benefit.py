"""What candidates save others: the queue of each broker's handler threads, as logged and as it would have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from quotascope.pages.words import counted, percent, shown
from quotascope.quotas.candidates import Candidate

from ..errors import NoTable
from ..history.charges import COLUMNS, history_of
from ..replay import Mode, ReplaySettings
from ..replay.closed_loop import NEVER
from ..replay.compiled import Floats, Ints
from ..replay.results import lateness
from ..request_log.schema import REQUESTS
from ..table import File, Table
from ..table.table import Run
from . import intervals
from .queueing import CLOCK_US, MOST_ERROR, LoggedQueue, scale_of
from .summing import ESTIMATED, plan_of, surveys

_READ: Final = tuple(dict.fromkeys((*COLUMNS, *intervals.COLUMNS)))
_MOST_UNKNOWN: Final = 0.01
"""Requests without a queue time, as a part of all of a broker, above which its queue is unknown."""
_BINS: Final = np.r_[0.0, np.geomspace(10.0, 1e9, 1_601), np.inf]
"""Borders of the bins of waits, us: each 1.2 % above the last."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerQueue:
    """
    Waits of a broker's requests, added up over days; by candidate those of *others*: clients that it throttles in no request of a day.

    Times are us.
    """

    broker: str
    threads: int
    """Handler threads, as given or as estimated; the most of any day."""
    requests: int
    unknown: int
    """Requests of which the log has no queue time."""
    logged_us: float
    """All queue times."""
    simulated_us: float
    """
    What the queue of the threads makes of them, with the time that waking a thread takes. Closed loop: each comes as long after the last one of
    its connection as logged, as a broker reads no request of a connection before it has answered the last one (`SocketServer` mutes the channel).
    """
    others_us: Floats
    """By candidate: waits of others as simulated; open loop: as logged where the candidate's clients cause most of them."""
    predicted_us: Floats
    """By candidate: the same under it."""
    logged_waits: Ints
    """By candidate and bin: how many queue times of others."""
    predicted_waits: Ints

    def added(self, other: BrokerQueue) -> BrokerQueue:
        """Both together."""
        names = [name for name in self.__slots__ if name not in {"broker", "threads"}]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return BrokerQueue(broker=self.broker, threads=max(self.threads, other.threads), **sums)

    @property
    def error(self) -> float:
        """By which part the mean wait as simulated differs from the logged one; 0 where the log's clock is too coarse to show it."""
        off = self.simulated_us - self.logged_us
        return 0.0 if abs(off) <= CLOCK_US * self.requests else off / max(self.logged_us, 1.0)

    @property
    def times_known(self) -> bool:
        """Whether all but a few requests have a queue time."""
        return self.unknown <= _MOST_UNKNOWN * (self.requests + self.unknown)

    @property
    def refusal(self) -> str | None:
        """Why nothing is predicted for the broker; None where something is."""
        if not self.times_known:
            return f"{self.unknown:,} requests of broker {shown(self.broker)} have no queue time"
        if abs(self.error) > MOST_ERROR:
            why = (
                "as if the broker had more threads than were given, or in open loop near saturation"
                if self.error > 0
                else "as where requests wait for a CPU or garbage collection as well, which no log has"
            )
            return f"a queue with {counted(self.threads, 'handler thread')} does not explain the queue times of broker {shown(self.broker)}: its error is {percent(self.error, '+')}, {why}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Benefit:
    """What candidates save others, on the brokers whose queue times the queue explains."""

    names: Sequence[str]
    """Of the candidates."""
    brokers: Sequence[BrokerQueue]
    estimated: bool = False
    """Whether the numbers of handler threads are `ESTIMATED`."""

    @property
    def explained(self) -> Sequence[BrokerQueue]:
        """Those that something is predicted for."""
        return [each for each in self.brokers if each.refusal is None]

    def predicted(self, number: int, part: float) -> list[float | None]:
        """By broker: the predicted wait of a candidate that this part of the others' requests does not exceed, us."""
        return [percentile_us(each.predicted_waits[number], part) for each in self.explained]

    @property
    def notes(self) -> Sequence[str]:
        """How well the queues explain the log, and why something is unknown."""
        if not self.brokers:
            return ("The wait is unknown: there is no request of a broker; ingest brokers' logs with this release.",)
        if not any(each.requests for each in self.brokers):
            return ("The wait is unknown: the log has no queue times; ingest it with this release.",)
        explained = [
            f"broker {shown(each.broker)} ({counted(each.threads, 'handler thread')}) {percent(each.error, '+')}"
            for each in self.explained
        ]
        refused = [each.refusal for each in self.brokers if each.refusal is not None]
        found = [f"Error of the simulated queue times against the log: {', '.join(explained)}."] if explained else []
        if self.estimated:
            found.append(f"The number of handler threads is {ESTIMATED}.")
        return (*found, *(f"Left out of the wait: {why}." for why in refused))

    def values(self) -> list[dict[str, Any]]:
        """The brokers for JSON: threads, error of the simulation, and why nothing is predicted, if so."""
        return [
            {
                "broker": each.broker,
                "io_threads": each.threads,
                "io_threads_estimated": self.estimated,
                "requests": each.requests,
                "without_queue_time": each.unknown,
                "error": each.error if each.requests else None,
                "refusal": each.refusal,
            }
            for each in self.brokers
        ]

    @property
    def saved(self) -> Mapping[str, float | None]:
        """By candidate: the part of the others' queue times that it saves them; None if it is unknown, or no other waits."""
        before = sum((each.others_us for each in self.explained), np.zeros(len(self.names)))
        after = sum((each.predicted_us for each in self.explained), np.zeros(len(self.names)))
        return {name: float(1 - after[n] / before[n]) if before[n] else None for n, name in enumerate(self.names)}


def benefit_of(
    folder: str,
    candidates: Sequence[Candidate],
    mode: Mode,
    run: Run,
    *,
    threads: int | None = None,
    settings: ReplaySettings | None = None,
) -> Benefit:
    """
    Run the queues of all brokers as logged and under each candidate, a UTC day at a time: neither a quota nor a queue knows the day before.

    Args:
        folder: of the history.
        candidates: as `replay` takes them.
        mode: open loop: of a throttled client, the requests above its limit never come, which is an upper bound of what is saved; others come
            as logged, so that an error adds up near saturation. Closed loop: they come later, and each request follows the last one of its
            connection.
        run: where the work is done.
        threads: `num.io.threads`; else for each broker as `blame` estimates it.
        settings: of the replay.

    """
    names = [each.name for each in candidates]
    try:
        requests = Table.open(f"{folder}/requests", schema=REQUESTS)
    except NoTable:
        return Benefit(names=names, brokers=())
    files = sorted(requests.files(), key=lambda file: file.day)
    days = [list(group) for _, group in groupby(files, lambda file: file.day)]
    known: int | Mapping[str, int] | None = threads
    if known is None:
        plan = plan_of(list(chain.from_iterable(run(partial(surveys, requests), days))))
        known = dict(zip(plan.head.pools[0], plan.threads, strict=True))
    work = partial(_day, requests, tuple(candidates), mode, known, settings)
    found: dict[str, BrokerQueue] = {}
    for each in chain.from_iterable(run(work, days)):
        earlier = found.get(each.broker)
        found[each.broker] = each if earlier is None else earlier.added(each)
    return Benefit(names=names, brokers=[found[name] for name in sorted(found)], estimated=threads is None)


def _day(
    requests: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    threads: int | Mapping[str, int],
    settings: ReplaySettings | None,
    files: Sequence[File],
) -> list[BrokerQueue]:
    """The queues of all brokers in the files of a day."""
    rows = requests.read(_READ, files=files).sort_by([("file", "ascending"), ("position", "ascending")])
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    numbered = pa.table({**columns, "file": pa.repeat("", len(rows)), "position": np.arange(len(rows))})
    served = intervals.intervals(rows)
    late = np.zeros((len(candidates), len(rows)), np.int64)
    if len(served):
        late = lateness(history_of(numbered), candidates, mode, len(rows), settings)
    encoded = rows["connection"].combine_chunks().dictionary_encode().indices
    connections = encoded.fill_null(-1).to_numpy().astype(np.int64)
    names, clients = served.clients
    of_rows = clients[served.groups]
    throttled = [np.bincount(of_rows, late[n][served.rows] != 0, len(names)) > 0 for n in range(len(candidates))]
    found = []
    of_brokers = {each.broker for each in served.listeners if each not in served.controllers}
    for name in sorted(of_brokers):
        pool = served.of_pool(name)
        # controllers are known by a day's lines alone, so that a pool of the plan may be missing
        count = threads if isinstance(threads, int) else threads.get(name, 1)
        queue = LoggedQueue(pool.enqueued, pool.released - pool.dequeued, pool.dequeued - pool.enqueued, count)
        before = np.zeros((len(candidates), len(_BINS) - 1), np.int64)
        after, sums = np.zeros_like(before), np.zeros((2, len(candidates)))
        following = connections[pool.rows] if mode is Mode.CLOSED_LOOP else None
        as_logged = queue.waits(connections=following)
        for n in range(len(candidates)):
            late_ms = late[n][pool.rows]
            others = ~throttled[n][clients[pool.groups]]
            waits = queue.waits(np.where(late_ms == NEVER, 0, late_ms * 1_000), late_ms != NEVER, following)[others]
            base = as_logged[others]
            if following is None:
                without = queue.waits(present=others)[others]
                scale = scale_of(base, without, queue.logged[others])
                waits, base = (np.maximum(0.0, without + scale * (each - without)) for each in (waits, base))
            sums[:, n] = base.sum(), waits.sum()
            before[n], after[n] = (np.histogram(each, _BINS)[0] for each in (queue.logged[others], waits))
        found.append(
            BrokerQueue(
                broker=name,
                threads=queue.threads,
                requests=len(pool),
                unknown=int(pool.unknown.sum()),
                logged_us=float(queue.logged.sum()),
                simulated_us=float(as_logged.sum()),
                others_us=sums[0],
                predicted_us=sums[1],
                logged_waits=before,
                predicted_waits=after,
            )
        )
    return found


def percentile_us(counts: Ints, part: float) -> float | None:
    """The wait that this part of requests does not exceed, to 1.2 %; None without a request."""
    total = int(counts.sum())
    if not total:
        return None
    place = int(np.searchsorted(np.cumsum(counts), max(1, np.ceil(total * part))))
    return float(_BINS[min(place + 1, len(_BINS) - 2)])
