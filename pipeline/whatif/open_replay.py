"""Open loop over a frame: measure once for each shape, then compare with every candidate."""

from __future__ import annotations

import numpy as np

from ..kernels.compiled import Codes, Ints, run
from ..kernels.ledger import close, new_ledger
from ..kernels.open_loop import OpenLoop, fold
from ..kernels.rate import (
    CHECKED,
    UNCHECKED,
    WITHHELD,
    Events,
    Measured,
    empty_windows,
    observe,
)
from ..kernels.requests import REQUEST
from ..kernels.totals import Booked
from .booked import booked_of
from .frame import Frame
from .groups import order_of
from .mode import Settings
from .mutation_rules import decide
from .plan import Plan, kernel_limits, scale_of, sensors_of


def open_loop(plan: Plan, frame: Frame, settings: Settings) -> OpenLoop:
    """All that the candidates are entered by: measurements and decisions on mutations."""
    outcomes = decide(plan, frame)
    scale = scale_of(plan, frame, settings)._replace(mutations=len(outcomes.noted))
    return OpenLoop(
        requests=frame.requests,
        measured=_measured(plan, frame),
        outcomes=outcomes,
        limits=kernel_limits(plan),
        ledger=new_ledger(scale),
        scale=scale,
    )


def replay_open(plan: Plan, frame: Frame, settings: Settings) -> Booked:
    """Enter all requests under all candidates."""
    loop = open_loop(plan, frame, settings)
    steps = len(frame.groups) * len(plan.candidates)
    run(fold, loop, work=steps)
    run(close, loop.ledger, loop.scale, work=len(loop.ledger.cells))
    return booked_of(loop.ledger, loop.scale, loop.limits.ranks)


def _measured(plan: Plan, frame: Frame) -> Measured:
    count, slots = len(frame.requests.times), max(1, len(plan.slots))
    rates = np.zeros((slots, count), np.float64)
    spans = np.zeros((slots, count), np.int64)
    for (kind, number, windows), slot in plan.slots.items():
        limited = np.zeros(frame.pairs, np.bool_)
        for candidate in range(len(plan.candidates)):
            if plan.slot(candidate, kind) == slot:
                limited |= np.isfinite(plan.limits[candidate, kind])
        if not limited.any():
            continue
        sensors = sensors_of(frame, plan.shapes[number], limited)
        rows, events = (
            _time_events(frame, sensors)
            if kind == REQUEST
            else _byte_events(frame, sensors, kind)
        )
        state = empty_windows(frame.pairs, windows[0])
        measured = observe(events, state, *windows)
        checked = events.treatments != UNCHECKED
        rates[slot][rows[checked]] = measured.rates[checked]
        spans[slot][rows[checked]] = measured.spans[checked]
    return Measured(rates.ravel(), spans.ravel())


def _byte_events(frame: Frame, sensors: Codes, kind: int) -> tuple[Ints, Events]:
    requests = frame.requests
    rows = np.flatnonzero((requests.kinds == kind) & (sensors[requests.pairs] >= 0))
    treatments = np.where(requests.as_logged[rows] == 1, WITHHELD, CHECKED)
    return rows, Events(
        sensors=sensors[requests.pairs[rows]],
        times=requests.times[rows],
        values=requests.sizes[rows].astype(np.float64),
        treatments=treatments.astype(np.int8),
    )


def _time_events(frame: Frame, sensors: Codes) -> tuple[Ints, Events]:
    requests = frame.requests
    whose = sensors[requests.pairs]
    checked = np.flatnonzero(~np.isnan(requests.percents) & (whose >= 0))
    later = np.flatnonzero((frame.networks > 0) & (whose >= 0))
    rows = np.concatenate([checked, later])
    times = np.concatenate([requests.times[checked], frame.completed[later]])
    values = np.concatenate([requests.percents[checked], frame.networks[later]])
    treatments = np.full(len(rows), UNCHECKED, np.int8)
    treatments[: len(checked)] = CHECKED
    order = order_of(frame.groups[rows], times)
    return rows[order], Events(
        sensors=whose[rows[order]],
        times=times[order],
        values=values[order],
        treatments=treatments[order],
    )
