"""
Open loop: requests arrive as logged, and each candidate only compares (`plan.Mode.OPEN_LOOP`).

Rates are measured once for all candidates that share sensors (`measured_by`); mutation quotas decide before (`decide`),
since what a bucket holds depends on the limit.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeAlias

import numpy as np

from .algorithms import (
    BURST_SPREADING,
    CHECKED,
    PERMISSIVE,
    POLICIES,
    PROBE,
    STRICT,
    UNCHECKED,
    WITHHELD,
    Buckets,
    Events,
    Measurements,
    SensorRings,
    SensorWindows,
    Spreads,
    low_bits,
    observe,
    rate_throttle,
    spread,
    take,
)
from .compiled import Codes, Flags, Floats, Ints, kernel, natural, run
from .frame import (
    FETCH,
    KINDS,
    MUTATION,
    NO_KIND,
    PRODUCE,
    REQUEST,
    Frame,
    RequestColumns,
    RequestRow,
    TableSizes,
    order_of,
    request_at,
)
from .ledger import (
    BURSTING,
    PAIR_FIELDS,
    Booked,
    ReplayLedger,
    book_activity,
    book_delay,
    book_mutes,
    book_refusal,
    book_throttle,
    booked_of,
    end_burst,
    enter_free,
    new_ledger,
    stronger,
    trial_of,
)
from .plan import MEASURED, ReplayPlan, ResolvedRules, buckets_of, memory_ms


class Mutations(NamedTuple):
    """Mutations in order of their charge."""

    times: Ints
    """Times when the controller charged them, epoch ms."""
    waits: Ints
    """Delay of the broker's decision on the throttle, ms: it counts as served."""
    permits: Ints
    treatments: Flags
    """`STRICT`, `PERMISSIVE` or `PROBE`."""
    entities: Codes


class MutationOutcomes(NamedTuple):
    """Decisions of the mutation quotas, by candidate and mutation."""

    throttles: Ints
    refused: Flags
    noted: Flags
    """1 by mutation if any candidate throttles or refuses it."""
    numbers: Codes
    """Number of its mutation by request, negative for none."""
    granted: Ints
    """
    Partitions by mutation that the log shows as granted, before others of the request were refused.

    They are those of the mutation before.
    """


MutationOutcomes.WRITTEN = True  # type: ignore[attr-defined]


class CandidateLimits(NamedTuple):
    """Limits of the candidates; a candidate's rank is its place among them, the strictest first."""

    ranks: Codes
    """Candidate by rank."""
    limits: Floats
    """Limit by kind, pair and rank; infinite for no limit."""
    lowest: Floats
    """Lowest limit of the candidates from a rank on, by kind, pair and rank."""
    slots: Codes
    """Table of measurements by kind and rank."""
    kinds: Flags
    """Measured quota type by slot."""
    longest: Ints
    """Longest request throttle by rank, ms."""
    memories: Ints
    """Time by rank for which a sensor or a bucket depends on a request, ms."""
    stops: Ints
    """Longest throttle time of rates by pair, before it is cut to 32 bits (`metrics.KafkaRelease.longest_rate_ms`)."""


class OpenLoop(NamedTuple):
    """State of the open loop."""

    requests: RequestColumns
    measured: Measurements
    """Measurements, one table of all requests for each slot."""
    outcomes: MutationOutcomes
    limits: CandidateLimits
    ledger: ReplayLedger
    sizes: TableSizes


@kernel
def fold(loop: OpenLoop) -> None:
    """Enter every request under every candidate that may throttle it, or whose earlier throttle still has an effect."""
    for row in range(len(loop.requests.times)):
        request = request_at(loop.requests, row)
        book_activity(loop.ledger, loop.sizes, request.pair, request.time)
        # From this rank on no earlier throttle matters to the request.
        rank = loop.ledger.pairs[request.pair * PAIR_FIELDS + BURSTING]
        if request.time < loop.ledger.latest[request.connection]:
            rank = max(rank, loop.ledger.muting[request.connection])
        stop = _stop(loop, request, rank)
        if stop > 0:
            _enter_all(loop, request, stop)


@kernel
def _enter_all(loop: OpenLoop, request: RequestRow, stop: int) -> None:
    """Enter a request under the candidates before a rank, and note those that throttle it."""
    ledger = loop.ledger
    bursting, muting, latest_ms = 0, 0, request.time
    for rank in range(stop):
        end_ms = _enter(loop, request, rank)
        if ledger.bursts[trial_of(loop.sizes, rank, request.pair)] != 0:
            bursting = rank + 1
        if end_ms > request.time:
            muting = rank + 1
            latest_ms = max(latest_ms, end_ms)
    ledger.pairs[request.pair * PAIR_FIELDS + BURSTING] = bursting
    ledger.muting[request.connection] = muting
    ledger.latest[request.connection] = latest_ms
    book_mutes(ledger, request.pair, request.time, latest_ms, muting)


@kernel
def _stop(loop: OpenLoop, request: RequestRow, rank: int) -> int:
    """Return the first rank, not before the given one, from which on no candidate throttles the request."""
    candidates = loop.sizes.candidates
    if request.kind == MUTATION:
        number = loop.outcomes.numbers[request.row]
        if loop.outcomes.noted[number] == 1:
            return candidates
    bytes_rate, time_rate = 0.0, 0.0  # the highest that the request measures
    for slot in range(loop.sizes.slots):
        place = natural(slot * len(loop.requests.times)) + request.row
        rate = loop.measured.rates[place]
        if loop.limits.kinds[slot] == REQUEST:
            time_rate = max(time_rate, rate)
        else:
            bytes_rate = max(bytes_rate, rate)
    own_limits = _limits_at(loop.sizes, max(request.kind, 0), request.pair)
    time_limits = _limits_at(loop.sizes, REQUEST, request.pair)
    lowest = loop.limits.lowest
    while rank < candidates and (bytes_rate > lowest[own_limits + rank] or time_rate > lowest[time_limits + rank]):
        rank += 1
    return rank


@kernel
def _limits_at(sizes: TableSizes, kind: int, pair: int) -> int:
    """Return the place where the limits of a pair for one kind begin."""
    return natural((kind * sizes.pairs + pair) * sizes.candidates)


@kernel
def _of_rate(loop: OpenLoop, request: RequestRow, rank: int, kind: int, most_ms: int) -> int:
    """Return the time without a request after which the rate would be at its limit, ms."""
    own_limits = _limits_at(loop.sizes, kind, request.pair)
    limit = loop.limits.limits[own_limits + rank]
    slot = loop.limits.slots[natural(kind * loop.sizes.candidates) + rank]
    place = natural(slot * len(loop.requests.times) + request.row)
    rate, span = loop.measured.rates[place], loop.measured.spans[place]
    return rate_throttle(rate, limit, span, most_ms)


@kernel
def _enter(loop: OpenLoop, request: RequestRow, rank: int) -> int:
    """Enter one request under one candidate, and return the end of the mute of its connection, epoch ms."""
    ledger, kind = loop.ledger, request.kind
    trial = trial_of(loop.sizes, rank, request.pair)
    channel = natural(request.connection * loop.sizes.candidates) + rank
    muted_to_ms: int = ledger.mute_ends[channel]
    is_muted = request.time < muted_to_ms
    if is_muted:
        size = request.size if kind != MUTATION else 0
        book_delay(ledger, trial, ledger.mute_kinds[channel], size)
    own_ms, request_ms, silence_ms = 0, 0, 0
    if kind == MUTATION:
        own_ms = _enter_mutation(loop, request, rank)
    elif kind != NO_KIND:
        own_ms = low_bits(_of_rate(loop, request, rank, kind, loop.limits.stops[request.pair]))
    if request.timed:  # at most one window (KIP-124)
        silence_ms = _of_rate(loop, request, rank, REQUEST, loop.limits.memories[rank])
        request_ms = low_bits(min(silence_ms, loop.limits.longest[rank], loop.limits.stops[request.pair]))
    throttled_by = stronger(kind, own_ms, request_ms)
    if throttled_by == NO_KIND:
        enter_free(ledger, trial, kind, request.timed, request.time)
        return muted_to_ms
    throttle_ms = max(own_ms, request_ms)
    silence_ms = silence_ms if throttled_by == REQUEST else 0
    end_burst(ledger, trial, throttled_by, request.time - loop.limits.memories[rank])
    book_throttle(ledger, trial, throttled_by, request.time, throttle_ms, silence_ms)
    if kind == FETCH and not is_muted:
        book_delay(ledger, trial, throttled_by, request.size)
    end_ms = request.time + throttle_ms
    if end_ms > muted_to_ms:
        ledger.mute_ends[channel] = end_ms
        ledger.mute_kinds[channel] = throttled_by
    return max(end_ms, muted_to_ms)


@kernel
def _enter_mutation(loop: OpenLoop, request: RequestRow, rank: int) -> int:
    """Enter the refusal of the controller, and return the throttle that it decided, ms."""
    outcomes, number = loop.outcomes, loop.outcomes.numbers[request.row]
    place = loop.limits.ranks[rank] * loop.sizes.mutations + number
    if outcomes.refused[place] == 1:
        size = request.size
        if outcomes.granted[number] > 0 and outcomes.refused[place - 1] == 0:
            size -= outcomes.granted[number]
        trial = trial_of(loop.sizes, rank, request.pair)
        book_refusal(loop.ledger, trial, size)
    decided: int = outcomes.throttles[place]
    return decided


def replay_open(plan: ReplayPlan) -> Booked:
    """Decide on mutations, measure rates, and enter all requests under all candidates."""
    ledger = new_ledger(plan.sizes())
    outcomes = decide(plan, buckets_of(plan, range(len(plan.candidates))))
    limits = limits_of(plan)
    enter(plan, limits, outcomes, measured_by(plan), ledger)
    return booked_of(ledger, plan.sizes(), limits.ranks)


class MutationReplay(NamedTuple):
    """State of the decisions on mutations; no two candidates have a bucket in common."""

    mutations: Mutations
    numbers: Codes
    """Number of the bucket or rate by candidate and entity, negative without a limit."""
    policies: Flags
    """`TOKEN_BUCKET` or `BURST_SPREADING` by candidate."""
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
    """
    Return the decisions of the mutation quotas of all candidates, in open loop.

    `state` (`buckets_of`) is changed.
    """
    frame, candidates = plan.frame, len(plan.candidates)
    rows, mutations = _mutations(frame)
    count = len(rows)
    numbers = np.full(len(frame.requests.times), -1, np.int32)
    numbers[rows] = np.arange(count, dtype=np.int32)  # where a row has two, the later one stays
    refused = frame.requests.as_logged[rows] == 1
    outcomes = MutationOutcomes(
        throttles=np.zeros(candidates * count, np.int64),
        refused=np.zeros(candidates * count, np.int8),
        noted=np.zeros(count, np.int8),
        numbers=numbers,
        granted=np.where(refused, frame.charged[rows], 0),
    )
    if count:
        policies = [POLICIES[candidate.mutation_policy] for candidate in plan.candidates]
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
        # The work of the whole replay decides, as a kernel is compiled once for all of it.
        run(decide_mutations, replay, work=plan.steps)
    return outcomes


def _mutations(frame: Frame) -> tuple[Ints, Mutations]:
    """
    Return the mutations that quotas check, in the order of the controller.

    Partitions that a refused request was granted before come in front of it.
    """
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


def enter(
    plan: ReplayPlan, limits: CandidateLimits, outcomes: MutationOutcomes, measured: Measurements, ledger: ReplayLedger
) -> None:
    """Enter all requests under all candidates into a ledger."""
    loop = OpenLoop(
        requests=plan.frame.requests,
        measured=measured,
        outcomes=outcomes,
        limits=limits,
        ledger=ledger,
        sizes=plan.sizes()._replace(mutations=len(outcomes.noted)),
    )
    run(fold, loop, work=plan.steps)


def limits_of(plan: ReplayPlan) -> CandidateLimits:
    """Return the limits of the candidates."""
    ranks = plan.rules.ranks
    used = np.zeros((KINDS, len(ranks)), np.int32)
    for rank, candidate in enumerate(ranks.tolist()):
        for kind in MEASURED:
            used[kind, rank] = plan.slot(candidate, kind)
    limits = np.ascontiguousarray(np.moveaxis(plan.limits[ranks], 0, -1))
    lowest = np.minimum.accumulate(limits[..., ::-1], axis=-1)[..., ::-1]
    longest = [plan.candidates[candidate].windows.window_ms for candidate in ranks]
    return CandidateLimits(
        ranks=ranks,
        limits=limits.ravel(),
        lowest=np.ascontiguousarray(lowest).ravel(),
        slots=used.ravel(),
        kinds=np.array([kind for kind, _, _ in plan.slots] or [PRODUCE], np.int8),
        longest=np.array(longest, np.int64),
        memories=np.array([memory_ms(plan.candidates[candidate]) for candidate in ranks], np.int64),
        stops=plan.stops(),
    )


WindowsOf: TypeAlias = Callable[
    [int, ResolvedRules, Ints, SensorRings, int, int], AbstractContextManager[SensorWindows | None]
]
"""
Function that lends windows to the sensors of a slot.

Given the rules, a pair of each sensor, their rings, and the number and length in ms of the windows.
"""


def measured_by(
    plan: ReplayPlan, frame: Frame | None = None, windows_of: WindowsOf = lambda *_: nullcontext()
) -> Measurements:
    """
    Return the measurements of all requests, one table for each slot.

    They are of the plan's frame and of new windows, unless others are given.
    """
    frame = frame or plan.frame
    count, slots = len(frame.requests.times), max(1, len(plan.slots))
    rates = np.zeros((slots, count), np.float64)
    spans = np.zeros((slots, count), np.int64)
    for (kind, number, shape), slot in plan.slots.items():
        sensors, pairs = _sensors_of(plan, kind, number, slot)
        if not len(pairs):
            continue
        rows, events = events_of(frame, sensors, kind)
        rings = plan.rings.only(plan.frame.pair_brokers[pairs])
        with windows_of(slot, plan.resolved[number], pairs, rings, *shape) as windows:
            measured = observe(events, rings, *shape, windows)
        checked = events.treatments != UNCHECKED
        rates[slot][rows[checked]] = measured.rates[checked]
        spans[slot][rows[checked]] = measured.spans[checked]
    return Measurements(rates.ravel(), spans.ravel())


def _sensors_of(plan: ReplayPlan, kind: int, number: int, slot: int) -> tuple[Codes, Ints]:
    """
    Return by pair the sensor of a table of measurements, and a pair of each sensor.

    The sensor is negative if no candidate of the table has a limit.
    """
    limited = np.zeros(plan.frame.pairs, np.bool_)
    for candidate in range(len(plan.candidates)):
        if plan.slot(candidate, kind) == slot:
            limited |= np.isfinite(plan.limits[candidate, kind])
    sensors = plan.sensors(plan.resolved[number], limited)
    taken = np.flatnonzero(sensors >= 0)
    _, first_pairs, sensors[taken] = np.unique(sensors[taken], return_index=True, return_inverse=True)
    return sensors, taken[first_pairs]


def events_of(frame: Frame, sensors: Codes, kind: int) -> tuple[Ints, Events]:
    """
    Return the events of the sensors of one quota type, and the number of the request of each event.

    For bytes, a Fetch that the log shows as answered empty is charged and given back. For thread time, the handler's is
    checked, and the network thread's is added unchecked when the response has left.

    Args:
        frame: the requests.
        sensors: sensor by pair, negative for none.
        kind: `PRODUCE`, `FETCH` or `REQUEST`.

    """
    requests = frame.requests
    numbers = sensors[requests.pairs]
    if kind != REQUEST:
        rows = np.flatnonzero((requests.kinds == kind) & (numbers >= 0))
        treatments = np.where(requests.as_logged[rows] == 1, WITHHELD, CHECKED)
        return rows, Events(
            sensors=numbers[rows],
            times=requests.times[rows],
            values=requests.sizes[rows].astype(np.float64),
            treatments=treatments.astype(np.int8),
        )
    checked = np.flatnonzero(~np.isnan(requests.percents) & (numbers >= 0))
    leaving = np.flatnonzero((frame.networks > 0) & (numbers >= 0))
    rows = np.concatenate([checked, leaving])
    times = np.concatenate([requests.times[checked], frame.completed[leaving]])
    values = np.concatenate([requests.percents[checked], frame.networks[leaving]])
    by_time = np.full(len(rows), UNCHECKED, np.int8)
    by_time[: len(checked)] = CHECKED
    order = order_of(frame.groups[rows], times)
    return rows[order], Events(
        sensors=numbers[rows[order]], times=times[order], values=values[order], treatments=by_time[order]
    )
