"""Surveys of a log's requests, the plan for dividing their waits that follows from them, and sums of divided waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import Column, added, array
from ..errors import PipelineError
from ..losses import Losses
from ..rates import EmptyHistory
from ..replay.compiled import Codes
from ..table import File, Table
from .intervals import ALWAYS, Intervals, SpanUs, merged, read
from .waits import NOT_LOGGED, divided, spread, summed

ESTIMATED: Final = "the most that the log shows busy in a second; --io-threads sets num.io.threads"
"""Text about a number of handler threads that was estimated, as `--io-threads` is missing."""
OTHERS: Final = -2
"""Number in place of a culprit in `Sums.timeline`: the clients with less than a twentieth of a slot's waits."""
_CELL: Final = ("victim", "culprit")
"""Key of a cell of the matrix."""
_LEAST_SHARE: Final = 0.05
"""Part of a slot's waits below which a culprit is one of the `OTHERS`."""
SECOND_US: Final = 1_000_000
_SLOTS_S: Final = (1, 10, 60, 600, 3_600, 86_400)
"""Lengths of slots to choose from."""
_MOST_SLOTS: Final = 1_500
_PIECE_ROWS: Final = 500_000
"""
Approximate number of requests, of all pools, in a piece that a Spark worker takes.

With smaller pieces, more cells of the matrix would be in many of them.
"""
_IDLE: Final = 0.1
"""Part of a thread that an estimate of threads takes for idle, before it rounds up."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """Facts about some requests that the plan for dividing their waits needs."""

    head: Intervals
    """Names and listeners of the requests, without rows."""
    rows: int
    begin_us: int
    """Time when the first request was enqueued; above `end_us` if there is no request."""
    end_us: int
    """Time when the last request released its thread; 0 if there is no request."""
    busy: pa.Table
    """Table of `place` (a listener's number), `second` and `held`: us for which the listener's threads were held."""

    @classmethod
    def of(cls, requests: Intervals) -> Survey:
        """Survey some requests."""
        rows, seconds, held_us = spread(requests.dequeued, requests.released - requests.dequeued, SECOND_US)
        return cls(
            head=requests.only(np.zeros(0, np.int64)),
            rows=len(requests),
            begin_us=int(requests.enqueued.min(initial=1 << 62)),
            end_us=int(requests.released.max(initial=0)),
            busy=summed({"place": requests.places[rows], "second": seconds}, {"held": held_us})
        )  # fmt: skip


def surveys(
    table: Table, files: Sequence[File], *, names: Mapping[str, str] | None = None, span_us: SpanUs = ALWAYS
) -> list[Survey]:
    """Return the survey of each file of the table `requests`; no more than one file is in memory at a time."""
    return [Survey.of(merged([*read(table, [file], names, span_us)])) for file in files]


class NoQueueTimes(PipelineError):
    """No request of the history has a queue time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """Source of the requests whose waits are divided."""

    folder: str
    """Folder of the history."""
    table: Table
    """Table `requests` of the history."""
    shards: Sequence[Sequence[File]]
    """Files of the table that may have requests of the period, by shard."""
    names: Mapping[str, str]
    """Names of topics by id."""
    span_us: SpanUs
    """Begin and end of the period."""

    def plan(self, surveys: Sequence[Survey], threads: int | None) -> Plan:
        """
        Return the plan that follows from the surveys of these requests (`plan_of`).

        Raises:
            EmptyHistory: there is no request in the period.
            NoQueueTimes: no request in the period has a queue time.

        """
        plan = plan_of(surveys, threads, self.span_us)
        if not plan.rows and not plan.head.unknown.sum():
            raise EmptyHistory(f"{self.folder}: the history has no request in this period")
        if not plan.rows:
            raise NoQueueTimes(
                f"no request of {self.folder} in this period has a queue time: its log has no requestQueueTimeMs"
            )
        return plan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Plan for dividing the waits of all requests."""

    head: Intervals
    """All names and listeners, and the number of requests of unknown queue time, without rows."""
    rows: int
    """Number of requests."""
    begin_us: int
    """Time when the first request was enqueued, or the begin of the period if that is later."""
    end_us: int
    """Time just after the last request released its thread, or the end of the period if that is earlier."""
    slot_us: int
    """Length of the timeline's slots: as short as possible with at most `_MOST_SLOTS`."""
    piece_us: int
    """Length of the pieces that Spark's workers divide separately: a whole number of slots, at least a minute."""
    threads: Sequence[int]
    """Number of handler threads, by pool."""
    estimated: bool
    """True if the numbers of threads are `ESTIMATED`."""


def plan_of(surveys: Sequence[Survey], threads: int | None = None, span_us: SpanUs = ALWAYS) -> Plan:
    """
    Return the plan for dividing the waits of all surveyed requests in a period.

    Args:
        surveys: surveys of all requests.
        threads: `num.io.threads` of all brokers; None to estimate it for each pool.
        span_us: begin and end of the period, us since 1970.

    """
    head = merged([survey.head for survey in surveys])
    rows = sum(survey.rows for survey in surveys)
    begin = max(span_us[0], min((survey.begin_us for survey in surveys), default=0))
    end = min(span_us[1], max((survey.end_us for survey in surveys), default=0) + 1)
    slot = SECOND_US * next(
        (seconds for seconds in _SLOTS_S if end - begin <= seconds * SECOND_US * _MOST_SLOTS), _SLOTS_S[-1]
    )
    piece = max(60 * SECOND_US, (end - begin) * _PIECE_ROWS // max(1, rows))
    return Plan(
        head=head,
        rows=rows,
        begin_us=begin,
        end_us=end,
        slot_us=slot,
        piece_us=-(-piece // slot) * slot,  # rounded up to whole slots
        threads=[threads] * len(head.pools[0]) if threads else _busiest_threads(head, surveys),
        estimated=not threads,
    )


def _busiest_threads(head: Intervals, surveys: Sequence[Survey]) -> list[int]:
    """Return by pool of `head` the largest number of threads that were busy in a second, and at least 1."""
    pools, pool_by_listener = head.pools
    busiest = [1] * len(pools)
    if not surveys:
        return busiest
    tables = []
    for survey in surveys:
        listeners = [head.listeners.index(place) for place in survey.head.listeners]
        pool_by_place = pool_by_listener[listeners]
        tables.append(survey.busy.set_column(0, "pool", array(pool_by_place[survey.busy["place"].to_numpy()])))
    by_second = added(pa.concat_tables(tables), ("pool", "second"))
    for row in by_second.group_by("pool").aggregate([("held", "max")]).to_pylist():
        busiest[row["pool"]] = max(1, ceil(row["held_max"] / SECOND_US - _IDLE))
    return busiest


KEY: Final = ("table", "pool", "slot", "victim", "culprit", "client")
"""Key columns of `ROWS`: `table` is the index of the table in `Sums`, the others are the keys of the tables."""
ROWS: Final = pa.schema([(name, pa.int64()) for name in (*KEY, "wait_ns", "requests", "held_us")])
"""Schema of one table with the rows of all tables of `Sums`, and nulls in the columns that a row does not have."""


class Sums(NamedTuple):
    """
    Sums of the parts of waits, in three tables of int64.

    A table is sorted by its key, and has a row for each key. Clients, groups and pools are numbers of the plan's
    `head`; a culprit may also be `NOT_LOGGED`.
    """

    matrix: pa.Table
    """Key `pool`, `victim` and `culprit` (both groups), value `wait_ns`."""
    timeline: pa.Table
    """Key `pool`, `slot`, `victim` and `culprit` (both clients; the culprit also `OTHERS`), value `wait_ns`."""
    loads: pa.Table
    """Key `pool`, `slot` and `client`, values `requests` (taken in the slot) and `held_us` (within the slot)."""

    @classmethod
    def of(cls, rows: pa.Table) -> Sums:
        """Return the three tables of rows of `ROWS`, which have each key once."""
        columns = [
            (("pool", *_CELL), ("wait_ns",)),
            (("pool", "slot", *_CELL), ("wait_ns",)),
            (("pool", "slot", "client"), ("requests", "held_us")),
        ]
        tables = []
        for number, (key, values) in enumerate(columns):
            is_of_table: Column = pc.equal(rows["table"], pa.scalar(number))
            table = rows.filter(is_of_table).select([*key, *values])
            tables.append(table.sort_by([(name, "ascending") for name in key]))
        return cls(*tables)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blame:
    """Result for a history: the plan, and the sums."""

    folder: str
    plan: Plan
    sums: Sums
    losses: Losses = field(default_factory=Losses)
    """Losses of the history in the period."""


def sums_of(requests: Intervals, plan: Plan, pool: int, begin_us: int, end_us: int) -> pa.Table:
    """
    Return the sums of waits and loads of one pool in a piece of time, as rows of `ROWS`.

    Args:
        requests: requests of the pool, with the plan's names, as `divided` takes them.
        plan: the plan.
        pool: number of the pool.
        begin_us: begin of the piece, us since 1970: the begin of a slot or of the period.
        end_us: end of the piece, us since 1970: the end of a slot or of the period.

    """
    client_by_group = plan.head.clients[1]
    client_by_culprit = np.r_[client_by_group, NOT_LOGGED]  # `NOT_LOGGED` is -1, and so the index of the last element
    matrices, timelines = [], []
    for parts in divided(requests, plan.threads[pool], begin_us, end_us, plan.slot_us):
        matrices.append(added(parts.drop_columns("slot"), _CELL))
        victims, culprits = (parts[name].to_numpy() for name in _CELL)
        clients = {"victim": client_by_group[victims], "culprit": client_by_culprit[culprits]}
        timelines.append(summed({"slot": parts["slot"], **clients}, {"wait_ns": parts["wait_ns"]}))
    matrix = added(pa.concat_tables(matrices), _CELL)
    timeline = _with_small_culprits_joined(added(pa.concat_tables(timelines), ("slot", *_CELL)))
    loads = _loads(requests, client_by_group, begin_us, end_us, plan.slot_us)
    tables = [
        table.append_column("table", array(np.full(len(table), number)))
        for number, table in enumerate((matrix, timeline, loads))
    ]
    sums = pa.concat_tables(tables, promote_options="default")
    return sums.append_column("pool", array(np.full(len(sums), pool))).select(ROWS.names)


def _loads(requests: Intervals, client_by_group: Codes, begin_us: int, end_us: int, slot_us: int) -> pa.Table:
    """Return the requests taken and the time for which threads were held, us, by `slot` and `client`."""
    hold_begins, hold_ends = np.maximum(requests.dequeued, begin_us), np.minimum(requests.released, end_us)
    rows, slots, held_us = spread(hold_begins, hold_ends - hold_begins, slot_us)
    taken = np.flatnonzero((requests.dequeued >= begin_us) & (requests.dequeued < end_us))
    # rows with the time for which threads were held, and then rows with the requests that were taken
    return summed(
        {
            "slot": np.r_[slots, requests.dequeued[taken] // slot_us],
            "client": client_by_group[requests.groups[np.r_[rows, taken]]],
        },
        {
            "requests": np.r_[np.zeros(len(rows), np.int64), np.ones(len(taken), np.int64)],
            "held_us": np.r_[held_us, np.zeros(len(taken), np.int64)],
        },
    )


def _with_small_culprits_joined(timeline: pa.Table) -> pa.Table:
    """Return the timeline with `OTHERS` in place of culprits that caused less than `_LEAST_SHARE` of a slot's waits."""
    slots, victims, culprits, waits = (timeline[name].to_numpy() for name in ("slot", "victim", "culprit", "wait_ns"))
    slot_numbers = np.unique(slots, return_inverse=True)[1]
    # a pair of slot and culprit as one number; there are at least as many pairs as slots
    pairs, pair_numbers = np.unique(slot_numbers * (1 << 32) + culprits, return_inverse=True)
    slot_waits, pair_waits = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
    np.add.at(slot_waits, slot_numbers, waits)
    np.add.at(pair_waits, pair_numbers, waits)
    is_small = (culprits >= 0) & (pair_waits[pair_numbers] < _LEAST_SHARE * slot_waits[slot_numbers])
    joined = np.where(is_small, OTHERS, culprits)
    return summed({"slot": slots, "victim": victims, "culprit": joined}, {"wait_ns": waits})
