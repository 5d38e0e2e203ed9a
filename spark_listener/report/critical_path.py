"""
Estimate of the time by which throttles made a job longer.

It is less than the sum of all throttle times, because attempts run at the same time. The estimate is open loop: every
attempt ends earlier by its throttle time, the next one on its core begins at once, and broker and network are as fast
as they were. So it is an upper bound of the time that the job would save without the quota.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from typing import NamedTuple

_MOST_SLOTS = 10_000
_MOST_CORES = 500
"""
Largest number of cores of an executor.

Beyond it all open chains end, so that the time to read a log stays proportional to its length.
"""


@dataclass(slots=True)
class _Slot:
    """A chain of attempts that ran one after another on one core of an executor. Times are seconds."""

    free: float = 0.0
    """Time since which the core is free, in seconds since 1970."""
    noted: float = 0.0
    """Throttle time in the notes of attempts."""
    unthrottled: float = 0.0
    """Time of the attempts with a note, without their throttle time."""
    unnoted: float = 0.0
    """Time of attempts without a note, which may have been throttled."""

    def remains(self, share: float) -> float:
        """Return the length of the chain without throttle times; `share` is as for `Slots.saved`."""
        return self.unthrottled + (1 - share) * self.unnoted


@dataclass(slots=True)
class Slots:
    """
    The cores that one attempt of a stage used, each with a chain of attempts of tasks.

    The stage takes as long as its longest chain.
    """

    noted: float = 0.0
    """Seconds of throttle time in notes, at most the length of each attempt."""
    unnoted: float = 0.0
    """Seconds of attempts without a note."""
    _open: int = 0
    _by_executor: dict[str, list[_Slot]] = field(default_factory=dict)
    _candidates: tuple[_Slot, ...] = ()
    _longest: float = 0.0

    def add(self, executor: str, began: float, ended: float, throttled: float | None) -> None:
        """Add an attempt, in order of their ends; `throttled` is its throttle time in seconds, None without a note."""
        took = max(0.0, ended - began)
        if self._open >= _MOST_SLOTS or len(self._by_executor.get(executor, ())) >= _MOST_CORES:
            self.close()
        slots = self._by_executor.setdefault(executor, [])
        fitting = (slot for slot in slots if slot.free <= began)
        slot = max(fitting, key=lambda slot: slot.free, default=None)
        if slot is None:
            slot = _Slot()
            slots.append(slot)
            self._open += 1
        slot.free = ended
        if throttled is None:
            slot.unnoted += took
            self.unnoted += took
        else:
            noted = min(max(0.0, throttled), took)
            slot.noted += noted
            slot.unthrottled += took - noted
            self.noted += noted

    def close(self) -> None:
        """End all chains, and keep those that may be the longest for some share (`saved`)."""
        slots = [*chain.from_iterable(self._by_executor.values()), *self._candidates]
        self._by_executor.clear()
        self._open = 0
        self._longest = max(self._longest, *(slot.noted + slot.remains(0) for slot in slots), 0.0)
        # a chain is never the longest if another one has as much of both times
        slots.sort(key=lambda slot: (slot.unthrottled, slot.unnoted), reverse=True)
        candidates: list[_Slot] = []
        for slot in slots:
            if not candidates or slot.unnoted > candidates[-1].unnoted:
                candidates.append(slot)
        self._candidates = tuple(candidates)

    def saved(self, share: float) -> float:
        """
        Return the seconds by which the longest chain would be shorter without throttle times.

        `share` (0 to 1) is the throttled share of attempts without a note.
        """
        self.close()
        without = max((slot.remains(share) for slot in self._candidates), default=0.0)
        return max(0.0, self._longest - without)


class Saving(NamedTuple):
    """A stage, and the time that it would save without throttles."""

    began: float
    """Begin of the stage, seconds since 1970."""
    ended: float
    """End of the stage, seconds since 1970."""
    saved: float
    """Seconds by which its longest chain would be shorter."""


def critical_seconds(stages: Iterable[Saving]) -> float:
    """
    Return the seconds that stages would save together without throttles, although some of them ran at the same time.

    The saving of a stage is spread evenly over its time, and at any moment only the stage with the highest rate counts.
    So the result is at most the time in which stages ran, and at most the sum of their savings.
    """
    rows = sorted(row for row in stages if row.ended > row.began)
    total, time, following = 0.0, 0.0, 0
    running: list[tuple[float, float]] = []  # by the highest rate: (-rate, end)
    # go from one time at which a stage begins or ends to the next, and add what the best running stage saves until then
    while running or following < len(rows):
        if not running:
            time = max(time, rows[following].began)
        while following < len(rows) and rows[following].began <= time:
            row = rows[following]
            took = row.ended - row.began
            heappush(running, (-min(row.saved, took) / took, row.ended))
            following += 1
        negative_rate, end = running[0]
        if end <= time:
            heappop(running)
            continue
        until = min(end, rows[following].began) if following < len(rows) else end
        total -= negative_rate * (until - time)
        time = until
    return total
