"""
Mutation quotas, many at once: the token bucket, and for comparison the burst-spreading rate of an early draft of KIP-599.

They equal `metrics.token_bucket` with `metrics.mutation_quota`, and `metrics.burst_spreading`.

Entities that a rule gives the same tags share one bucket, whatever the broker, since one controller decides.
"""

from typing import NamedTuple

import numpy as np

from quotascope.quotas.candidates import MutationPolicy

from .compiled import Codes, Flags, Floats, Ints, kernel, run
from .frame import MUTATION, Frame
from .plan import ReplayPlan
from .rate import low_bits, rounded

STRICT = 0
"""The client understands a refusal: checked first, and charged if it is not refused."""
PERMISSIVE = 1
"""The client is too old: charged, then checked."""
PROBE = 2
"""Checked as `STRICT` is, and not charged."""

TOKEN_BUCKET = 0
BURST_SPREADING = 1
POLICIES = {
    MutationPolicy.TOKEN_BUCKET: TOKEN_BUCKET,
    MutationPolicy.BURST_SPREADING: BURST_SPREADING,
}
"""The candidates' policies by the numbers of the kernels."""

IDLE_MS = 3_600_000
"""A sensor without a record for longer is removed; the next request finds a full bucket."""


class Buckets(NamedTuple):
    """Buckets, and what is in them."""

    limits: Floats
    """Partitions per second, above 0."""
    bursts: Floats
    """Most tokens: `samples * window in s * limit`."""
    tokens: Floats
    touched: Ints
    """When the bucket held these, epoch ms."""
    charged: Ints
    """When they were last charged, epoch ms; negative for never."""


Buckets.WRITTEN = True  # type: ignore[attr-defined]


def new_buckets(limits: Floats, samples: Ints, window_ms: Ints) -> Buckets:
    """Return unused buckets: empty in 1970 and so full at any real time, as in Kafka."""
    count = len(limits)
    return Buckets(
        limits=limits,
        bursts=samples.astype(np.float64) * (window_ms / 1000.0) * limits,
        tokens=np.zeros(count, np.float64),
        touched=np.zeros(count, np.int64),
        charged=np.full(count, -1, np.int64),
    )


@kernel
def take(buckets: Buckets, bucket: int, permits: float, now_ms: int, treatment: int) -> tuple[int, bool]:
    """
    Charge a mutation, or refuse it; return the throttle in ms and whether it was refused.

    Args:
        buckets: state.
        bucket: which one.
        permits: partitions.
        now_ms: epoch ms.
        treatment: `STRICT`, `PERMISSIVE` or `PROBE`.

    """
    if buckets.charged[bucket] < 0:
        buckets.charged[bucket] = now_ms
    elif now_ms - buckets.charged[bucket] > IDLE_MS:
        buckets.tokens[bucket] = 0.0
        buckets.touched[bucket] = 0
        buckets.charged[bucket] = now_ms
    limit, burst = buckets.limits[bucket], buckets.bursts[bucket]
    passed_s = (now_ms - buckets.touched[bucket]) / 1000.0
    tokens = min(burst, buckets.tokens[bucket] + limit * passed_s)
    buckets.touched[bucket] = now_ms
    buckets.tokens[bucket] = tokens
    if treatment != PERMISSIVE and tokens < 0.0:
        return debt_throttle(tokens, limit), True
    if treatment == PROBE:
        return 0, False
    left = min(burst, tokens - permits)
    buckets.tokens[bucket] = left
    buckets.charged[bucket] = now_ms
    if treatment == PERMISSIVE and left < 0.0:
        return debt_throttle(left, limit), False
    return 0, False


@kernel
def debt_throttle(tokens: float, limit: float) -> int:
    """Return the ms after which a bucket in debt is back at zero (`metrics.throttle_time`)."""
    return rounded(-tokens / limit * 1000.0)


class Spreads(NamedTuple):
    """Rates, and what is booked in their windows."""

    limits: Floats
    """Partitions per second, above 0."""
    samples: Ints
    window_ms: Ints
    bases: Ints
    """Where the windows of each begin; they are in order, the current one last."""
    windows: Floats
    currents: Ints
    """Number of the current window since 1970."""


Spreads.WRITTEN = True  # type: ignore[attr-defined]


def new_spreads(limits: Floats, samples: Ints, window_ms: Ints, most: int) -> Spreads:
    """Return rates without bookings, with room for this many windows each."""
    return Spreads(
        limits=limits,
        samples=samples,
        window_ms=window_ms,
        bases=np.arange(len(limits)) * most,
        windows=np.zeros(len(limits) * most, np.float64),
        currents=np.zeros(len(limits), np.int64),
    )


@kernel
def spread(spreads: Spreads, rate: int, permits: float, now_ms: int, treatment: int) -> tuple[int, bool]:
    """
    Book a mutation over the windows before, or refuse it; return the ms to wait, at least 1, and whether it was refused.

    The draft knows no clients that are too old to be refused.
    """
    base, samples = spreads.bases[rate], spreads.samples[rate]
    current = now_ms // spreads.window_ms[rate]
    over = min(max(0, current - spreads.currents[rate]), samples)
    if over > 0:
        for place in range(base, base + samples - over):
            spreads.windows[place] = spreads.windows[place + over]
        for place in range(base + samples - over, base + samples):
            spreads.windows[place] = 0.0
        spreads.currents[rate] = current
    total = 0.0
    for place in range(base, base + samples):
        total += spreads.windows[place]
    limit = spreads.limits[rate]
    span_s = samples * spreads.window_ms[rate] / 1000.0
    per_second = total / span_s
    if per_second > limit:
        wait_ms = (per_second - limit) / limit * span_s * 1000.0
        return max(1, rounded(wait_ms)), True
    if treatment != PROBE:
        full = limit * spreads.window_ms[rate] / 1000.0
        left = permits
        for place in range(base, base + samples - 1):
            booked = max(0.0, min(left, full - spreads.windows[place]))
            spreads.windows[place] += booked
            left -= booked
        spreads.windows[base + samples - 1] += left
    return 0, False


class Mutations(NamedTuple):
    """Mutations in order of their charge."""

    times: Ints
    """When the controller charged them, epoch ms."""
    waits: Ints
    """How much later the broker decided on the throttle, ms: it counts as served."""
    permits: Ints
    treatments: Flags
    """`STRICT`, `PERMISSIVE` or `PROBE`."""
    entities: Codes


class MutationOutcomes(NamedTuple):
    """What the mutation quotas decided, by candidate and mutation."""

    throttles: Ints
    refused: Flags
    noted: Flags
    """By mutation: 1 where any candidate throttles or refuses it."""
    numbers: Codes
    """By request: number of its mutation, negative for none."""
    granted: Ints
    """By mutation: partitions that the log shows as granted, before the rest of the request was refused: the mutation before."""


MutationOutcomes.WRITTEN = True  # type: ignore[attr-defined]


class MutationReplay(NamedTuple):
    """All that the decisions need; no two candidates have a bucket in common."""

    mutations: Mutations
    numbers: Codes
    """By candidate and entity: number of the bucket or rate, negative without a limit."""
    policies: Flags
    """By candidate: `TOKEN_BUCKET` or `BURST_SPREADING`."""
    buckets: Buckets
    spreads: Spreads
    outcomes: MutationOutcomes
    entities: int


@kernel
def decide_mutations(replay: MutationReplay) -> None:
    """Decide on every mutation under every candidate."""
    mutations, outcomes = replay.mutations, replay.outcomes
    count = len(mutations.times)
    for candidate in range(len(replay.policies)):
        for number in range(count):
            entity = mutations.entities[number]
            bucket = replay.numbers[candidate * replay.entities + entity]
            if bucket < 0:
                continue
            now_ms, permits = mutations.times[number], float(mutations.permits[number])
            treatment = mutations.treatments[number]
            if replay.policies[candidate] == BURST_SPREADING:
                throttle_ms, refused = spread(replay.spreads, bucket, permits, now_ms, treatment)
            else:
                throttle_ms, refused = take(replay.buckets, bucket, permits, now_ms, treatment)
            if throttle_ms == 0 and not refused:
                continue
            place = candidate * count + number
            if throttle_ms != 0:
                left_ms = throttle_ms - max(0, mutations.waits[number])
                outcomes.throttles[place] = max(0, low_bits(left_ms))
            outcomes.refused[place] = refused
            outcomes.noted[number] = 1


def decide(plan: ReplayPlan, state: tuple[Codes, Buckets, Spreads]) -> MutationOutcomes:
    """What the mutation quotas of all candidates decide, in open loop, from what `new_state` returns, or what was left of it."""
    frame, candidates = plan.frame, len(plan.candidates)
    rows, mutations = _mutations(frame)
    count = len(rows)
    numbers = np.full(len(frame.requests.times), -1, np.int32)
    numbers[rows] = np.arange(count, dtype=np.int32)  # of two of a row, the later one
    refused = frame.requests.as_logged[rows] == 1
    outcomes = MutationOutcomes(
        throttles=np.zeros(candidates * count, np.int64),
        refused=np.zeros(candidates * count, np.int8),
        noted=np.zeros(count, np.int8),
        numbers=numbers,
        granted=np.where(refused, frame.charged[rows], 0),
    )
    if count:
        policies = [POLICIES[each.mutation_policy] for each in plan.candidates]
        bucket_numbers, buckets, spreads = state
        replay = MutationReplay(
            mutations=mutations,
            numbers=bucket_numbers,
            policies=np.array(policies, np.int8),
            buckets=buckets,
            spreads=spreads,
            outcomes=outcomes,
            entities=len(frame.entities.users),
        )
        # As much as the whole replay: what is compiled once is used for all of it.
        run(decide_mutations, replay, work=plan.steps)
    return outcomes


def _mutations(frame: Frame) -> tuple[Ints, Mutations]:
    """What mutation quotas check, in the order of the controller: of a refused request, first the partitions that it was granted."""
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


def new_state(plan: ReplayPlan) -> tuple[Codes, Buckets, Spreads]:
    """By candidate and entity the number of its bucket or rate, negative for none; and all of these, unused."""
    entities = len(plan.frame.entities.users)
    numbers = np.full((len(plan.candidates), entities), -1, np.int32)
    limits: list[Floats] = [np.zeros(0)]
    samples: list[Ints] = [np.zeros(0, np.int64)]
    windows: list[Ints] = [np.zeros(0, np.int64)]
    first = 0
    for candidate, chosen in enumerate(plan.candidates):
        resolved = plan.resolution(candidate, MUTATION)
        limited = np.flatnonzero(resolved.tags >= 0)
        tags, places = np.unique(resolved.tags[limited], return_inverse=True)
        numbers[candidate, limited] = places + first
        bounds = np.zeros(len(tags))
        by_entity = resolved.limits(plan.rules.tables[candidate][MUTATION])
        bounds[places] = by_entity[limited]
        limits.append(bounds)
        samples.append(np.full(len(tags), chosen.controller_windows.samples))
        windows.append(np.full(len(tags), chosen.controller_windows.window_ms))
        first += len(tags)
    given = np.concatenate(limits), np.concatenate(samples), np.concatenate(windows)
    most = max((each.controller_windows.samples for each in plan.candidates), default=0)
    return numbers.ravel(), new_buckets(*given), new_spreads(*given, most)
