"""
Each request's queue time, divided among the requests that held the handler threads meanwhile, in proportion to the time they held them.

A request that is enqueued at `e` and taken at `d` is divided by what its pool's threads did from `e` to `d`, and half the resolution of the
log's times before and after it, in which another holding may have been as well: a shorter one would else be missed, or counted twice, by
chance. Its own holding is left out. The time of threads that no request of the log held is a part of its own, `NOT_LOGGED`: with one thread
and one holder of half of the time, half of the wait is that holder's. Parts are whole ns, rounded down; `NOT_LOGGED` has what is left,
so that the parts of a wait are the wait, and in whatever order or pieces requests are taken, all sums are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ..replay.compiled import Ints, kernel, natural, run
from .intervals import RESOLUTION_US, Intervals

NOT_LOGGED: Final = -1
"""In the place of a culprit: work that the log does not hold, idle threads, the way from the queue to a thread."""
MARGIN_US: Final = RESOLUTION_US // 2
"""By how much a wait is widened to each side."""
_STATE: Final = 4
_ROW, _NEXT, _ACTIVE, _FILLED = range(_STATE)
_ODD: Final = 0x1E3779B97F4A7C15
_MASK: Final = (1 << 63) - 1
_FIRST_CELLS: Final = 1 << 12


class Holdings(NamedTuple):
    """Requests of one pool, sorted by `dequeued`."""

    enqueued: Ints
    dequeued: Ints
    released: Ints
    groups: Ints


class Waiting(NamedTuple):
    """What is divided."""

    rows: Ints
    """Requests that waited, sorted by `enqueued`."""
    keys: Ints
    """By row: slot and victim, to which the culprit is added to have the key of a cell."""
    threads: int


class Cells(NamedTuple):
    """A hash table of sums, and what is needed between two waits."""

    keys: Ints
    """-1 in a free place."""
    sums: Ints
    """ns."""
    held: Ints
    """By culprit: us within the wait at hand, else 0."""
    met: Ints
    """The culprits of the wait at hand."""
    active: Ints
    """Requests that held a thread where the wait at hand begins."""
    state: Ints


Cells.WRITTEN = True  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DividedWaits:
    """Waits by slot, victim and culprit; each combination is there once. All columns have one length."""

    slots: Ints
    """Number of the slot in which the victim's wait ended."""
    victims: Ints
    """Number of the group."""
    culprits: Ints
    """As above, or `NOT_LOGGED`."""
    wait_ns: Ints


def divided(requests: Intervals, threads: int, begin_us: int, end_us: int, slot_us: int) -> DividedWaits:
    """
    Divide the waits that ended from `begin_us` to before `end_us`.

    Args:
        requests: of one pool, all those that hold a thread from `MARGIN_US` before the first of these waits to as much after the last.
        threads: of the pool. Where the log shows more held than that, as times out of place may, a wait is divided among all holders.
        begin_us: us since 1970.
        end_us: as above.
        slot_us: length of slots.

    """
    groups = len(requests.names)
    width = groups + 1
    chosen = (requests.dequeued >= begin_us) & (requests.dequeued < end_us) & (requests.enqueued < requests.dequeued)
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(requests.enqueued[rows], kind="stable")]
    first = begin_us // slot_us
    slots = requests.dequeued[rows] // slot_us - first
    keys = (slots * width + requests.groups[rows]) * width
    holdings = Holdings(requests.enqueued, requests.dequeued, requests.released, requests.groups.astype(np.int64))
    waiting = Waiting(rows, keys, threads)
    cells = _empty(_FIRST_CELLS, groups, len(requests), np.zeros(_STATE, np.int64))
    while not run(_divide, holdings, waiting, cells, work=4 * len(rows)):
        filled = np.flatnonzero(cells.keys >= 0)
        larger = _empty(4 * len(cells.keys), groups, len(requests), cells.state)
        larger.active[:] = cells.active
        larger.state[_FILLED] = 0
        run(_put_all, cells.keys[filled], cells.sums[filled], larger, work=len(filled))
        cells = larger
    filled = np.flatnonzero(cells.keys >= 0)
    left, culprits = np.divmod(cells.keys[filled], width)
    slots, victims = np.divmod(left, width)
    return DividedWaits(
        slots=slots + first,
        victims=victims,
        culprits=np.where(culprits == groups, NOT_LOGGED, culprits),
        wait_ns=cells.sums[filled],
    )


def _empty(size: int, groups: int, requests: int, state: Ints) -> Cells:
    return Cells(
        keys=np.full(size, -1, np.int64),
        sums=np.zeros(size, np.int64),
        held=np.zeros(groups, np.int64),
        met=np.zeros(groups, np.int64),
        active=np.zeros(requests, np.int64),
        state=state,
    )


@kernel
def _put(cells: Cells, key: int, value: int) -> None:
    size = len(cells.keys)
    place = natural(((key * _ODD) & _MASK) >> 20) % size
    while cells.keys[place] != key and cells.keys[place] != -1:
        place = place + 1 if place + 1 < size else 0
    if cells.keys[place] == -1:
        cells.keys[place] = key
        cells.state[_FILLED] += 1
    cells.sums[place] += value


def _put_all(keys: Ints, sums: Ints, cells: Cells) -> None:
    for number in range(len(keys)):
        _put(cells, keys[number], sums[number])


@kernel
def _hold(holdings: Holdings, cells: Cells, row: int, begin: int, end: int, met: int) -> int:
    """Count a request that may have held a thread between two times; return how many groups did."""
    from_, to = holdings.dequeued[row], holdings.released[row]
    overlap = min(to, end) - max(from_, begin)
    if overlap <= 0:
        return met
    group = natural(holdings.groups[row])
    if not cells.held[group]:
        cells.met[met] = group
        met += 1
    cells.held[group] += overlap
    return met


@kernel
def _advance(holdings: Holdings, cells: Cells, begin: int) -> int:
    """Keep the requests that were taken before a time and hold a thread after it; return how many they are."""
    state, active, kept = cells.state, cells.active, 0
    for place in range(state[_ACTIVE]):
        if holdings.released[active[place]] > begin:
            active[kept] = active[place]
            kept += 1
    row, count = natural(state[_NEXT]), len(holdings.dequeued)
    while row < count and holdings.dequeued[row] < begin:
        if holdings.released[row] > begin:
            active[kept] = row
            kept += 1
        row += 1
    state[_ACTIVE], state[_NEXT] = kept, row
    return kept


@kernel
def _assign(cells: Cells, met: int, wait_ns: int, room: int, key: int) -> None:
    """Divide a wait among the groups that held a thread, of which there is so much time at least."""
    held = 0
    for place in range(met):
        held += cells.held[cells.met[place]]
    whole, left = max(held, room), wait_ns
    for place in range(met):
        group = natural(cells.met[place])
        part = int(wait_ns * (cells.held[group] / whole))
        cells.held[group] = 0
        left -= part
        if part:
            _put(cells, key + group, part)
    if left:
        _put(cells, key + len(cells.held), left)


def _divide(holdings: Holdings, waiting: Waiting, cells: Cells) -> bool:
    """Divide the waits that are left; return whether all are, or the table needs more places."""
    state, count = cells.state, len(holdings.dequeued)
    while state[_ROW] < len(waiting.rows):
        if 2 * (state[_FILLED] + len(cells.held) + 1) > len(cells.keys):
            return False
        number = natural(state[_ROW])
        row = natural(waiting.rows[number])
        taken = holdings.dequeued[row]
        wait = taken - holdings.enqueued[row]
        begin, end = taken - wait - MARGIN_US, taken + MARGIN_US
        met = 0
        for place in range(_advance(holdings, cells, begin)):
            active = natural(cells.active[place])
            met = _hold(holdings, cells, active, begin, end, met)
        later = natural(state[_NEXT])
        while later < count and holdings.dequeued[later] < end:
            if later != row:
                met = _hold(holdings, cells, later, begin, end, met)
            later += 1
        own = min(holdings.released[row], end) - taken
        room = waiting.threads * (end - begin) - own
        _assign(cells, met, 1_000 * wait, room, waiting.keys[number])
        state[_ROW] += 1
    return True
