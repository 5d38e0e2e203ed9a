"""The utilization of each limit in the last minutes."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from quotascope.metrics import QuotaType

from ..snapshot import Entity, EntityUsage, Snapshot

STEPS: Final = 20
STEP_SECONDS: Final = 15.0
"""By default, five minutes in steps of 15 s."""
MOST: Final = 2_000
"""Entities with a trail, those with the highest utilization: this bounds memory and time whatever the number of clients."""

_Key = tuple[QuotaType, str, str, str]


class Trails:
    """
    The highest utilization of each entity in each of the last steps of time, as far as snapshots report it.

    Steps begin at multiples of their length, so that they stay in place while time passes. An entity that no step has seen
    is dropped.

    Args:
        steps: how many steps are kept.
        step_seconds: the length of one.
        most: how many entities of one snapshot are noted: those with the highest utilization.

    """

    def __init__(
        self, steps: int = STEPS, step_seconds: float = STEP_SECONDS, most: int = MOST
    ) -> None:
        self._steps = steps
        self._step_seconds = step_seconds
        self._most = most
        self._now = 0
        self._set_back = 0
        """Steps by which the clock was set back in total."""
        self._trails: dict[_Key, deque[tuple[int, float]]] = {}

    def note(self, snapshot: Snapshot) -> None:
        """Add a snapshot; when it is of an earlier time than the last one, the clock was set back."""
        step = int(snapshot.taken_at // self._step_seconds)
        self._set_back = max(self._set_back, self._now - step)
        self._now = step + self._set_back
        columns, rows = snapshot.measured.columns, snapshot.measured.rows
        rows = rows[~np.isnan(columns.used[rows])]
        if len(rows) > self._most:
            fullest = np.argsort(-columns.used[rows], kind="stable")
            rows = rows[fullest[: self._most]]
        for row in rows:
            key, used = _key(columns.layout.entities[row]), float(columns.used[row])
            trail = self._trails.setdefault(key, deque(maxlen=self._steps))
            if trail and trail[-1][0] == self._now:
                used = max(used, trail.pop()[1])
            trail.append((self._now, used))
        first = self._now - self._steps
        for key in [k for k, trail in self._trails.items() if trail[-1][0] <= first]:
            del self._trails[key]

    def of(self, usage: EntityUsage) -> list[float | None]:
        """One number for each step, the latest last; None where the entity was not seen."""
        known = dict(self._trails.get(_key(usage.entity), ()))
        first = self._now - self._steps + 1
        return [known.get(step) for step in range(first, self._now + 1)]


def used_part(usage: EntityUsage) -> float | None:
    """
    The utilization of an entity's limit, or of its burst of mutations, where that is higher.

    None without a limit or a number. From 1 on, brokers throttle it.
    """
    if usage.tokens is None:  # of nearly all entities
        return usage.utilization
    known = [part for part in (usage.utilization, usage.burst_used) if part is not None]
    return max(known, default=None)


def _key(entity: Entity) -> _Key:
    return entity.quota_type, entity.broker, entity.user, entity.client_id
