"""The last minutes of each entity: utilization, usage and throttle time, by step of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..snapshot import Entity, EntityUsage, Floats, Layout, Place, Snapshot, place_of

STEPS: Final = 60
STEP_SECONDS: Final = 15.0
"""By default, fifteen minutes in steps of 15 s."""
RECENT_STEPS: Final = 20
"""Five minutes of them stand in a row of a table."""
MOST: Final = 20_000
"""Entities that are remembered, the throttled and the fullest: with ``STEPS`` this bounds memory to 14.4 MB of numbers, whatever the number of clients."""

_Slots = NDArray[np.intp]
_NUMBERS: Final = 3
_FEWEST: Final = 64
_DIGITS: Final = 6
"""Of a number of 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """The last minutes of one entity; arrays have a value for each step, the latest last, and NaN where it was not seen."""

    times: Floats
    """Unix time in seconds at which each step began."""
    step_seconds: float
    used: Floats
    """The highest utilization of the limit, or of the burst."""
    usage: Floats
    """The highest usage, in the unit of ``Entity.limit``."""
    throttle_time: Floats
    """The longest throttle time in seconds, an average of 30 to 60 s; 0 when there was none."""


class Trails:
    """
    The highest numbers of each entity in each of the last steps of time, as far as snapshots report them.

    Steps begin at multiples of their length, so that they stay in place while time passes. An entity that no step has
    seen is dropped. Noting a snapshot costs a few array operations; only entities that came since the last one are
    looked up by name.

    Args:
        steps: how many steps are kept.
        step_seconds: the length of one.
        most: how many entities are remembered: the throttled ones first, then those with the highest utilization.

    """

    def __init__(self, steps: int = STEPS, step_seconds: float = STEP_SECONDS, most: int = MOST) -> None:
        self._steps = steps
        self._step_seconds = step_seconds
        self._most = most
        self._now = 0
        self._set_back = 0
        """Steps by which the clock was set back in total."""
        self._slots: dict[Place, int] = {}
        """The place of each entity in the last dimension of ``_values``."""
        self._keys: dict[int, Place] = {}
        self._values = np.full((_NUMBERS, steps, 0), np.nan, np.float32)
        """By number (used, usage, throttle time), by step modulo ``steps``, by slot."""
        self._seen = np.zeros(0, np.int64)
        """The step in which each slot was noted last."""
        self._layout: Layout | None = None
        self._of_row: _Slots = np.zeros(0, np.intp)
        """The slot of each row of ``_layout``, -1 for none."""

    def __len__(self) -> int:
        return len(self._slots)

    def note(self, snapshot: Snapshot) -> None:
        """Add a snapshot; when it is of an earlier time than the last one, the clock was set back."""
        step = int(snapshot.taken_at // self._step_seconds)
        self._set_back = max(self._set_back, self._now - step)
        new = min(step + self._set_back - self._now, self._steps)
        self._now = step + self._set_back
        if new:
            self._values[:, [self._at(back) for back in range(new)]] = np.nan
            self._forget(np.flatnonzero(self._seen <= self._now - self._steps))
        columns, rows = snapshot.measured.columns, snapshot.measured.rows
        if len(rows) > self._most:
            used = np.nan_to_num(columns.used[rows], nan=-1.0)
            pressing = np.where(columns.throttle_time[rows] > 0, np.inf, used)
            first = np.argpartition(-pressing, self._most - 1)[: self._most]
            rows = rows[first]
        slots = self._slots_of(columns.layout, rows)
        numbers = (columns.used, columns.usage, columns.throttle_time)
        with np.errstate(over="ignore"):
            for kept, now in zip(self._values[:, self._at(0)], numbers, strict=True):
                kept[slots] = np.fmax(kept[slots], now[rows].astype(np.float32))
        self._seen[slots] = self._now

    def recall(self, entity: Entity, used: Sequence[float | None]) -> None:
        """Take over what an exporter remembers of an entity that was noted: its utilization in the last steps, the latest last."""
        slot = self._slots.get(place_of(entity))
        if slot is None:
            return
        for back, value in enumerate(reversed(used[-self._steps :])):
            place = self._at(back)
            if value is not None and isnan(self._values[0, place, slot]):
                self._values[0, place, slot] = value

    def of(self, usage: EntityUsage) -> list[float | None]:
        """The utilization of the last ``RECENT_STEPS``, the latest last; None where the entity was not seen."""
        steps = min(self._steps, RECENT_STEPS)
        slot = self._slots.get(place_of(usage.entity))
        if slot is None:
            return [None] * steps
        places = [self._at(back) for back in range(steps - 1, -1, -1)]
        used = self._values[0, places, slot].tolist()
        return [None if isnan(value) else round(value, _DIGITS) for value in used]

    def trail(self, entity: Entity) -> Trail | None:
        """All that is remembered of an entity; None when it was not seen."""
        slot = self._slots.get(place_of(entity))
        if slot is None:
            return None
        ages = np.arange(self._steps - 1, -1, -1)
        values = self._values[:, (self._now - ages) % self._steps, slot]
        used, usage, throttle_time = values.astype(np.float64)
        return Trail(
            times=(self._now - self._set_back - ages.astype(np.float64)) * self._step_seconds,
            step_seconds=self._step_seconds,
            used=used,
            usage=usage,
            throttle_time=throttle_time,
        )

    def _at(self, back: int) -> int:
        """Where the values of a step are, by how many steps it is back."""
        return (self._now - back) % self._steps

    def _slots_of(self, layout: Layout, rows: NDArray[np.intp]) -> _Slots:
        """The slots of some rows: those of the last layout, by name where an entity is new there, else fresh ones."""
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
        known = self._of_row[rows]
        fresh = [key for key in keys if key not in self._slots]
        if fresh:
            for key, slot in zip(fresh, self._room(len(fresh), known), strict=True):
                self._slots[key], self._keys[slot] = slot, key
            self._of_row[new] = [self._slots[key] for key in keys]
        return self._of_row[rows]

    def _room(self, wanted: int, in_use: _Slots) -> Sequence[int]:
        """Empty slots, where there are none those that were seen longest ago, but for those in use."""
        size = len(self._seen)
        needed = min(len(self._slots) + wanted, self._most)
        if needed > size:
            more = min(max(needed, 2 * size, _FEWEST), self._most) - size
            grown = np.full((_NUMBERS, self._steps, more), np.nan, np.float32)
            self._values = np.concatenate([self._values, grown], axis=2)
            self._seen = np.concatenate([self._seen, np.full(more, -1)])
        others = np.ones(len(self._seen), np.bool_)
        others[in_use[in_use >= 0]] = False
        candidates = np.flatnonzero(others)
        oldest_first = np.argsort(self._seen[candidates], kind="stable")
        room = candidates[oldest_first[:wanted]]
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
