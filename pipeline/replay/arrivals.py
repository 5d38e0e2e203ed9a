"""When the requests of a history come under candidates: what a throttle of one client does to the queue in front of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.quotas.candidates import Candidate

from .closed_loop import NEVER, replay_closed
from .compiled import Floats, Ints
from .frame import FETCH, PRODUCE, REQUEST, needed
from .open_loop import measured_by
from .plan import CandidateRules, Mode, ReplayPlan, ReplaySettings, plan_of
from .results import frames


def lateness(
    history: pa.Table, candidates: Sequence[Candidate], mode: Mode, rows: int, settings: ReplaySettings | None = None
) -> Ints:
    """
    By candidate and position: how many ms later than logged the request is sent; `NEVER` for one that is not.

    Closed loop: as the replay moves it. Open loop: no request moves, and of those that measure a rate above their limit the part above it
    never comes, evenly among them; a real client sends them later, or not.

    Args:
        history: as `replay` takes it, but all of one `file`.
        candidates: as `replay` takes them.
        mode: whether arrivals react.
        rows: all `position`s are below it.
        settings: `ReplaySettings()` unless given.

    """
    rules, settings = CandidateRules(candidates), settings or ReplaySettings()
    late = np.zeros((len(candidates), rows), np.int64)
    for frame, resolved in frames(needed(history), rules, settings):
        plan = plan_of(frame, rules, resolved, settings)
        if mode is Mode.CLOSED_LOOP:
            moved = np.zeros((len(candidates), len(frame.positions)), np.int64)
            replay_closed(plan, moved)
        else:
            moved = np.where(_kept(plan), 0, NEVER)
        late[:, frame.positions] = moved
    return late


def _kept(plan: ReplayPlan) -> NDArray[np.bool_]:
    """By candidate and request: whether it is within the limits, or among the part of the excess that is."""
    requests, measured = plan.frame.requests, measured_by(plan)
    rates = measured.rates.reshape(-1, len(requests.times))
    order = np.argsort(requests.pairs, kind="stable")
    pairs = requests.pairs[order]
    starts = np.flatnonzero(np.r_[True, pairs[1:] != pairs[:-1]])
    lengths = np.diff(np.r_[starts, len(pairs)])
    kept = np.ones((len(plan.candidates), len(pairs)), np.bool_)
    for candidate in range(len(plan.candidates)):
        parts: Floats = np.ones(len(pairs))
        for kind in (PRODUCE, FETCH, REQUEST):
            charged = requests.kinds == kind
            if kind == REQUEST:
                charged = ~np.isnan(requests.percents)
            rate = rates[plan.slot(candidate, kind)][charged]
            limit = plan.limits[candidate, kind][requests.pairs[charged]]
            within = np.divide(limit, rate, out=np.ones(len(rate)), where=rate > limit)
            parts[charged] = np.minimum(parts[charged], within)
        # A request comes where the sum of the parts of its client reaches the next whole number.
        sums = np.cumsum(parts[order])
        sums -= np.repeat(sums[starts] - parts[order][starts], lengths)
        whole = np.floor(sums + 1e-9)
        kept[candidate, order] = whole > np.floor(sums - parts[order] + 1e-9)
    return kept
