"""From what the kernels kept count of to the rows of `RESULTS`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..kernels.compiled import Codes, Floats, Ints
from ..kernels.ledger import (
    DELAYED,
    DELAYED_BYTES,
    IDLE_MUTED_MS,
    LONGEST_MS,
    MUTED_MS,
    RECOVERY_MS,
    REJECTED,
    REJECTED_MUTATIONS,
    THROTTLED,
    THROTTLED_MS,
    UNSENT,
    UNSENT_BYTES,
)
from ..kernels.requests import KINDS, REQUEST
from .booked import Booked
from .frame import Column, Frame, array
from .plan import Plan
from .resolution import TYPES
from .results import RESULTS

_SUMS = {
    "throttled_requests": THROTTLED,
    "throttled_ms": THROTTLED_MS,
    "muted_ms": MUTED_MS,
    "delayed_requests": DELAYED,
    "delayed_bytes": DELAYED_BYTES,
    "rejected_requests": REJECTED,
    "rejected_mutations": REJECTED_MUTATIONS,
    "unsent_requests": UNSENT,
    "unsent_bytes": UNSENT_BYTES,
}
_LARGEST = {"longest_throttle_ms": LONGEST_MS, "recovery_ms": RECOVERY_MS}


def figures(plan: Plan, frame: Frame, booked: Booked, *, per_broker: bool) -> pa.Table:
    """The rows of a frame, by candidate and then by entity."""
    rows = _Rows(plan, frame, booked, per_broker=per_broker)
    return pa.table(rows.columns(), schema=RESULTS)


class _Rows:
    """Adds up what is told together, and picks what there is a row for."""

    def __init__(
        self, plan: Plan, frame: Frame, booked: Booked, *, per_broker: bool
    ) -> None:
        self._plan = plan
        self._frame = frame
        self._booked = booked
        self._per_broker = per_broker
        pairs = np.arange(frame.pairs)
        whose = pairs if per_broker else frame.pair_entities
        self._starts = np.flatnonzero(np.r_[True, whose[1:] != whose[:-1]])
        requests, amounts = _charged(frame)
        self._requests = self._sum(requests.T).T
        self._amounts = self._sum(amounts.T).T
        self._limits = plan.limits[:, :, self._starts]
        told = np.isfinite(self._limits) & (self._requests > 0)
        self._where = np.nonzero(told)

    def columns(self) -> dict[str, Column]:
        """All columns."""
        candidates, kinds, places = self._where
        cells = self._booked.cells
        sums = self._sum(cells)[places, candidates, kinds]
        largest = self._largest(cells[..., list(_LARGEST.values())])
        largest = largest[places, candidates, kinds]
        columns = self._names()
        columns |= {name: array(sums[:, field]) for name, field in _SUMS.items()}
        columns |= {
            name: array(largest[:, number]) for number, name in enumerate(_LARGEST)
        }
        columns["requests"] = array(self._requests[kinds, places])
        columns["amount"] = array(self._amounts[kinds, places])
        columns["late_ms"] = array(self._largest(self._booked.late)[places, candidates])
        columns |= self._shares(sums)
        return {name: columns[name] for name in RESULTS.names}

    def _names(self) -> dict[str, Column]:
        candidates, kinds, places = self._where
        frame, pairs = self._frame, self._starts[places]
        entities = array(frame.pair_entities[pairs])
        brokers: Column = pa.nulls(len(pairs), pa.string())
        if self._per_broker:
            brokers = frame.brokers.take(array(frame.pair_brokers[pairs]))
        names = array([one.name for one in self._plan.candidates])
        types = array([TYPES[kind].label for kind in range(KINDS)])
        return {
            "candidate": names.take(array(candidates)),
            "broker": brokers,
            "user": frame.entities.users.take(entities),
            "client_id": frame.entities.client_ids.take(entities),
            "quota_type": types.take(array(kinds)),
            "limit": array(self._limits[self._where]),
            "level": array(self._levels()),
        }

    def _levels(self) -> NDArray[np.object_]:
        candidates, kinds, places = self._where
        entities = self._frame.pair_entities[self._starts[places]]
        found = np.full(len(entities), "none", object)
        limited = candidates * KINDS + kinds
        borders = np.flatnonzero(np.diff(limited)) + 1
        for start, stop in pairwise((0, *borders, len(limited))):
            if start < stop:
                shape = self._plan.shape(int(candidates[start]), int(kinds[start]))
                found[start:stop] = shape.levels()[entities[start:stop]]
        return found

    def _shares(self, sums: Ints) -> dict[str, Column]:
        candidates, _, places = self._where
        base = self._sum(self._booked.active)[places, candidates]
        active, muted = base + sums[:, IDLE_MUTED_MS], sums[:, MUTED_MS]
        share = np.divide(muted, active, out=np.zeros(len(active)), where=active > 0)
        return {"active_ms": array(active), "throttled_share": array(share)}

    def _sum(self, figures: NDArray[Any]) -> NDArray[Any]:
        """What is told together, added up; figures are by pair."""
        if len(self._starts) == self._frame.pairs:
            return figures
        added: NDArray[Any] = np.add.reduceat(figures, self._starts, axis=0)
        return added

    def _largest(self, figures: Ints) -> Ints:
        if len(self._starts) == self._frame.pairs:
            return figures
        largest: Ints = np.maximum.reduceat(figures, self._starts, axis=0)
        return largest


def _charged(frame: Frame) -> tuple[Ints, Floats]:
    """By kind and pair: how many requests charged the quota as logged, and how much."""
    counts = np.zeros((KINDS, frame.pairs), np.int64)
    amounts = np.zeros((KINDS, frame.pairs), np.float64)
    requests, kept = frame.requests, frame.kept
    for kind in TYPES:
        here = (
            ~np.isnan(requests.percents) if kind == REQUEST else requests.kinds == kind
        )
        counts[kind] = _count(requests.pairs[here], frame.pairs)
        if kind != REQUEST:
            amounts[kind] = np.bincount(requests.pairs[here], kept[here], frame.pairs)
    spent = np.nan_to_num(requests.percents) + frame.networks
    amounts[REQUEST] = np.bincount(requests.pairs, spent, frame.pairs)
    return counts, amounts


def _count(pairs: Codes, most: int) -> Ints:
    counts: Ints = np.bincount(pairs, minlength=most)
    return counts
