"""What the candidates mean for a frame: sensors, limits, and which measurements candidates share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..candidates import Candidate
from ..kernels.compiled import Codes, Floats
from ..kernels.requests import (
    FETCH,
    KINDS,
    MUTATION,
    PRODUCE,
    REQUEST,
    Limits,
    Scale,
)
from .frame import Frame, dense
from .mode import Settings
from .resolution import Rules, Shape

MEASURED = (PRODUCE, FETCH, REQUEST)
"""The quota types with a windowed rate."""

_Windows = tuple[int, int]
_UNLIMITED = 2.0**63


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The candidates, resolved for a frame."""

    rules: Rules
    shapes: list[Shape]
    limits: Floats
    """By candidate, kind and pair; infinite for unlimited."""
    slots: dict[tuple[int, int, _Windows], int]
    """The tables of measurements: by kind, shape and windows."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """In their order."""
        return self.rules.candidates

    def slot(self, candidate: int, kind: int) -> int:
        """Which table of measurements a candidate compares with."""
        shape = self.rules.shape_of[candidate][kind]
        return self.slots[kind, shape, windows_of(self.candidates[candidate])]

    def shape(self, candidate: int, kind: int) -> Shape:
        """What the rules of a candidate for one quota type mean."""
        return self.shapes[self.rules.shape_of[candidate][kind]]


def windows_of(candidate: Candidate) -> _Windows:
    """Number and length in ms of the windows of bandwidth and request quotas."""
    return candidate.windows.samples, candidate.windows.window_ms


def plan_of(rules: Rules, shapes: list[Shape], frame: Frame) -> Plan:
    """The plan for a frame; the shapes are those of its entities."""
    count = len(rules.candidates)
    limits = np.full((count, KINDS, frame.pairs), np.inf)
    slots: dict[tuple[int, int, _Windows], int] = {}
    for candidate in range(count):
        for kind, number in rules.shape_of[candidate].items():
            table = rules.tables[candidate][kind]
            limits[candidate, kind] = shapes[number].limits(table)[frame.pair_entities]
            if kind != MUTATION:
                key = kind, number, windows_of(rules.candidates[candidate])
                slots.setdefault(key, len(slots))
    return Plan(rules=rules, shapes=shapes, limits=limits, slots=slots)


def kernel_limits(plan: Plan) -> Limits:
    """The plan as the open loop wants it: the candidates by their strictness."""
    ranks = _strictest_first(plan.limits)
    used = np.zeros((KINDS, len(ranks)), np.int32)
    for rank, candidate in enumerate(ranks.tolist()):
        for kind in MEASURED:
            used[kind, rank] = plan.slot(candidate, kind)
    limits = np.ascontiguousarray(np.moveaxis(plan.limits[ranks], 0, -1))
    lowest = np.minimum.accumulate(limits[..., ::-1], axis=-1)[..., ::-1]
    longest = [plan.candidates[candidate].windows.window_ms for candidate in ranks]
    return Limits(
        ranks=ranks,
        limits=limits.ravel(),
        lowest=np.ascontiguousarray(lowest).ravel(),
        slots=used.ravel(),
        kinds=np.array([kind for kind, _, _ in plan.slots] or [PRODUCE], np.int8),
        longest=np.array(longest, np.int64),
    )


def _strictest_first(limits: Floats) -> Codes:
    """The candidates by the mean of their limits' logarithms: a grid in its order, and any order does."""
    logarithms = np.log(np.minimum(limits, _UNLIMITED))
    means = logarithms.reshape(len(limits), -1).mean(axis=1)
    return np.argsort(means, kind="stable").astype(np.int32)


def sensors_of(frame: Frame, shape: Shape, limited: Iterable[bool]) -> Codes:
    """By pair: number of the sensor, one for each tags on each broker; negative where no candidate limits it."""
    tags = shape.tags[frame.pair_entities].astype(np.int64)
    _, sensors = dense(tags * max(1, len(frame.brokers)) + frame.pair_brokers)
    wanted = np.asarray(limited) & (tags >= 0)
    result: Codes = np.where(wanted, sensors, -1).astype(np.int32)
    return result


def scale_of(plan: Plan, frame: Frame, settings: Settings) -> Scale:
    """The sizes of the kernels' tables; the number of mutations is not known here."""
    connections = frame.requests.connections
    return Scale(
        candidates=len(plan.candidates),
        pairs=frame.pairs,
        connections=int(connections.max(initial=-1)) + 1,
        slots=max(1, len(plan.slots)),
        mutations=0,
        longest_ms=settings.release.longest_rate_ms,
    )
