"""Mutation quotas over a frame: one bucket for all that share its tags, whatever the broker, since one controller decides."""

from __future__ import annotations

import numpy as np

from ..candidates import Candidate, MutationPolicy
from ..kernels.bucket import PERMISSIVE, PROBE, STRICT, new_buckets
from ..kernels.compiled import Codes, Floats, Ints, run
from ..kernels.mutations import (
    BURST_SPREADING,
    TOKEN_BUCKET,
    MutationReplay,
    Mutations,
    decide_mutations,
)
from ..kernels.requests import MUTATION, Outcomes
from ..kernels.spreading import new_spreads
from .frame import Frame
from .plan import Plan


def decide(plan: Plan, frame: Frame) -> Outcomes:
    """What the mutation quotas of all candidates decide."""
    rows, mutations = _mutations(frame)
    candidates, count = len(plan.candidates), len(rows)
    numbers = np.full(len(frame.requests.times), -1, np.int32)
    numbers[rows] = np.arange(count, dtype=np.int32)  # of two of a row, the later one
    outcomes = Outcomes(
        throttles=np.zeros(candidates * count, np.int64),
        refused=np.zeros(candidates * count, np.int8),
        noted=np.zeros(count, np.int8),
        numbers=numbers,
        granted=_granted(frame, rows),
    )
    if count:
        replay = _mutation_replay(plan, frame, mutations, outcomes)
        # As much as the whole replay: what is compiled once is used for all of it.
        run(decide_mutations, replay, work=len(frame.groups) * candidates)
    return outcomes


def _mutations(frame: Frame) -> tuple[Ints, Mutations]:
    """What mutation quotas are asked, in the order of the controller: of a refused request, first what it was granted."""
    requests = frame.requests
    mutating = requests.kinds == MUTATION
    refused = mutating & (requests.as_logged == 1)
    granted = np.flatnonzero(refused & (frame.charged > 0))
    rows = np.concatenate([granted, np.flatnonzero(mutating)])
    permits = requests.sizes[rows].copy()
    permits[: len(granted)] = frame.charged[granted]
    treatments = np.where(requests.permissive[rows] == 1, PERMISSIVE, STRICT)
    treatments[len(granted) :][refused[rows[len(granted) :]]] = PROBE
    times = np.minimum(frame.mutation_times, requests.times)[rows]
    order = np.lexsort((np.arange(len(rows)) >= len(granted), rows, times))
    rows = rows[order]
    return rows, Mutations(
        times=times[order],
        waits=requests.times[rows] - times[order],
        permits=permits[order],
        treatments=treatments[order].astype(np.int8),
        entities=frame.pair_entities[requests.pairs[rows]],
    )


def _granted(frame: Frame, rows: Ints) -> Ints:
    """By mutation: what its request was granted before it was refused."""
    return np.where(frame.requests.as_logged[rows] == 1, frame.charged[rows], 0)


def _mutation_replay(
    plan: Plan,
    frame: Frame,
    mutations: Mutations,
    outcomes: Outcomes,
) -> MutationReplay:
    numbers, limits, samples, windows = buckets_of(plan, len(frame.entities.users))
    policies = [policy_of(candidate) for candidate in plan.candidates]
    return MutationReplay(
        mutations=mutations,
        numbers=numbers,
        policies=np.array(policies, np.int8),
        buckets=new_buckets(limits, samples, windows),
        spreads=new_spreads(limits, samples, windows),
        outcomes=outcomes,
        entities=len(frame.entities.users),
    )


def policy_of(candidate: Candidate) -> int:
    """How the kernels call the candidate's way to count mutations."""
    if candidate.mutation_policy is MutationPolicy.TOKEN_BUCKET:
        return TOKEN_BUCKET
    return BURST_SPREADING


def buckets_of(plan: Plan, entities: int) -> tuple[Codes, Floats, Ints, Ints]:
    """By candidate and entity the number of the bucket, negative for none; by bucket its limit, and number and length of windows."""
    numbers = np.full((len(plan.candidates), entities), -1, np.int32)
    limits: list[Floats] = [np.zeros(0)]
    samples: list[Ints] = [np.zeros(0, np.int64)]
    windows: list[Ints] = [np.zeros(0, np.int64)]
    first = 0
    for candidate, chosen in enumerate(plan.candidates):
        shape = plan.shape(candidate, MUTATION)
        table = plan.rules.tables[candidate][MUTATION]
        limited = np.flatnonzero(shape.tags >= 0)
        tags, places = np.unique(shape.tags[limited], return_inverse=True)
        numbers[candidate, limited] = places + first
        bounds = np.zeros(len(tags))
        bounds[places] = shape.limits(table)[limited]
        limits.append(bounds)
        samples.append(np.full(len(tags), chosen.controller_windows.samples))
        windows.append(np.full(len(tags), chosen.controller_windows.window_ms))
        first += len(tags)
    return (
        numbers.ravel(),
        np.concatenate(limits),
        np.concatenate(samples),
        np.concatenate(windows),
    )
