"""From what the kernels kept count of to the rows of `RESULTS`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..kernels.compiled import Codes, Floats, Ints, run
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
    TOLD,
    UNSENT,
    UNSENT_BYTES,
)
from ..kernels.requests import KINDS, REQUEST
from ..kernels.totals import Booked, Told, Totals, add_up, new_totals
from .frame import Column, Frame, array
from .plan import Plan
from .resolution import LEVELS, TYPES
from .results import RESULTS

_FIELDS = {
    "throttled_requests": THROTTLED,
    "throttled_ms": THROTTLED_MS,
    "muted_ms": MUTED_MS,
    "delayed_requests": DELAYED,
    "delayed_bytes": DELAYED_BYTES,
    "rejected_requests": REJECTED,
    "rejected_mutations": REJECTED_MUTATIONS,
    "unsent_requests": UNSENT,
    "unsent_bytes": UNSENT_BYTES,
    "longest_throttle_ms": LONGEST_MS,
    "recovery_ms": RECOVERY_MS,
}


def figures(plan: Plan, frame: Frame, booked: Booked, *, per_broker: bool) -> pa.Table:
    """The rows of a frame, by candidate and then by entity."""
    rows = _Rows(plan, frame, booked, per_broker=per_broker)
    return pa.table(rows.columns(), schema=RESULTS)


class _Rows:
    """Picks what there is a row for, and adds up what is told together."""

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
        self._requests = np.add.reduceat(requests, self._starts, axis=1)
        self._amounts = np.add.reduceat(amounts, self._starts, axis=1)
        self._limits = plan.limits[:, :, self._starts]
        told = np.isfinite(self._limits) & (self._requests > 0)
        self._where = tuple(np.ascontiguousarray(axis) for axis in np.nonzero(told))

    def columns(self) -> dict[str, Column]:
        """All columns."""
        _, kinds, places = self._where
        totals = self._totals()
        fields = totals.fields.reshape(TOLD, -1)
        columns = self._names()
        columns |= {name: array(fields[field]) for name, field in _FIELDS.items()}
        columns["requests"] = array(self._requests[kinds, places])
        columns["amount"] = array(self._amounts[kinds, places])
        columns["late_ms"] = array(totals.late)
        active = totals.active + fields[IDLE_MUTED_MS]
        columns["active_ms"] = array(active)
        columns["throttled_share"] = array(_shares(fields[MUTED_MS], active))
        return {name: columns[name] for name in RESULTS.names}

    def _totals(self) -> Totals:
        starts = np.append(self._starts, self._frame.pairs)
        candidates, kinds, places = self._where
        told = Told(candidates=candidates, kinds=kinds, places=places, starts=starts)
        totals = new_totals(len(places))
        # As much as the whole replay: what is compiled once is used for all of it.
        work = len(self._frame.groups) * len(self._plan.candidates)
        run(add_up, self._booked, told, totals, work=work)
        return totals

    def _names(self) -> dict[str, Column]:
        candidates, kinds, places = self._where
        frame, pairs = self._frame, self._starts[places]
        entities = array(frame.pair_entities[pairs])
        brokers: Column = pa.nulls(len(pairs), pa.string())
        if self._per_broker:
            brokers = frame.brokers.take(array(frame.pair_brokers[pairs]))
        names = array([one.name for one in self._plan.candidates])
        types = array([TYPES[kind].label for kind in range(KINDS)])
        levels = array([level.value for level in LEVELS])
        return {
            "candidate": names.take(array(candidates)),
            "broker": brokers,
            "user": frame.entities.users.take(entities),
            "client_id": frame.entities.client_ids.take(entities),
            "quota_type": types.take(array(kinds)),
            "limit": array(self._limits[self._where]),
            "level": levels.take(array(self._levels())),
        }

    def _levels(self) -> Codes:
        """The numbers of the levels, by row."""
        candidates, kinds, places = self._where
        entities = self._frame.pair_entities[self._starts[places]]
        found = np.zeros(len(entities), np.int32)
        limited = candidates * KINDS + kinds
        borders = np.flatnonzero(np.diff(limited)) + 1
        for start, stop in pairwise((0, *borders, len(limited))):
            if start < stop:
                shape = self._plan.shape(int(candidates[start]), int(kinds[start]))
                found[start:stop] = shape.levels()[entities[start:stop]]
        return found


def _shares(muted: Ints, active: Ints) -> Floats:
    share: Floats = np.zeros(len(active))
    np.divide(muted, active, out=share, where=active > 0)
    return share


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
