"""
Queue times, divided among the requests that held the handler threads meanwhile, by the time of each hold.

A wait is divided slot by slot, so that each part of a long wait counts at its time, and for the requests that held
threads then. A part is divided by what its pool's threads did in it, and half the resolution of the log's times before
and after it, in which another holding may have been as well: a shorter one would else be missed, or counted twice, by
chance. The request's own holding is left out. The time of threads that no request of the log held is a part of its own,
`NOT_LOGGED`: with one thread and one holder of half of the time, half of the wait is that holder's. Parts are whole ns,
rounded down; `NOT_LOGGED` has the remainder, so that the parts of a wait add up to the wait, and in whatever order or
pieces requests are taken, all sums are the same.
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
Number that stands for a culprit.

It is work that the log does not hold, idle threads, and the way from the queue to a thread.
"""
MARGIN_US: Final = RESOLUTION_US // 2
"""Margin by which a wait is widened to each side."""
_STATE: Final = 4
_ROW, _NEXT, _ACTIVE, _FILLED = range(_STATE)
_MOST_PARTS: Final = 1 << 20
"""Number of parts that are kept before they are added up: 16 MB."""
_PARTS_OF_A_WAIT: Final = 8


class Holdings(NamedTuple):
    """Requests of one pool, sorted by `dequeued`."""

    dequeued: Ints
    released: Ints
    groups: Ints


class Waits(NamedTuple):
    """Waits within a slot each, sorted by `begin`."""

    rows: Ints
    """Numbers of the requests that wait."""
    begin: Ints
    length: Ints
    keys: Ints
    """Slots and victims, to which the culprit of a part is added."""


class WaitParts(NamedTuple):
    """Parts of waits, until there is no room for those of another wait; and the state between two waits."""

    keys: Ints
    """Slot, victim and culprit."""
    wait_ns: Ints
    held: Ints
    """Time in us within the current wait, by culprit; 0 for others."""
    met: Ints
    """Culprits of the current wait."""
    active: Ints
    """Requests that held a thread when the current wait begins."""
    state: Ints


WaitParts.WRITTEN = True  # type: ignore[attr-defined]


def divided(requests: Intervals, threads: int, begin_us: int, end_us: int, slot_us: int) -> Iterator[pa.Table]:
    """
    Divide the waits from `begin_us` to `end_us`.

    Args:
        requests: all requests of one pool that wait or hold a thread from `MARGIN_US` before this time to as much after
            it.
        threads: number of the pool's threads. If the log shows more held, as times out of place may, a wait is divided
            among all holders.
        begin_us: us since 1970.
        end_us: us since 1970.
        slot_us: length of slots.

    Returns:
        Some waits at a time, in parts: `slot`, `victim` and `culprit`, which are groups, also `NOT_LOGGED`, and
            `wait_ns`.

    """
    groups = len(requests.names)
    width = groups + 1
    first_slot = begin_us // slot_us
    from_, to = np.maximum(requests.enqueued, begin_us), np.minimum(requests.dequeued, end_us)
    rows, slots, lengths = spread(from_, to - from_, slot_us)
    begins = np.maximum(from_[rows], slots * slot_us)
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
    Divide times over the slots that they are in.

    Return a row for each pair of a time and a slot: number of the time, slot, and us of the time in the slot.
    """
    rows = np.flatnonzero(length_us > 0)
    begin, end = begin_us[rows], begin_us[rows] + length_us[rows]
    first_slots = begin // slot_us
    counts = (end - 1) // slot_us - first_slots + 1
    places = np.repeat(np.arange(len(rows)), counts)
    numbers = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots = first_slots[places] + numbers
    durations = np.minimum(end[places], (slots + 1) * slot_us) - np.maximum(begin[places], slots * slot_us)
    return rows[places], slots, durations


def summed(keys: Mapping[str, Any], values: Mapping[str, Any]) -> pa.Table:
    """Add up the values of equal keys, in any order; all are columns of integers."""
    return added(pa.table({name: np.asarray(column, np.int64) for name, column in {**keys, **values}.items()}), [*keys])


@kernel
def _hold(holdings: Holdings, parts: WaitParts, row: int, begin: int, end: int, met: int) -> int:
    """Count a request that may have held a thread between two times; return the number of groups that did."""
    from_, to = holdings.dequeued[row], holdings.released[row]
    overlap = min(to, end) - max(from_, begin)
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
    """Keep the requests that were taken before a time and hold a thread after it; return their number."""
    state, active, count_active = parts.state, parts.active, 0
    for place in range(state[_ACTIVE]):
        if holdings.released[active[place]] > begin:
            active[count_active] = active[place]
            count_active += 1
    row, count = natural(state[_NEXT]), len(holdings.dequeued)
    while row < count and holdings.dequeued[row] < begin:
        if holdings.released[row] > begin:
            active[count_active] = row
            count_active += 1
        row += 1
    state[_ACTIVE], state[_NEXT] = count_active, row
    return count_active


@kernel
def _assign(parts: WaitParts, met: int, wait_ns: int, room: int, key: int) -> None:
    """Divide a wait among the groups that held a thread, for at least `room` us together."""
    held, filled = 0, natural(parts.state[_FILLED])
    for place in range(met):
        held += parts.held[parts.met[place]]
    held_or_room, remainder = max(held, room), wait_ns
    for place in range(met):
        group = natural(parts.met[place])
        part = int(wait_ns * (parts.held[group] / held_or_room))
        parts.held[group] = 0
        remainder -= part
        parts.keys[filled], parts.wait_ns[filled] = key + group, part
        filled += part > 0
    parts.keys[filled], parts.wait_ns[filled] = key + len(parts.held), remainder
    parts.state[_FILLED] = filled + (remainder > 0)


def _divide(holdings: Holdings, waits: Waits, threads: int, parts: WaitParts) -> bool:
    """Divide the remaining waits; return whether all are divided, or there is no room for more parts."""
    state, count = parts.state, len(holdings.dequeued)
    while state[_ROW] < len(waits.rows):
        if state[_FILLED] + len(parts.held) >= len(parts.keys):
            return False
        number = natural(state[_ROW])
        row = natural(waits.rows[number])
        begin = waits.begin[number] - MARGIN_US
        end = begin + waits.length[number] + 2 * MARGIN_US
        holders = 0
        for place in range(_advance(holdings, parts, begin)):
            active = natural(parts.active[place])
            holders = _hold(holdings, parts, active, begin, end, holders)
        next_row = natural(state[_NEXT])
        while next_row < count and holdings.dequeued[next_row] < end:
            if next_row != row:
                holders = _hold(holdings, parts, next_row, begin, end, holders)
            next_row += 1
        own_hold = max(0, min(holdings.released[row], end) - holdings.dequeued[row])
        room = threads * (end - begin) - own_hold
        _assign(parts, holders, 1_000 * waits.length[number], room, waits.keys[number])
        state[_ROW] += 1
    return True
