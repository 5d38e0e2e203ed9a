"""The utilization of each entity in the last minutes."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from quotascope.metrics import QuotaType

from .snapshot import Entity, EntityUsage, Snapshot

STEPS: Final = 20
STEP_SECONDS: Final = 15.0
"""By default, five minutes in quarters of a minute."""
MOST: Final = 2_000
"""Entities further down the list have no trail, so that memory and time are bounded."""

_Key = tuple[QuotaType, str, str, str]


class Trails:
    """
    The greatest utilization of each entity in each of the last steps of time, as far as snapshots show it.

    Steps begin at multiples of their length, so that they stay in place as time passes. An entity that was not seen in any
    of them is forgotten.

    Args:
        steps: the number of steps that are kept.
        step_seconds: the length of one.
        most: the number of entities that are taken from one snapshot, those with the highest utilization.

    """

    def __init__(
        self, steps: int = STEPS, step_seconds: float = STEP_SECONDS, most: int = MOST
    ) -> None:
        self._steps = steps
        self._step_seconds = step_seconds
        self._most = most
        self._now = 0
        self._set_back = 0
        """Steps by which the clock was set back, altogether."""
        self._trails: dict[_Key, deque[tuple[int, float]]] = {}

    def note(self, snapshot: Snapshot) -> None:
        """Remember a snapshot; an earlier time than that of the last one means that the clock was set back."""
        step = int(snapshot.taken_at // self._step_seconds)
        self._set_back = max(self._set_back, self._now - step)
        self._now = step + self._set_back
        columns, rows = snapshot.measured.columns, snapshot.measured.rows
        rows = rows[~np.isnan(columns.used[rows])]
        if len(rows) > self._most:
            fullest = np.argsort(-columns.used[rows], kind="stable")
            rows = rows[fullest[: self._most]]
        for row in rows:
            self._note(_key(columns.layout.entities[row]), float(columns.used[row]))
        first = self._now - self._steps
        gone = [key for key, trail in self._trails.items() if trail[-1][0] <= first]
        for key in gone:
            del self._trails[key]

    def _note(self, key: _Key, used: float) -> None:
        trail = self._trails.setdefault(key, deque(maxlen=self._steps))
        if trail and trail[-1][0] == self._now:
            used = max(used, trail.pop()[1])
        trail.append((self._now, used))

    def of(self, usage: EntityUsage) -> list[float | None]:
        """One number for each step, the latest last; None where the entity was not seen."""
        known = dict(self._trails.get(_key(usage.entity), ()))
        first = self._now - self._steps + 1
        return [known.get(step) for step in range(first, self._now + 1)]


def used_part(usage: EntityUsage) -> float | None:
    """
    The utilization of an entity, or the used part of its burst of mutations, whichever is greater.

    None without a limit or a number. At 1 and above, it is throttled.
    """
    utilization = usage.utilization
    if usage.tokens is None:  # nearly always, and this is called for each entity
        return utilization
    burst_used = usage.burst_used
    if utilization is None or burst_used is None:
        return burst_used if utilization is None else utilization
    return max(utilization, burst_used)


def _key(entity: Entity) -> _Key:
    return entity.quota_type, entity.broker, entity.user, entity.client_id
