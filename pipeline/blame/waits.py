"""
Each request's queue time, divided among the requests that held the handler threads meanwhile, in proportion to the time they held them.

A request that is enqueued at `e` and taken at `d` is divided by what its pool's threads did from `e` to `d`, and half the resolution of the
log's times before and after it, in which another holding may have been as well: a shorter one would else be missed, or counted twice, by
chance. Its own holding is left out. The time of threads that no request of the log held is a part of its own, `NOT_LOGGED`: with one thread
and one holder of half of the time, half of the wait is that holder's. Parts are whole ns, rounded down; `NOT_LOGGED` has what is left,
so that the parts of a wait are the wait, and in whatever order or pieces requests are taken, all sums are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ..replay.compiled import Ints, kernel, natural, run
from ..table.layout import added
from .intervals import RESOLUTION_US, Intervals

NOT_LOGGED: Final = -1
"""In the place of a culprit: work that the log does not hold, idle threads, the way from the queue to a thread."""
MARGIN_US: Final = RESOLUTION_US // 2
"""By how much a wait is widened to each side."""
_STATE: Final = 4
_ROW, _NEXT, _ACTIVE, _FILLED = range(_STATE)
_MOST_PARTS: Final = 1 << 20
"""That are kept before they are added up: 16 MB."""
_PARTS_OF_A_WAIT: Final = 8


class Holdings(NamedTuple):
    """Requests of one pool, sorted by `dequeued`."""

    enqueued: Ints
    dequeued: Ints
    released: Ints
    groups: Ints


class WaitParts(NamedTuple):
    """Parts of waits, until there is no room for those of another wait; and what is needed between two waits."""

    keys: Ints
    """Slot, victim and culprit."""
    wait_ns: Ints
    held: Ints
    """By culprit: us within the wait at hand, else 0."""
    met: Ints
    """The culprits of the wait at hand."""
    active: Ints
    """Requests that held a thread where the wait at hand begins."""
    state: Ints


WaitParts.WRITTEN = True  # type: ignore[attr-defined]


def divided(requests: Intervals, threads: int, begin_us: int, end_us: int, slot_us: int) -> Iterator[pa.Table]:
    """
    Divide the waits that ended from `begin_us` to before `end_us`.

    Args:
        requests: of one pool, all those that hold a thread from `MARGIN_US` before the first of these waits to as much after the last.
        threads: of the pool. Where the log shows more held than that, as times out of place may, a wait is divided among all holders.
        begin_us: us since 1970.
        end_us: as above.
        slot_us: length of slots.

    Returns:
        Some waits at a time, in parts: `slot`, in which the wait ended, `victim` and `culprit`, which are groups, also `NOT_LOGGED`, and `wait_ns`.

    """
    groups = len(requests.names)
    width = groups + 1
    chosen = (requests.dequeued >= begin_us) & (requests.dequeued < end_us) & (requests.enqueued < requests.dequeued)
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(requests.enqueued[rows], kind="stable")]
    first = begin_us // slot_us
    keys = ((requests.dequeued[rows] // slot_us - first) * width + requests.groups[rows]) * width
    holdings = Holdings(requests.enqueued, requests.dequeued, requests.released, requests.groups.astype(np.int64))
    room = min(_MOST_PARTS, _PARTS_OF_A_WAIT * len(rows)) + width
    sizes = {"keys": room, "wait_ns": room, "held": groups, "met": groups, "active": len(requests), "state": _STATE}
    parts = WaitParts(**{name: np.zeros(size, np.int64) for name, size in sizes.items()})
    left = True
    while left:
        left = not run(_divide, holdings, rows, keys, threads, parts, work=4 * len(rows))
        filled = int(parts.state[_FILLED])
        parts.state[_FILLED] = 0
        victims, culprits = np.divmod(parts.keys[:filled], width)
        slots, victims = np.divmod(victims, width)
        columns = {
            "slot": slots + first,
            "victim": victims,
            "culprit": np.where(culprits == groups, NOT_LOGGED, culprits),
            "wait_ns": parts.wait_ns[:filled].copy(),
        }
        yield pa.table(columns)


def summed(keys: Mapping[str, Any], values: Mapping[str, Any]) -> pa.Table:
    """Values of equal keys added up, in any order; all are columns of integers."""
    return added(pa.table({name: np.asarray(each, np.int64) for name, each in {**keys, **values}.items()}), [*keys])


@kernel
def _hold(holdings: Holdings, parts: WaitParts, row: int, begin: int, end: int, met: int) -> int:
    """Count a request that may have held a thread between two times; return how many groups did."""
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
    """Keep the requests that were taken before a time and hold a thread after it; return how many they are."""
    state, active, kept = parts.state, parts.active, 0
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
def _assign(parts: WaitParts, met: int, wait_ns: int, room: int, key: int) -> None:
    """Divide a wait among the groups that held a thread, of which there is so much time at least."""
    held, filled = 0, natural(parts.state[_FILLED])
    for place in range(met):
        held += parts.held[parts.met[place]]
    whole, left = max(held, room), wait_ns
    for place in range(met):
        group = natural(parts.met[place])
        part = int(wait_ns * (parts.held[group] / whole))
        parts.held[group] = 0
        left -= part
        parts.keys[filled], parts.wait_ns[filled] = key + group, part
        filled += part > 0
    parts.keys[filled], parts.wait_ns[filled] = key + len(parts.held), left
    parts.state[_FILLED] = filled + (left > 0)


def _divide(holdings: Holdings, rows: Ints, keys: Ints, threads: int, parts: WaitParts) -> bool:
    """
    Divide the waits that are left; return whether all are, or there is no room for more parts.

    `rows` are the requests that waited, sorted by `enqueued`, and `keys` their slots and victims, to which the culprit of a part is added.
    """
    state, count = parts.state, len(holdings.dequeued)
    while state[_ROW] < len(rows):
        if state[_FILLED] + len(parts.held) >= len(parts.keys):
            return False
        number = natural(state[_ROW])
        row = natural(rows[number])
        taken = holdings.dequeued[row]
        wait = taken - holdings.enqueued[row]
        begin, end = taken - wait - MARGIN_US, taken + MARGIN_US
        met = 0
        for place in range(_advance(holdings, parts, begin)):
            active = natural(parts.active[place])
            met = _hold(holdings, parts, active, begin, end, met)
        later = natural(state[_NEXT])
        while later < count and holdings.dequeued[later] < end:
            if later != row:
                met = _hold(holdings, parts, later, begin, end, met)
            later += 1
        own = min(holdings.released[row], end) - taken
        room = threads * (end - begin) - own
        _assign(parts, met, 1_000 * wait, room, keys[number])
        state[_ROW] += 1
    return True
