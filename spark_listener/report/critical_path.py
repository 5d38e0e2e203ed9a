"""
How much of the throttle times a job really waited for: attempts run at the same time, so it is less than their sum.

The estimate is open loop: every attempt ends earlier by its throttle time and the next one on its core begins at once, while broker and
network are as fast as they were. It is therefore an upper bound of what the job would save without the quota.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

_MOST_SLOTS = 10_000
_MOST_CORES = 500
"""Of an executor; chains that are open then end, so that a log of any content is read in time in proportion to its length."""


@dataclass(slots=True)
class _Slot:
    """Attempts that ran one after another on one core of an executor. Seconds."""

    free: float = 0.0
    """Since when, in seconds since 1970."""
    noted: float = 0.0
    """Throttle time that its attempts noted."""
    rest: float = 0.0
    """The other time of attempts with a note."""
    other: float = 0.0
    """Time of attempts without a note, which may be throttled for a part of it."""

    def remains(self, share: float) -> float:
        """Its length without throttle times, `share` being that of attempts without a note."""
        return self.rest + (1 - share) * self.other


@dataclass(slots=True)
class Slots:
    """The cores that one attempt of a stage used: its attempts of tasks as chains, which decide together how long the stage takes."""

    noted: float = 0.0
    """Seconds of throttle time in notes, at most the time of the attempt that left it."""
    other: float = 0.0
    """Seconds of attempts without a note."""
    _open: int = 0
    _by_executor: dict[str, list[_Slot]] = field(default_factory=dict)
    _kept: tuple[_Slot, ...] = ()
    _longest: float = 0.0

    def add(self, executor: str, began: float, ended: float, throttled: float | None) -> None:
        """An attempt ended, after those added before it; `throttled` is the seconds in its note, None without one."""
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
            slot.other += took
            self.other += took
        else:
            noted = min(max(0.0, throttled), took)
            slot.noted += noted
            slot.rest += took - noted
            self.noted += noted

    def close(self) -> None:
        """The stage is over: keep only the slots that may be the longest, whatever share of their time was throttled."""
        slots = [slot for found in self._by_executor.values() for slot in found]
        slots += self._kept
        self._by_executor.clear()
        self._open = 0
        self._longest = max(self._longest, *(slot.noted + slot.remains(0) for slot in slots), 0.0)
        slots.sort(key=lambda slot: (slot.rest, slot.other), reverse=True)
        kept: list[_Slot] = []
        for slot in slots:
            if not kept or slot.other > kept[-1].other:
                kept.append(slot)
        self._kept = tuple(kept)

    def saved(self, share: float) -> float:
        """Seconds by which the longest chain is shorter without throttle times, which are this share (0 to 1) of attempts without a note."""
        self.close()
        without = max((slot.remains(share) for slot in self._kept), default=0.0)
        return max(0.0, self._longest - without)


class Saving(NamedTuple):
    """A stage: when it ran (seconds since 1970), and how many seconds shorter its longest chain is without throttle times."""

    began: float
    ended: float
    saved: float


def critical_seconds(stages: Iterable[Saving]) -> float:
    """
    The throttled seconds on the critical path of stages, some of which ran at the same time.

    A stage's saving is spread evenly over its time; at each moment that of the stage counts which saves most. So it is never more than the time
    in which stages ran, nor than the sum of their savings.
    """
    rows = sorted(row for row in stages if row.ended > row.began)
    total, now, following = 0.0, 0.0, 0
    running: list[tuple[float, float]] = []  # by the highest rate: (-rate, end)
    while running or following < len(rows):
        if not running:
            now = max(now, rows[following].began)
        while following < len(rows) and rows[following].began <= now:
            row = rows[following]
            took = row.ended - row.began
            heappush(running, (-min(row.saved, took) / took, row.ended))
            following += 1
        rate, end = running[0]
        if end <= now:
            heappop(running)
            continue
        until = min(end, rows[following].began) if following < len(rows) else end
        total -= rate * (until - now)
        now = until
    return total
