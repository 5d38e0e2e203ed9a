"""Closed loop over a frame: one candidate after the other, each with the arrivals that its throttles make."""

from __future__ import annotations

import numpy as np

from ..kernels.bucket import new_buckets
from ..kernels.closed_loop import (
    ClosedLoop,
    Connections,
    Progress,
    Rules,
    replay_candidate,
)
from ..kernels.compiled import Codes, Ints, run
from ..kernels.heap import new_heap
from ..kernels.ledger import close, new_ledger
from ..kernels.rate import empty_windows
from ..kernels.requests import FETCH, KINDS, MUTATION
from ..kernels.rounding import LONG_MAX
from ..kernels.spreading import new_spreads
from ..kernels.totals import Booked
from .booked import booked_of, joined
from .frame import Frame
from .mode import Settings
from .mutation_rules import buckets_of, policy_of
from .plan import MEASURED, Plan, scale_of, sensors_of

_ALONE: Codes = np.zeros(1, np.int32)
"""The ranks of one candidate."""


def replay_closed(plan: Plan, frame: Frame, settings: Settings) -> Booked:
    """Replay every candidate; when an entity is active is another question under each."""
    connections = _connections(frame, settings)
    booked = []
    for candidate in range(len(plan.candidates)):
        loop = _loop(plan, frame, candidate, connections, settings)
        run(replay_candidate, loop, work=len(frame.groups) * len(plan.candidates))
        run(close, loop.ledger, loop.scale, work=len(loop.ledger.cells))
        booked.append(booked_of(loop.ledger, loop.scale, _ALONE))
    return joined(booked, frame.pairs)


def _loop(
    plan: Plan,
    frame: Frame,
    candidate: int,
    connections: Connections,
    settings: Settings,
) -> ClosedLoop:
    scale = scale_of(plan, frame, settings)._replace(candidates=1)
    samples = plan.candidates[candidate].windows.samples
    _, limits, counts, windows = buckets_of(plan, len(frame.entities.users))
    requests = frame.requests._replace(sizes=frame.kept)
    heap = new_heap(2 * len(requests.times) + 1)
    return ClosedLoop(
        requests=requests,
        connections=connections,
        rules=_rules(plan, frame, candidate),
        windows=empty_windows(len(MEASURED) * frame.pairs, samples),
        buckets=new_buckets(limits, counts, windows),
        spreads=new_spreads(limits, counts, windows),
        progress=Progress(
            left=requests.sizes.copy(),
            held=np.zeros(len(requests.times), np.int8),
            timed=np.zeros(len(requests.times), np.int8),
            heap=heap,
        ),
        ledger=new_ledger(scale),
        scale=scale,
    )


def _rules(plan: Plan, frame: Frame, candidate: int) -> Rules:
    chosen = plan.candidates[candidate]
    sensors = np.full((KINDS, frame.pairs), -1, np.int32)
    for place, kind in enumerate(MEASURED):
        limited = np.isfinite(plan.limits[candidate, kind])
        numbers = sensors_of(frame, plan.shape(candidate, kind), limited)
        sensors[kind] = np.where(numbers >= 0, numbers + place * frame.pairs, -1)
    entities = len(frame.entities.users)
    buckets = buckets_of(plan, entities)[0].reshape(-1, entities)
    sensors[MUTATION] = buckets[candidate][frame.pair_entities]
    return Rules(
        sensors=sensors.ravel(),
        limits=plan.limits[candidate].ravel(),
        parts=_parts(plan, candidate),
        samples=chosen.windows.samples,
        window_ms=chosen.windows.window_ms,
        policy=policy_of(chosen),
    )


def _parts(plan: Plan, candidate: int) -> Ints:
    """By pair: what all whole windows together allow one Fetch, at least a byte (`maxValueInQuotaWindow`)."""
    windows = plan.candidates[candidate].windows
    seconds = (windows.samples - 1) * windows.window_seconds
    most = plan.limits[candidate, FETCH] * max(1, seconds)
    parts: Ints = np.clip(np.nan_to_num(most, posinf=2.0**62), 1, 2.0**62).astype(
        np.int64
    )
    return parts


def _connections(frame: Frame, settings: Settings) -> Connections:
    requests = frame.requests
    count = int(requests.connections.max(initial=-1)) + 1
    order = np.argsort(requests.connections, kind="stable")
    sent = order[(requests.as_logged[order] == 0) | (frame.charged[order] > 0)]
    heads, followers = _chains(requests.connections, sent, count)
    clock = _own_clock(frame, order)
    thinks = np.zeros(len(requests.times), np.int64)
    known = np.flatnonzero(followers >= 0)
    thinks[known] = clock[followers[known]] - clock[known]
    return Connections(
        heads=heads,
        followers=followers,
        thinks=thinks,
        groups=_groups(frame, count),
        reactions=_reactions(frame, order, count),
        ends=_ends(frame, count, settings),
        networks=frame.networks,
        network_waits=np.maximum(0, frame.completed - requests.times),
    )


def _chains(connections: Codes, sent: Ints, count: int) -> tuple[Codes, Codes]:
    heads = np.full(count, -1, np.int32)
    followers = np.full(len(connections), -1, np.int32)
    if len(sent):
        first = np.r_[True, connections[sent[1:]] != connections[sent[:-1]]]
        heads[connections[sent[first]]] = sent[first]
        later = np.flatnonzero(~first)
        followers[sent[later - 1]] = sent[later]
    return heads, followers


def _own_clock(frame: Frame, order: Ints) -> Ints:
    """By request: how long its connection's client had been busy or thinking until then, ms, mutes left out."""
    requests = frame.requests
    steps = np.diff(requests.times[order], prepend=0)
    mutes = np.maximum(0, np.r_[0, frame.throttles[order][:-1]])
    clock = np.zeros(len(order), np.int64)
    clock[order] = np.cumsum(np.maximum(0, steps - mutes))
    return clock


def _reactions(frame: Frame, order: Ints, count: int) -> Ints:
    """By connection: the shortest time that was left of a gap after a reported throttle, ms; 1 where the log shows none."""
    times, connections = frame.requests.times, frame.requests.connections
    before, after = order[:-1], order[1:]
    left = times[after] - times[before] - frame.throttles[before]
    told = (connections[before] == connections[after]) & (frame.throttles[before] > 0)
    shortest = np.full(count, LONG_MAX, np.int64)
    known = told & (left > 0)
    np.minimum.at(shortest, connections[before[known]], left[known])
    reactions: Ints = np.where(shortest == LONG_MAX, 1, shortest)
    return reactions


def _groups(frame: Frame, count: int) -> Codes:
    """By connection: the first connection of the next group."""
    group_of = np.zeros(count, np.int64)
    group_of[frame.requests.connections] = frame.groups
    borders = np.flatnonzero(np.r_[group_of[1:] != group_of[:-1], True]) + 1
    following = np.repeat(borders, np.diff(np.r_[0, borders])) if count else borders
    return following.astype(np.int32)


def _ends(frame: Frame, count: int, settings: Settings) -> Ints:
    """By connection: when its replay ends. Other candidates and who shares a limit do not move it."""
    requests = frame.requests
    pair_of = np.zeros(count, np.int64)
    pair_of[requests.connections] = requests.pairs
    last = np.full(frame.pairs, -LONG_MAX, np.int64)
    np.maximum.at(last, requests.pairs, requests.times)
    ends: Ints = last[pair_of] + settings.drain_ms
    return ends
