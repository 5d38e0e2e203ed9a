"""
Division of a request's wait among the requests that held handler threads meanwhile, in proportion to how long they did.

- A wait is cut into slots of time, and the part in a slot is divided among the requests that held threads in that slot.
- The part is widened on both sides by half the resolution of the log's times (`MARGIN_US`). Otherwise a short holding
  would be missed, or counted twice, by chance.
- The request's own holding is left out.
- Thread time that no request of the log held is blamed on `NOT_LOGGED`: if the only thread was held half of the time,
  half of the wait is blamed on its holder, and half on `NOT_LOGGED`.
- Parts are whole ns, rounded down, and `NOT_LOGGED` has the remainder. So the parts of a wait add up to the wait, and
  sums do not depend on the order or the pieces in which requests are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..columns import added
from ..replay.compiled import Ints, kernel, natural, run
from .intervals import RESOLUTION_US, Intervals

NOT_LOGGED: Final = -1
"""
Number in place of a culprit's group: no logged request caused the wait.

It stands for work that the log does not have, for idle threads, and for the way from the queue to a thread.
"""
MARGIN_US: Final = RESOLUTION_US // 2
"""Time by which a wait is widened on both sides."""
_STATE: Final = 4
_ROW, _NEXT, _ACTIVE, _FILLED = range(_STATE)
"""
Indices of `WaitParts.state`.

Its elements are the number of the next wait, the number of the next holding that begins, the number of requests in
`active`, and the number of parts.
"""
_MOST_PARTS: Final = 1 << 20
"""Largest number of parts that are kept before they are added up: 16 MB."""
_PARTS_OF_A_WAIT: Final = 8
"""Number of parts of a wait that room is kept for; where it is too small, parts are added up earlier."""


class Holdings(NamedTuple):
    """Times in us for which the requests of one pool held a thread, and their groups, sorted by `dequeued`."""

    dequeued: Ints
    released: Ints
    groups: Ints


class Waits(NamedTuple):
    """Waits, cut at the borders of slots and sorted by `begin`; times are in us."""

    rows: Ints
    """Numbers of the requests that wait."""
    begin: Ints
    length: Ints
    keys: Ints
    """Keys of slot and victim; the culprit's number plus this is the key of a part."""


class WaitParts(NamedTuple):
    """Output of `_divide`, and its state between two waits."""

    keys: Ints
    """Key of slot, victim and culprit by part."""
    wait_ns: Ints
    """Length by part."""
    held: Ints
    """Time in us by group for which it held threads during the current wait."""
    met: Ints
    """Groups that held a thread during the current wait, in the order in which they were met."""
    active: Ints
    """Numbers of the requests that hold a thread when the current wait begins."""
    state: Ints
    """Four numbers, as `_ROW` and the others name them."""


WaitParts.WRITTEN = True  # type: ignore[attr-defined]


def divided(requests: Intervals, threads: int, begin_us: int, end_us: int, slot_us: int) -> Iterator[pa.Table]:
    """
    Divide the waits of a pool's requests in a period.

    Args:
        requests: all requests of one pool that wait or hold a thread between `MARGIN_US` before the period and
            `MARGIN_US` after it.
        threads: number of the pool's threads. If the log shows more of them held, because its times are inexact, a wait
            is divided among all holders.
        begin_us: begin of the period, us since 1970.
        end_us: end of the period, us since 1970.
        slot_us: length of slots.

    Yields:
        Tables of parts of waits: `slot`, `victim` (a group), `culprit` (a group or `NOT_LOGGED`) and `wait_ns`, all
            int64. A key may be in several rows.

    """
    groups = len(requests.names)
    # A slot, a victim and a culprit are one number, `(slot * width + victim) * width + culprit`. The number after those
    # of groups is `NOT_LOGGED` as a culprit.
    width = groups + 1
    first_slot = begin_us // slot_us
    wait_begins, wait_ends = np.maximum(requests.enqueued, begin_us), np.minimum(requests.dequeued, end_us)
    rows, slots, lengths = spread(wait_begins, wait_ends - wait_begins, slot_us)
    begins = np.maximum(wait_begins[rows], slots * slot_us)
    order = np.argsort(begins, kind="stable")
    keys = ((slots - first_slot) * width + requests.groups[rows]) * width
    waits = Waits(rows[order], begins[order], lengths[order], keys[order])
    holdings = Holdings(requests.dequeued, requests.released, requests.groups.astype(np.int64))
    room = min(_MOST_PARTS, _PARTS_OF_A_WAIT * len(rows)) + width
    sizes = {"keys": room, "wait_ns": room, "held": groups, "met": groups, "active": len(requests), "state": _STATE}
    parts = WaitParts(**{name: np.zeros(size, np.int64) for name, size in sizes.items()})
    is_unfinished = True
    while is_unfinished:
        is_unfinished = not run(_divide, holdings, waits, threads, parts, work=4 * len(rows))
        filled = int(parts.state[_FILLED])
        parts.state[_FILLED] = 0
        victims, culprits = np.divmod(parts.keys[:filled], width)
        slots, victims = np.divmod(victims, width)
        columns = {
            "slot": slots + first_slot,
            "victim": victims,
            "culprit": np.where(culprits == groups, NOT_LOGGED, culprits),
            "wait_ns": parts.wait_ns[:filled].copy(),
        }
        yield pa.table(columns)


def spread(begin_us: Ints, length_us: Ints, slot_us: int) -> tuple[Ints, Ints, Ints]:
    """
    Cut periods at the borders of slots.

    Return three arrays with an element for each pair of a period and a slot that it is in: index of the period, number
    of the slot since 1970, and us of the period in the slot.
    """
    periods = np.flatnonzero(length_us > 0)
    begin, end = begin_us[periods], begin_us[periods] + length_us[periods]
    first_slots = begin // slot_us
    counts = (end - 1) // slot_us - first_slots + 1
    places = np.repeat(np.arange(len(periods)), counts)
    numbers_within_period = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots = first_slots[places] + numbers_within_period
    durations = np.minimum(end[places], (slots + 1) * slot_us) - np.maximum(begin[places], slots * slot_us)
    return periods[places], slots, durations


def summed(keys: Mapping[str, Any], values: Mapping[str, Any]) -> pa.Table:
    """Return a table with a row for each key, in any order, and the sums of its values; all columns are int64."""
    return added(pa.table({name: np.asarray(column, np.int64) for name, column in {**keys, **values}.items()}), [*keys])


@kernel
def _hold(holdings: Holdings, parts: WaitParts, row: int, begin: int, end: int, met: int) -> int:
    """
    Add the time for which a request held a thread between `begin` and `end` to its group's.

    Return the number of groups in `parts.met`; it was `met` before.
    """
    overlap = min(holdings.released[row], end) - max(holdings.dequeued[row], begin)
    if overlap <= 0:
        return met
    group = natural(holdings.groups[row])
    if not parts.held[group]:
        parts.met[met] = group
        met += 1
    parts.held[group] += overlap
    return met


@kernel
def _advance(holdings: Holdings, parts: WaitParts, begin: int) -> int:
    """Make `parts.active` the requests that were taken before `begin` and released after it; return their number."""
    state, active, active_count = parts.state, parts.active, 0
    for place in range(state[_ACTIVE]):
        if holdings.released[active[place]] > begin:
            active[active_count] = active[place]
            active_count += 1
    row, count = natural(state[_NEXT]), len(holdings.dequeued)
    while row < count and holdings.dequeued[row] < begin:
        if holdings.released[row] > begin:
            active[active_count] = row
            active_count += 1
        row += 1
    state[_ACTIVE], state[_NEXT] = active_count, row
    return active_count


@kernel
def _assign(parts: WaitParts, met: int, wait_ns: int, thread_us: int, key: int) -> None:
    """Divide a wait among the `met` groups that held a thread; threads had `thread_us` together in that time."""
    held, filled = 0, natural(parts.state[_FILLED])
    for place in range(met):
        held += parts.held[parts.met[place]]
    whole, remainder = max(held, thread_us), wait_ns
    for place in range(met):
        group = natural(parts.met[place])
        part = int(wait_ns * (parts.held[group] / whole))
        parts.held[group] = 0
        remainder -= part
        parts.keys[filled], parts.wait_ns[filled] = key + group, part
        filled += part > 0  # a part of 0 ns is overwritten by the next one
    parts.keys[filled], parts.wait_ns[filled] = key + len(parts.held), remainder
    parts.state[_FILLED] = filled + (remainder > 0)


def _divide(holdings: Holdings, waits: Waits, threads: int, parts: WaitParts) -> bool:
    """Divide the remaining waits; return True if all are divided, False if there is no room for more parts."""
    state, count = parts.state, len(holdings.dequeued)
    while state[_ROW] < len(waits.rows):
        if state[_FILLED] + len(parts.held) >= len(parts.keys):
            return False
        number = natural(state[_ROW])
        row = natural(waits.rows[number])
        begin = waits.begin[number] - MARGIN_US
        end = begin + waits.length[number] + 2 * MARGIN_US
        holders = 0  # number of groups in `parts.met`
        for place in range(_advance(holdings, parts, begin)):
            active = natural(parts.active[place])
            holders = _hold(holdings, parts, active, begin, end, holders)
        next_row = natural(state[_NEXT])
        while next_row < count and holdings.dequeued[next_row] < end:
            if next_row != row:
                holders = _hold(holdings, parts, next_row, begin, end, holders)
            next_row += 1
        # `end` is `MARGIN_US` after the wait, and the request's own holding begins before that
        own_hold = max(0, min(holdings.released[row], end) - holdings.dequeued[row])
        thread_us = threads * (end - begin) - own_hold
        _assign(parts, holders, 1_000 * waits.length[number], thread_us, waits.keys[number])
        state[_ROW] += 1
    return True
