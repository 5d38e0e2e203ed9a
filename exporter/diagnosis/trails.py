"""Keeps the utilization, usage and throttle time of each entity in the last minutes, by step of time."""

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
"""Steps that a row of a table shows: five minutes."""
MOST: Final = 20_000
"""
Most entities that are remembered: the throttled ones, then those with the highest utilization.

With ``STEPS`` this bounds the memory to 14.4 MB of numbers, whatever the number of clients.
"""

_Slots = NDArray[np.intp]
_COLUMNS: Final = 3
"""Numbers that are kept for each entity and step: utilization, usage and throttle time."""
_FEWEST: Final = 64
"""Slots that are added first."""
_MILLISECOND_DIGITS: Final = 3
_DIGITS: Final = 6
"""Significant digits that a 32-bit number holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """
    The last minutes of one entity.

    Arrays have a value for each step, the latest last; NaN for a step in which the entity was not seen.
    """

    times: Floats
    """Unix time in seconds at which each step began."""
    step_seconds: float
    used: Floats
    """The highest utilization of the limit."""
    usage: Floats
    """The highest usage, in the unit of ``Entity.limit``."""
    throttle_time: Floats
    """The longest throttle time in seconds, an average of 30 to 60 s; 0 for no throttle."""


class Trails:
    """
    Keeps the highest numbers of each entity in each of the last steps of time, from successive snapshots.

    Steps begin at multiples of their length. When the clock is set, the times of past steps are set with it, so that
    their age stays right. An entity that was seen in no step is forgotten. Noting a snapshot costs a few array
    operations; only entities that are new since the last snapshot are looked up by name.

    Args:
        steps: Number of steps that are kept.
        step_seconds: Length of a step.
        max_entities: Most entities that are remembered: the throttled ones, then those with the highest utilization.

    """

    def __init__(self, steps: int = STEPS, step_seconds: float = STEP_SECONDS, max_entities: int = MOST) -> None:
        self._steps = steps
        self._step_seconds = step_seconds
        self._max_entities = max_entities
        self._now = 0
        """The present step; steps are counted up, also if the steady clock is set back."""
        self._clock_offset: float | None = None
        """Unix time minus steady time at the first snapshot, in seconds."""
        self._clock_change = 0.0
        """Seconds by which the clock was set since the first snapshot, forward (positive) or back."""
        self._set_back = 0
        """
        Steps by which the steady time went back in total.

        It goes back when an exporter whose snapshots are read starts again, since only its Unix time is known.
        """
        self._slots: dict[Place, int] = {}
        """Slots of entities: indexes in the last dimension of ``_values``."""
        self._places: dict[int, Place] = {}
        """Entities by slot."""
        self._values = np.full((_COLUMNS, steps, 0), np.nan, np.float32)
        """Utilization, usage and throttle time, by step modulo ``steps`` and by slot."""
        self._seen = np.zeros(0, np.int64)
        """The step in which each slot was noted last."""
        self._layout: Layout | None = None
        self._slot_of_row: _Slots = np.zeros(0, np.intp)
        """The slot of each row of ``_layout``, -1 for none."""

    def __len__(self) -> int:
        return len(self._slots)

    def note(self, snapshot: Snapshot) -> None:
        """Add a snapshot, which counts as later than the last one whatever its time is."""
        clock_offset = snapshot.taken_at - snapshot.steady_at
        if self._clock_offset is None:
            self._clock_offset = clock_offset
        self._clock_change = round(clock_offset - self._clock_offset, _MILLISECOND_DIGITS)
        step = int((snapshot.steady_at + self._clock_offset) // self._step_seconds)
        # a snapshot whose steady time went back counts for the present step
        self._set_back = max(self._set_back, self._now - step)
        present_step = step + self._set_back
        new_steps = min(present_step - self._now, self._steps)
        self._now = present_step
        if new_steps:
            self._values[:, [self._step_index(back) for back in range(new_steps)]] = np.nan
            self._forget(np.flatnonzero(self._seen <= self._now - self._steps))
        columns, rows = snapshot.measured.columns, snapshot.measured.rows
        if len(rows) > self._max_entities:
            used = np.nan_to_num(columns.pressure[rows], nan=-1.0)
            rank = np.where(columns.throttle_time[rows] > 0, np.inf, used)
            highest_first = np.argpartition(-rank, self._max_entities - 1)
            rows = rows[highest_first[: self._max_entities]]
        slots = self._slots_of(columns.layout, rows)
        numbers = (columns.used, columns.usage, columns.throttle_time)
        with np.errstate(over="ignore"):  # a number beyond the range of 32 bits becomes infinite
            for highest, current in zip(self._values[:, self._step_index(0)], numbers, strict=True):
                highest[slots] = np.fmax(highest[slots], current[rows].astype(np.float32))
        self._seen[slots] = self._now

    def recall(self, entity: Entity, used: Sequence[float | None]) -> None:
        """
        Fill gaps in the utilization of an entity that was noted already, from the memory of an exporter.

        Args:
            entity: The entity.
            used: Its utilization in the last steps, the latest last.

        """
        slot = self._slots.get(place_of(entity))
        if slot is None:
            return
        for back, value in enumerate(reversed(used[-self._steps :])):
            index = self._step_index(back)
            if value is not None and isnan(self._values[0, index, slot]):
                self._values[0, index, slot] = value

    def utilization(self, usage: EntityUsage) -> list[float | None]:
        """
        Return the utilization of an entity in the last ``RECENT_STEPS``, the latest last.

        It is None for a step in which the entity was not seen.
        """
        used = self._recent(0, usage)
        return [None if isnan(value) else round(value, _DIGITS) for value in used]

    def throttled(self, usage: EntityUsage) -> list[bool]:
        """Return for each of the last ``RECENT_STEPS`` whether the entity was seen throttled."""
        return [value > 0 for value in self._recent(2, usage)]

    def _recent(self, column: int, usage: EntityUsage) -> list[float]:
        """Return a column of an entity in the last ``RECENT_STEPS``, the latest last; NaN for a missing value."""
        steps = min(self._steps, RECENT_STEPS)
        slot = self._slots.get(place_of(usage.entity))
        if slot is None:
            return [nan] * steps
        indexes = [self._step_index(back) for back in range(steps - 1, -1, -1)]
        recent: list[float] = self._values[column, indexes, slot].tolist()
        return recent

    def trail(self, entity: Entity) -> Trail | None:
        """Return the last minutes of an entity; None if it was not seen."""
        slot = self._slots.get(place_of(entity))
        if slot is None:
            return None
        ages = np.arange(self._steps - 1, -1, -1)
        values = self._values[:, (self._now - ages) % self._steps, slot]
        used, usage, throttle_time = values.astype(np.float64)
        begins = (self._now - self._set_back - ages.astype(np.float64)) * self._step_seconds
        return Trail(
            times=begins + self._clock_change,
            step_seconds=self._step_seconds,
            used=used,
            usage=usage,
            throttle_time=throttle_time,
        )

    def _step_index(self, back: int) -> int:
        """Return the index in ``_values`` of the step that was ``back`` steps ago."""
        return (self._now - back) % self._steps

    def _slots_of(self, layout: Layout, rows: NDArray[np.intp]) -> _Slots:
        """Return the slots of rows. An entity without a slot gets one, if need be that of another entity."""
        if self._layout is None:
            self._slot_of_row = np.full(len(layout), -1)
        elif layout is not self._layout:
            self._slot_of_row = layout.carry(self._slot_of_row, self._layout, -1).copy()
        self._layout = layout
        new_rows = rows[self._slot_of_row[rows] < 0]
        if not new_rows.size:
            return self._slot_of_row[rows]
        places = [place_of(layout.entities[row]) for row in new_rows]
        self._slot_of_row[new_rows] = [self._slots.get(place, -1) for place in places]
        new_places = [place for place in places if place not in self._slots]
        if new_places:
            free_slots = self._free_slots(len(new_places), self._slot_of_row[rows])
            for place, slot in zip(new_places, free_slots, strict=True):
                self._slots[place], self._places[slot] = slot, place
            self._slot_of_row[new_rows] = [self._slots[place] for place in places]
        return self._slot_of_row[rows]

    def _free_slots(self, count: int, in_use: _Slots) -> Sequence[int]:
        """Return ``count`` slots that are not in use: empty ones, then the ones that were noted longest ago."""
        size = len(self._seen)
        needed = min(len(self._slots) + count, self._max_entities)
        if needed > size:  # twice as many slots as before, within the bounds
            growth = min(max(needed, 2 * size, _FEWEST), self._max_entities) - size
            grown = np.full((_COLUMNS, self._steps, growth), np.nan, np.float32)
            self._values = np.concatenate([self._values, grown], axis=2)
            self._seen = np.concatenate([self._seen, np.full(growth, -1)])
        is_free = np.ones(len(self._seen), np.bool_)
        is_free[in_use[in_use >= 0]] = False
        candidates = np.flatnonzero(is_free)
        oldest_first = np.argsort(self._seen[candidates], kind="stable")
        free_slots = candidates[oldest_first[:count]]
        self._forget(free_slots)
        return [int(slot) for slot in free_slots]

    def _forget(self, slots: _Slots) -> None:
        """Forget the entities of slots, and empty the slots."""
        taken = [int(slot) for slot in slots if int(slot) in self._places]
        if not taken:
            return
        for slot in taken:
            del self._slots[self._places.pop(slot)]
        self._values[:, :, taken] = np.nan
        self._seen[taken] = -1
        self._slot_of_row[np.isin(self._slot_of_row, taken)] = -1
