"""The last minutes of each entity: utilization, usage and throttle time, by step of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..snapshot import Entity, EntityUsage, Floats, Layout, Place, Snapshot, place_of

STEPS: Final = 60
STEP_SECONDS: Final = 15.0
"""Length of a step: by default, fifteen minutes are kept in steps of 15 s."""
RECENT_STEPS: Final = 20
"""Five minutes of them stand in a row of a table."""
MOST: Final = 20_000
"""
Entities that are remembered, the throttled and the fullest: with ``STEPS`` this bounds memory to 14.4 MB of numbers,
whatever the number of clients.
"""

_Slots = NDArray[np.intp]
_NUMBERS: Final = 3
_FEWEST: Final = 64
_MS: Final = 3
_DIGITS: Final = 6
"""Significant digits that a 32-bit number holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """
    The last minutes of one entity.

    Arrays have a value for each step, the latest last, and NaN where it was not seen.
    """

    times: Floats
    """Unix time in seconds at which each step began."""
    step_seconds: float
    used: Floats
    """The highest utilization of the limit."""
    usage: Floats
    """The highest usage, in the unit of ``Entity.limit``."""
    throttle_time: Floats
    """The longest throttle time in seconds, an average of 30 to 60 s; 0 when there was none."""


class Trails:
    """
    The highest numbers of each entity in each of the last steps of time, as far as snapshots report them.

    Steps begin at multiples of their length, so that they stay in place while time passes; when the clock is set, they
    are set with it, and stay as long ago as they were. An entity that no step has seen is dropped. Noting a snapshot
    costs a few array operations; only entities that came since the last one are looked up by name.

    Args:
        steps: number of steps that are kept.
        step_seconds: the length of one.
        most: number of entities that are remembered: the throttled ones first, then those with the highest utilization.

    """

    def __init__(self, steps: int = STEPS, step_seconds: float = STEP_SECONDS, max_entities: int = MOST) -> None:
        self._steps = steps
        self._step_seconds = step_seconds
        self._most = max_entities
        self._now = 0
        self._ahead: float | None = None
        """Seconds by which the clock was ahead of the steady one at the first snapshot."""
        self._set = 0.0
        """Seconds by which the clock was set since, forward (positive) or back."""
        self._set_back = 0
        """
        Steps by which the steady clock was set back in total: of an exporter that was asked, and started again, only
        its clock is known.
        """
        self._slots: dict[Place, int] = {}
        """The place of each entity in the last dimension of ``_values``."""
        self._keys: dict[int, Place] = {}
        self._values = np.full((_NUMBERS, steps, 0), np.nan, np.float32)
        """Values by number (used, usage, throttle time), by step modulo ``steps``, and by slot."""
        self._seen = np.zeros(0, np.int64)
        """The step in which each slot was noted last."""
        self._layout: Layout | None = None
        self._of_row: _Slots = np.zeros(0, np.intp)
        """The slot of each row of ``_layout``, -1 for none."""

    def __len__(self) -> int:
        return len(self._slots)

    def note(self, snapshot: Snapshot) -> None:
        """Add a snapshot, which is later than the last one whatever its time is."""
        ahead = snapshot.taken_at - snapshot.steady_at
        if self._ahead is None:
            self._ahead = ahead
        self._set = round(ahead - self._ahead, _MS)
        step = int((snapshot.steady_at + self._ahead) // self._step_seconds)
        self._set_back = max(self._set_back, self._now - step)
        new = min(step + self._set_back - self._now, self._steps)
        self._now = step + self._set_back
        if new:
            self._values[:, [self._at(back) for back in range(new)]] = np.nan
            self._forget(np.flatnonzero(self._seen <= self._now - self._steps))
        columns, rows = snapshot.measured.columns, snapshot.measured.rows
        if len(rows) > self._most:
            used = np.nan_to_num(columns.pressure[rows], nan=-1.0)
            pressing = np.where(columns.throttle_time[rows] > 0, np.inf, used)
            most_pressing = np.argpartition(-pressing, self._most - 1)[: self._most]
            rows = rows[most_pressing]
        slots = self._slots_of(columns.layout, rows)
        numbers = (columns.used, columns.usage, columns.throttle_time)
        with np.errstate(over="ignore"):
            for kept_values, numbers_now in zip(self._values[:, self._at(0)], numbers, strict=True):
                kept_values[slots] = np.fmax(kept_values[slots], numbers_now[rows].astype(np.float32))
        self._seen[slots] = self._now

    def recall(self, entity: Entity, used: Sequence[float | None]) -> None:
        """
        Take over what an exporter remembers of an entity that was noted already.

        ``used`` is its utilization in the last steps, the latest last.
        """
        slot = self._slots.get(place_of(entity))
        if slot is None:
            return
        for back, value in enumerate(reversed(used[-self._steps :])):
            place = self._at(back)
            if value is not None and isnan(self._values[0, place, slot]):
                self._values[0, place, slot] = value

    def of(self, usage: EntityUsage) -> list[float | None]:
        """Return the utilization of the last ``RECENT_STEPS``, the latest last; None where the entity was not seen."""
        used = self._recent(0, usage)
        return [None if isnan(value) else round(value, _DIGITS) for value in used]

    def throttled(self, usage: EntityUsage) -> list[bool]:
        """Return for each of the last ``RECENT_STEPS`` whether the entity was seen throttled."""
        return [value > 0 for value in self._recent(2, usage)]

    def _recent(self, number: int, usage: EntityUsage) -> list[float]:
        steps = min(self._steps, RECENT_STEPS)
        slot = self._slots.get(place_of(usage.entity))
        if slot is None:
            return [nan] * steps
        places = [self._at(back) for back in range(steps - 1, -1, -1)]
        recent: list[float] = self._values[number, places, slot].tolist()
        return recent

    def trail(self, entity: Entity) -> Trail | None:
        """Return all that is remembered of an entity; None when it was not seen."""
        slot = self._slots.get(place_of(entity))
        if slot is None:
            return None
        ages = np.arange(self._steps - 1, -1, -1)
        values = self._values[:, (self._now - ages) % self._steps, slot]
        used, usage, throttle_time = values.astype(np.float64)
        return Trail(
            times=(self._now - self._set_back - ages.astype(np.float64)) * self._step_seconds + self._set,
            step_seconds=self._step_seconds,
            used=used,
            usage=usage,
            throttle_time=throttle_time,
        )

    def _at(self, back: int) -> int:
        """Return the place in ``_values`` of a step that lies this number of steps back."""
        return (self._now - back) % self._steps

    def _slots_of(self, layout: Layout, rows: NDArray[np.intp]) -> _Slots:
        """
        Return the slots of some rows, new ones included.

        Those of the last layout, by name where an entity is new there, else fresh ones.
        """
        if self._layout is None:
            self._of_row = np.full(len(layout), -1)
        elif layout is not self._layout:
            self._of_row = layout.carry(self._of_row, self._layout, -1).copy()
        self._layout = layout
        new = rows[self._of_row[rows] < 0]
        if not new.size:
            return self._of_row[rows]
        keys = [place_of(layout.entities[row]) for row in new]
        self._of_row[new] = [self._slots.get(key, -1) for key in keys]
        known_slots = self._of_row[rows]
        fresh = [key for key in keys if key not in self._slots]
        if fresh:
            for key, slot in zip(fresh, self._room(len(fresh), known_slots), strict=True):
                self._slots[key], self._keys[slot] = slot, key
            self._of_row[new] = [self._slots[key] for key in keys]
        return self._of_row[rows]

    def _room(self, count: int, in_use: _Slots) -> Sequence[int]:
        """Return empty slots, or else the slots that were noted longest ago and are not in use."""
        size = len(self._seen)
        needed = min(len(self._slots) + count, self._most)
        if needed > size:
            growth = min(max(needed, 2 * size, _FEWEST), self._most) - size
            grown = np.full((_NUMBERS, self._steps, growth), np.nan, np.float32)
            self._values = np.concatenate([self._values, grown], axis=2)
            self._seen = np.concatenate([self._seen, np.full(growth, -1)])
        is_free = np.ones(len(self._seen), np.bool_)
        is_free[in_use[in_use >= 0]] = False
        candidates = np.flatnonzero(is_free)
        oldest_first = np.argsort(self._seen[candidates], kind="stable")
        room = candidates[oldest_first[:count]]
        self._forget(room)
        return [int(slot) for slot in room]

    def _forget(self, slots: _Slots) -> None:
        taken = [int(slot) for slot in slots if int(slot) in self._keys]
        if not taken:
            return
        for slot in taken:
            del self._slots[self._keys.pop(slot)]
        self._values[:, :, taken] = np.nan
        self._seen[taken] = -1
        self._of_row[np.isin(self._of_row, taken)] = -1
