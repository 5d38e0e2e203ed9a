"""What a log's requests are before their waits are divided, and what the parts of a piece add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import Column, added, array
from ..table import File, Table
from .intervals import ALWAYS, Intervals, SpanUs, read, together
from .waits import NOT_LOGGED, divided, spread, summed

ESTIMATED: Final = "the most that the log shows busy in a second; --io-threads sets num.io.threads"
"""What a number of handler threads is that no option gives."""
OTHERS: Final = -2
"""In the place of a culprit in `Sums.timeline`: clients with less than a twentieth of a slot's waits each."""
_CELL: Final = ("victim", "culprit")
_LEAST_SHARE: Final = 0.05
SECOND_US: Final = 1_000_000
_SLOTS_S: Final = (1, 10, 60, 600, 3_600, 86_400)
_MOST_SLOTS: Final = 1_500
_PIECE_ROWS: Final = 500_000
"""About as many requests of all pools are in a piece that a worker of Spark takes: with fewer, more cells of the matrix are in many pieces."""
_IDLE: Final = 0.1
"""Part of a thread: busier ones count in an estimate of threads."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """What is known of some requests before waits are divided."""

    head: Intervals
    """Their names and listeners, without rows."""
    rows: int
    begin_us: int
    """When the first was enqueued; above `end_us` where there is no request."""
    end_us: int
    busy: pa.Table
    """By listener (`place`) and `second`: us for which threads were held."""

    @classmethod
    def of(cls, requests: Intervals) -> Survey:
        """The survey of some requests."""
        rows, seconds, held = spread(requests.dequeued, requests.released - requests.dequeued, SECOND_US)
        return cls(
            head=requests.only(np.zeros(0, np.int64)),
            rows=len(requests),
            begin_us=int(requests.enqueued.min(initial=1 << 62)),
            end_us=int(requests.released.max(initial=0)),
            busy=summed({"place": requests.places[rows], "second": seconds}, {"held": held})
        )  # fmt: skip


def surveys(
    table: Table, files: Sequence[File], *, names: Mapping[str, str] | None = None, span_us: SpanUs = ALWAYS
) -> list[Survey]:
    """The surveys of files of `requests`, as `read` takes them, each by itself: a worker has no more than one in memory."""
    return [Survey.of(together([*read(table, [file], names, span_us)])) for file in files]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """How the waits of all requests are divided."""

    head: Intervals
    """All names and listeners, and the requests of unknown queue time."""
    rows: int
    begin_us: int
    end_us: int
    """After the last request was done with, and not after the period."""
    slot_us: int
    """Length of the slots of the timeline, of which there are not too many."""
    piece_us: int
    """Length of the pieces that Spark's workers divide apart, in whole slots: at least a minute."""
    threads: Sequence[int]
    """Handler threads, by pool."""
    estimated: bool
    """Whether they are `ESTIMATED`."""


def plan_of(surveys: Sequence[Survey], threads: int | None = None, span_us: SpanUs = ALWAYS) -> Plan:
    """
    The plan for all requests of some surveys, of which the waits in a period are divided.

    `threads` is `num.io.threads` of each broker; else, by pool, the most that were busy in a second, and at least one.
    """
    head = together([each.head for each in surveys])
    pools, of_listeners = head.pools
    busiest = [1] * len(pools)
    if threads is None and surveys:
        busy = []
        for each in surveys:
            of_places = of_listeners[[head.listeners.index(place) for place in each.head.listeners]]
            busy.append(each.busy.set_column(0, "pool", array(of_places[each.busy["place"].to_numpy()])))
        by_second = added(pa.concat_tables(busy), ("pool", "second"))
        for row in by_second.group_by("pool").aggregate([("held", "max")]).to_pylist():
            busiest[row["pool"]] = max(1, ceil(row["held_max"] / SECOND_US - _IDLE))
    rows = sum(each.rows for each in surveys)
    begin = max(span_us[0], min((each.begin_us for each in surveys), default=0))
    end = min(span_us[1], max((each.end_us for each in surveys), default=0) + 1)
    slot = SECOND_US * next((each for each in _SLOTS_S if end - begin <= each * SECOND_US * _MOST_SLOTS), _SLOTS_S[-1])
    share = (end - begin) * _PIECE_ROWS // max(1, rows)
    least = max(60 * SECOND_US, share)
    return Plan(
        head=head,
        rows=rows,
        begin_us=begin,
        end_us=end,
        slot_us=slot,
        piece_us=-(-least // slot) * slot,
        threads=[threads] * len(pools) if threads else busiest,
        estimated=not threads,
    )


KEY: Final = ("table", "pool", "slot", "victim", "culprit", "client")
"""Of `ROWS`: the number of the table in `Sums`, and what its keys are of."""
ROWS: Final = pa.schema([(name, pa.int64()) for name in (*KEY, "wait_ns", "requests", "held_us")])
"""The rows of all tables of `Sums` in one, with nulls in the columns that a table has not."""


class Sums(NamedTuple):
    """What parts add up to: tables of int64, each key once and in its order. Clients and groups are the plan's numbers, culprits also `NOT_LOGGED`."""

    matrix: pa.Table
    """`pool`, `victim` and `culprit` (groups): `wait_ns`"""
    timeline: pa.Table
    """`pool`, `slot`, `victim` and `culprit` (clients, also `OTHERS`): `wait_ns`"""
    loads: pa.Table
    """`pool`, `slot`, `client`: `requests` that were taken in it, `held_us` within it"""

    @classmethod
    def of(cls, rows: pa.Table) -> Sums:
        """The sums in `ROWS`, of which each key has one."""
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
    """What of a history was divided, and the sums."""

    folder: str
    plan: Plan
    sums: Sums


def sums_of(requests: Intervals, plan: Plan, pool: int, begin_us: int, end_us: int) -> pa.Table:
    """
    The sums of the waits, and of the threads that were held, in a piece of time of a pool (its number), as `ROWS`.

    Requests have the plan's names, and are those that `divided` takes. The piece begins and ends (us since 1970) with a slot or the period.
    """
    slot_us, (_, of_groups) = plan.slot_us, plan.head.clients
    of_culprits = np.r_[of_groups, NOT_LOGGED]  # the last is that of the index `NOT_LOGGED`, -1
    matrices, timelines = [], []
    for parts in divided(requests, plan.threads[pool], begin_us, end_us, slot_us):
        matrices.append(added(parts.drop_columns("slot"), _CELL))
        victims, culprits = (parts[name].to_numpy() for name in _CELL)
        of_clients = {"slot": parts["slot"], "victim": of_groups[victims], "culprit": of_culprits[culprits]}
        timelines.append(summed(of_clients, {"wait_ns": parts["wait_ns"]}))
    matrix = added(pa.concat_tables(matrices), _CELL)
    timeline = _folded(added(pa.concat_tables(timelines), ("slot", *_CELL)))
    from_, to = np.maximum(requests.dequeued, begin_us), np.minimum(requests.released, end_us)
    rows, slots, held = spread(from_, to - from_, slot_us)
    taken = np.flatnonzero((requests.dequeued >= begin_us) & (requests.dequeued < end_us))
    loads = summed(
        {"slot": np.r_[slots, requests.dequeued[taken] // slot_us], "client": of_groups[requests.groups[np.r_[rows, taken]]]},
        {"requests": np.repeat([0, 1], [len(rows), len(taken)]), "held_us": np.r_[held, 0 * taken]}
    )  # fmt: skip
    tables = [
        table.append_column("table", array(np.full(len(table), number)))
        for number, table in enumerate((matrix, timeline, loads))
    ]
    sums = pa.concat_tables(tables, promote_options="default")
    return sums.append_column("pool", array(np.full(len(sums), pool))).select(ROWS.names)


def _folded(timeline: pa.Table) -> pa.Table:
    """Those with little of a slot's waits as `OTHERS`."""
    slots, victims, culprits, waits = (timeline[name].to_numpy() for name in ("slot", "victim", "culprit", "wait_ns"))
    _, of_slots = np.unique(slots, return_inverse=True)
    different, of_pairs = np.unique(of_slots * (1 << 32) + culprits, return_inverse=True)
    whole, each = np.zeros(len(different), np.int64), np.zeros(len(different), np.int64)
    np.add.at(whole, of_slots, waits)
    np.add.at(each, of_pairs, waits)
    small = (culprits >= 0) & (each[of_pairs] < _LEAST_SHARE * whole[of_slots])
    return summed({"slot": slots, "victim": victims, "culprit": np.where(small, OTHERS, culprits)}, {"wait_ns": waits})
