"""Surveys of a log's requests before their waits are divided, and the sums of the parts of a piece."""

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
from ..table import File, Table
from .intervals import ALWAYS, Intervals, SpanUs, read, together
from .waits import NOT_LOGGED, divided, spread, summed

ESTIMATED: Final = "the most that the log shows busy in a second; --io-threads sets num.io.threads"
"""Text about a number of handler threads that no option gives."""
OTHERS: Final = -2
"""Number that stands for a culprit in `Sums.timeline`: clients with less than a twentieth of a slot's waits each."""
_CELL: Final = ("victim", "culprit")
_LEAST_SHARE: Final = 0.05
SECOND_US: Final = 1_000_000
_SLOTS_S: Final = (1, 10, 60, 600, 3_600, 86_400)
_MOST_SLOTS: Final = 1_500
_PIECE_ROWS: Final = 500_000
"""
Approximate number of requests of all pools in a piece that a worker of Spark takes.

With fewer, more cells of the matrix are in many pieces.
"""
_IDLE: Final = 0.1
"""Part of a thread above which it counts in an estimate of threads."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """Facts about some requests before their waits are divided."""

    head: Intervals
    """Names and listeners of the requests, without rows."""
    rows: int
    begin_us: int
    """Time when the first request was enqueued; above `end_us` if there is no request."""
    end_us: int
    busy: pa.Table
    """Time for which threads were held, us, by listener (`place`) and `second`."""

    @classmethod
    def of(cls, requests: Intervals) -> Survey:
        """Return the survey of some requests."""
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
    """Return the survey of each file of `requests`, as `read` takes them: a worker has no more than one in memory."""
    return [Survey.of(together([*read(table, [file], names, span_us)])) for file in files]


class NoQueueTimes(PipelineError):
    """No request of the history has a queue time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """Requests of a history whose waits are divided."""

    folder: str
    """Folder of the history."""
    table: Table
    shards: Sequence[Sequence[File]]
    """Files of `requests` with those of the period, by shard."""
    names: Mapping[str, str]
    """Names of topics by id."""
    span_us: SpanUs
    """Begin and end of the period."""

    def plan(self, surveys: Sequence[Survey], threads: int | None) -> Plan:
        """
        Return the plan for these requests by their surveys (`plan_of`).

        Raises:
            EmptyHistory: there is no request in the period.
            NoQueueTimes: none of them has a queue time.

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
    """All names and listeners, and the requests of unknown queue time."""
    rows: int
    begin_us: int
    end_us: int
    """Time after the end of the last request, and not after the period."""
    slot_us: int
    """Length of the slots of the timeline, which limits their number."""
    piece_us: int
    """Length of the pieces that Spark's workers divide separately, in complete slots: at least a minute."""
    threads: Sequence[int]
    """Number of handler threads, by pool."""
    estimated: bool
    """True if the numbers of threads are `ESTIMATED`."""


def plan_of(surveys: Sequence[Survey], threads: int | None = None, span_us: SpanUs = ALWAYS) -> Plan:
    """
    Return the plan for all requests of some surveys, whose waits in a period are divided.

    `threads` is `num.io.threads` of each broker; else, by pool, the most that were busy in a second, and at least one.
    """
    head = together([survey.head for survey in surveys])
    pools, of_listeners = head.pools
    busiest = [1] * len(pools)
    if threads is None and surveys:
        busy = []
        for survey in surveys:
            of_places = of_listeners[[head.listeners.index(place) for place in survey.head.listeners]]
            busy.append(survey.busy.set_column(0, "pool", array(of_places[survey.busy["place"].to_numpy()])))
        by_second = added(pa.concat_tables(busy), ("pool", "second"))
        for row in by_second.group_by("pool").aggregate([("held", "max")]).to_pylist():
            busiest[row["pool"]] = max(1, ceil(row["held_max"] / SECOND_US - _IDLE))
    rows = sum(survey.rows for survey in surveys)
    begin = max(span_us[0], min((survey.begin_us for survey in surveys), default=0))
    end = min(span_us[1], max((survey.end_us for survey in surveys), default=0) + 1)
    slot = SECOND_US * next(
        (seconds for seconds in _SLOTS_S if end - begin <= seconds * SECOND_US * _MOST_SLOTS), _SLOTS_S[-1]
    )
    share = (end - begin) * _PIECE_ROWS // max(1, rows)
    least_us = max(60 * SECOND_US, share)
    return Plan(
        head=head,
        rows=rows,
        begin_us=begin,
        end_us=end,
        slot_us=slot,
        piece_us=-(-least_us // slot) * slot,
        threads=[threads] * len(pools) if threads else busiest,
        estimated=not threads,
    )


KEY: Final = ("table", "pool", "slot", "victim", "culprit", "client")
"""Key columns of `ROWS`: the number of the table in `Sums`, and the keys of all tables."""
ROWS: Final = pa.schema([(name, pa.int64()) for name in (*KEY, "wait_ns", "requests", "held_us")])
"""Rows of all tables of `Sums` in one, with nulls in the columns that a table does not have."""


class Sums(NamedTuple):
    """
    Sums of parts: tables of int64, each key once and in its order.

    Clients and groups are the plan's numbers, culprits also `NOT_LOGGED`.
    """

    matrix: pa.Table
    """`pool`, `victim` and `culprit` (groups): `wait_ns`"""
    timeline: pa.Table
    """`pool`, `slot`, `victim` and `culprit` (clients, also `OTHERS`): `wait_ns`"""
    loads: pa.Table
    """`pool`, `slot`, `client`: `requests` that were taken in it, `held_us` within it"""

    @classmethod
    def of(cls, rows: pa.Table) -> Sums:
        """Return the sums in `ROWS`, which has each key once."""
        columns = [
            (("pool", *_CELL), ("wait_ns",)),
            (("pool", "slot", *_CELL), ("wait_ns",)),
            (("pool", "slot", "client"), ("requests", "held_us")),
        ]
        tables = []
        for number, (key, values) in enumerate(columns):
            chosen: Column = pc.equal(rows["table"], pa.scalar(number))
            table = rows.filter(chosen).select([*key, *values])
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
    Return the sums of the waits, and of the held threads, in a piece of time of a pool (its number), as `ROWS`.

    Requests have the plan's names, and are those that `divided` takes. The piece begins and ends (us since 1970) with a
    slot or the period.
    """
    slot_us, (_, of_groups) = plan.slot_us, plan.head.clients
    of_culprits = np.r_[of_groups, NOT_LOGGED]  # the last place is that of `NOT_LOGGED`, index -1
    matrices, timelines = [], []
    for parts in divided(requests, plan.threads[pool], begin_us, end_us, slot_us):
        matrices.append(added(parts.drop_columns("slot"), _CELL))
        victims, culprits = (parts[name].to_numpy() for name in _CELL)
        of_clients = {"slot": parts["slot"], "victim": of_groups[victims], "culprit": of_culprits[culprits]}
        timelines.append(summed(of_clients, {"wait_ns": parts["wait_ns"]}))
    matrix = added(pa.concat_tables(matrices), _CELL)
    timeline = _folded(added(pa.concat_tables(timelines), ("slot", *_CELL)))
    from_, to = np.maximum(requests.dequeued, begin_us), np.minimum(requests.released, end_us)
    rows, slots, held_us = spread(from_, to - from_, slot_us)
    taken = np.flatnonzero((requests.dequeued >= begin_us) & (requests.dequeued < end_us))
    loads = summed(
        {
            "slot": np.r_[slots, requests.dequeued[taken] // slot_us],
            "client": of_groups[requests.groups[np.r_[rows, taken]]],
        },
        {"requests": np.repeat([0, 1], [len(rows), len(taken)]), "held_us": np.r_[held_us, 0 * taken]}
    )  # fmt: skip
    tables = [
        table.append_column("table", array(np.full(len(table), number)))
        for number, table in enumerate((matrix, timeline, loads))
    ]
    sums = pa.concat_tables(tables, promote_options="default")
    return sums.append_column("pool", array(np.full(len(sums), pool))).select(ROWS.names)


def _folded(timeline: pa.Table) -> pa.Table:
    """Return the timeline with `OTHERS` for culprits that caused only a small part of a slot's waits."""
    slots, victims, culprits, waits = (timeline[name].to_numpy() for name in ("slot", "victim", "culprit", "wait_ns"))
    _, of_slots = np.unique(slots, return_inverse=True)
    different, of_pairs = np.unique(of_slots * (1 << 32) + culprits, return_inverse=True)
    slot_waits, pair_waits = np.zeros(len(different), np.int64), np.zeros(len(different), np.int64)
    np.add.at(slot_waits, of_slots, waits)
    np.add.at(pair_waits, of_pairs, waits)
    small = (culprits >= 0) & (pair_waits[of_pairs] < _LEAST_SHARE * slot_waits[of_slots])
    return summed({"slot": slots, "victim": victims, "culprit": np.where(small, OTHERS, culprits)}, {"wait_ns": waits})
