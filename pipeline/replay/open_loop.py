"""
Open loop: requests arrive as logged, and only their throttles depend on the candidate (`plan.Mode.OPEN_LOOP`).

Rates are measured once for all candidates that share sensors (`measured_by`). Mutations are decided for each candidate
(`decide`), since the tokens of a bucket depend on the limit. `enter_requests` then compares, and counts throttles.
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
    book_unthrottled,
    booked_of,
    end_burst,
    new_ledger,
    stronger,
    trial_of,
)
from .plan import MEASURED, ReplayPlan, ResolvedRules, buckets_of, memory_ms


class Mutations(NamedTuple):
    """Charges to mutation quotas, in the order in which the controller made them."""

    times: Ints
    """Time when the controller charged it, epoch ms."""
    waits: Ints
    """Time from the charge to the broker's decision on the throttle, ms, by which the throttle is shortened."""
    permits: Ints
    """Number of partitions."""
    treatments: Flags
    """`STRICT`, `PERMISSIVE` or `PROBE`."""
    entities: Codes
    """Number of the entity."""


class MutationOutcomes(NamedTuple):
    """Decisions of the mutation quotas."""

    throttles: Ints
    """Throttle time by candidate and mutation, ms."""
    refused: Flags
    """1 if the mutation is refused, by candidate and mutation."""
    noted: Flags
    """1 if any candidate throttles or refuses the mutation, by mutation."""
    numbers: Codes
    """Number of the mutation by request, negative for none."""
    granted: Ints
    """
    Number of partitions by mutation that the log shows as granted, before the request's others were refused.

    The granted partitions are a mutation of their own, just before this one.
    """


MutationOutcomes.WRITTEN = True  # type: ignore[attr-defined]


class CandidateLimits(NamedTuple):
    """Limits of the candidates. A candidate's rank is its index among them, sorted from the strictest on."""

    ranks: Codes
    """Number of the candidate by rank."""
    limits: Floats
    """Limit by kind, pair and rank; infinite for no limit."""
    lowest: Floats
    """Lowest limit among the candidates of a rank and all later ranks, by kind, pair and rank."""
    slots: Codes
    """Slot (`ReplayPlan`) by kind and rank."""
    kinds: Flags
    """Measured quota type by slot."""
    longest: Ints
    """Longest throttle of the request quota by rank, ms."""
    memories: Ints
    """Time by rank for which a sensor or a bucket depends on a request, ms (`memory_ms`)."""
    stops: Ints
    """Longest throttle time of rates by pair, before it is cut to 32 bits (`metrics.KafkaRelease.longest_rate_ms`)."""


class OpenLoop(NamedTuple):
    """State of the open loop."""

    requests: RequestColumns
    measured: Measurements
    """Measurements by slot and request."""
    outcomes: MutationOutcomes
    limits: CandidateLimits
    ledger: ReplayLedger
    sizes: TableSizes


@kernel
def enter_requests(loop: OpenLoop) -> None:
    """
    Enter every request under every candidate that may throttle it, or whose earlier throttle still has an effect.

    Ranks begin with the strictest candidate. So these candidates are mostly the first few ranks, and all ranks from
    some rank on are passed over, without a look at each.
    """
    for row in range(len(loop.requests.times)):
        request = request_at(loop.requests, row)
        book_activity(loop.ledger, loop.sizes, request.pair, request.time)
        # the first rank from which on no earlier throttle has an effect: no open burst and no mute
        rank_without_effect = loop.ledger.pairs[request.pair * PAIR_FIELDS + BURSTING]
        if request.time < loop.ledger.latest[request.connection]:
            rank_without_effect = max(rank_without_effect, loop.ledger.muting[request.connection])
        stop = _first_free_rank(loop, request, rank_without_effect)
        if stop > 0:
            _enter_all(loop, request, stop)


@kernel
def _enter_all(loop: OpenLoop, request: RequestRow, stop: int) -> None:
    """Enter a request under the candidates of the ranks before `stop`, and keep which of them have bursts or mutes."""
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
def _first_free_rank(loop: OpenLoop, request: RequestRow, rank: int) -> int:
    """Return the first rank, `rank` or later, from which on no candidate throttles the request."""
    candidates = loop.sizes.candidates
    if request.kind == MUTATION:
        number = loop.outcomes.numbers[request.row]
        if loop.outcomes.noted[number] == 1:
            return candidates  # some candidate throttles or refuses it; which one is not looked up here
    bytes_rate, time_rate = 0.0, 0.0  # the highest rates in any slot
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
    """Return the index of the first candidate's limit of a pair for one kind, in `CandidateLimits.limits`."""
    return natural((kind * sizes.pairs + pair) * sizes.candidates)


@kernel
def _silence_ms(loop: OpenLoop, request: RequestRow, rank: int, kind: int, most_ms: int) -> int:
    """Return the ms without a request after which the rate of a kind would be at its limit, at most `most_ms`."""
    own_limits = _limits_at(loop.sizes, kind, request.pair)
    limit = loop.limits.limits[own_limits + rank]
    slot = loop.limits.slots[natural(kind * loop.sizes.candidates) + rank]
    place = natural(slot * len(loop.requests.times) + request.row)
    rate, span = loop.measured.rates[place], loop.measured.spans[place]
    return rate_throttle(rate, limit, span, most_ms)


@kernel
def _enter(loop: OpenLoop, request: RequestRow, rank: int) -> int:
    """
    Enter one request under one candidate, and return the end of the mute of its connection, epoch ms.

    `own_ms` is the throttle time of the request's own quota type, and `request_ms` that of the request quota.
    """
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
        own_ms = low_bits(_silence_ms(loop, request, rank, kind, loop.limits.stops[request.pair]))
    if request.timed:
        silence_ms = _silence_ms(loop, request, rank, REQUEST, loop.limits.memories[rank])
        # a broker throttles for at most one window (KIP-124)
        request_ms = low_bits(min(silence_ms, loop.limits.longest[rank], loop.limits.stops[request.pair]))
    throttled_by = stronger(kind, own_ms, request_ms)
    if throttled_by == NO_KIND:
        book_unthrottled(ledger, trial, kind, request.timed, request.time)
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
    """Count a mutation that the controller refuses, and return the throttle time that it decided, ms."""
    outcomes, number = loop.outcomes, loop.outcomes.numbers[request.row]
    place = loop.limits.ranks[rank] * loop.sizes.mutations + number
    if outcomes.refused[place] == 1:
        size = request.size
        candidate_grants_them = outcomes.granted[number] > 0 and outcomes.refused[place - 1] == 0
        if candidate_grants_them:
            size -= outcomes.granted[number]  # the size has all partitions that the request asked for
        trial = trial_of(loop.sizes, rank, request.pair)
        book_refusal(loop.ledger, trial, size)
    decided: int = outcomes.throttles[place]
    return decided


def replay_open(plan: ReplayPlan, measured: Measurements | None = None) -> Booked:
    """Replay a plan in open loop, and return its counts; rates are measured unless they are given."""
    ledger = new_ledger(plan.sizes())
    outcomes = decide(plan, buckets_of(plan, range(len(plan.candidates))))
    limits = limits_of(plan)
    enter(plan, limits, outcomes, measured or measured_by(plan), ledger)
    return booked_of(ledger, plan.sizes(), limits.ranks)


class MutationReplay(NamedTuple):
    """State of the decisions on mutations."""

    mutations: Mutations
    numbers: Codes
    """Number of the bucket or rate by candidate and entity, negative without a limit."""
    policies: Flags
    """`TOKEN_BUCKET` or `BURST_SPREADING` by candidate."""
    buckets: Buckets
    spreads: Spreads
    outcomes: MutationOutcomes
    entities: int
    """Number of entities."""


@kernel
def decide_mutations(replay: MutationReplay) -> None:
    """Decide on every mutation under every candidate, and write the outcomes."""
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
    Return the decisions of the mutation quotas of all candidates.

    `state` is what `buckets_of` returned; the buckets and rates in it are changed.
    """
    frame, candidates = plan.frame, len(plan.candidates)
    rows, mutations = _mutations(frame)
    count = len(rows)
    numbers = np.full(len(frame.requests.times), -1, np.int32)
    # A request with granted partitions has two mutations; the later one, of the refused partitions, stays.
    numbers[rows] = np.arange(count, dtype=np.int32)
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
    Return the row of the request of each mutation, and the mutations, in the order in which the controller decided.

    The partitions that a refused request was granted are a mutation of their own, just before the refused one.
    """
    requests = frame.requests
    mutating = requests.kinds == MUTATION
    refused = mutating & (requests.as_logged == 1)
    granted = np.flatnonzero(refused & (frame.charged > 0))
    rows = np.concatenate([granted, np.flatnonzero(mutating)])
    permits = requests.sizes[rows].copy()
    permits[: len(granted)] = frame.charged[granted]
    is_whole_request = np.arange(len(rows)) >= len(granted)
    treatments = np.where(requests.permissive[rows] == 1, PERMISSIVE, STRICT)
    treatments[is_whole_request & refused[rows]] = PROBE
    times = np.minimum(frame.mutation_times, requests.times)[rows]
    # by time, then by request, and of a request the granted partitions first: `lexsort` sorts by its last key first
    order = np.lexsort((is_whole_request, rows, times))
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
    run(enter_requests, loop, work=plan.steps)


def limits_of(plan: ReplayPlan) -> CandidateLimits:
    """Return the limits of all candidates of a plan."""
    ranks = plan.rules.ranks
    slots = np.zeros((KINDS, len(ranks)), np.int32)
    for rank, candidate in enumerate(ranks.tolist()):
        for kind in MEASURED:
            slots[kind, rank] = plan.slot(candidate, kind)
    # candidates, kinds and pairs become kinds, pairs and ranks
    limits = np.ascontiguousarray(np.moveaxis(plan.limits[ranks], 0, -1))
    # a running minimum from the last rank to the first
    lowest = np.minimum.accumulate(limits[..., ::-1], axis=-1)[..., ::-1]
    longest = [plan.candidates[candidate].windows.window_ms for candidate in ranks]
    return CandidateLimits(
        ranks=ranks,
        limits=limits.ravel(),
        lowest=np.ascontiguousarray(lowest).ravel(),
        slots=slots.ravel(),
        kinds=np.array([kind for kind, _, _ in plan.slots] or [PRODUCE], np.int8),
        longest=np.array(longest, np.int64),
        memories=np.array([memory_ms(plan.candidates[candidate]) for candidate in ranks], np.int64),
        stops=plan.stops(),
    )


WindowsOf: TypeAlias = Callable[
    [int, ResolvedRules, Ints, SensorRings, int, int], AbstractContextManager[SensorWindows | None]
]
"""
Function that lends windows to the sensors of a slot; None for windows of new sensors.

Its arguments are the slot, the deciding rules, a pair of each sensor, the rings of the sensors, and the number and
length in ms of the windows.
"""


def measured_by(
    plan: ReplayPlan, frame: Frame | None = None, windows_of: WindowsOf = lambda *_: nullcontext()
) -> Measurements:
    """
    Return the measurements by slot and request.

    Args:
        plan: the plan.
        frame: requests with the plan's pairs; the frame of the plan by default.
        windows_of: function that lends the windows of the sensors; new sensors by default.

    """
    frame = frame or plan.frame
    count, slots = len(frame.requests.times), max(1, len(plan.slots))
    rates = np.zeros((slots, count), np.float64)
    spans = np.zeros((slots, count), np.int64)
    for (kind, resolution, (samples, window_ms)), slot in plan.slots.items():
        resolved = plan.resolved[resolution]
        sensors, pairs = _sensors_of(plan, kind, resolved, slot)
        if not len(pairs):
            continue
        rows, events = events_of(frame, sensors, kind)
        rings = plan.rings.only(plan.frame.pair_brokers[pairs])
        with windows_of(slot, resolved, pairs, rings, samples, window_ms) as windows:
            measured = observe(events, rings, samples, window_ms, windows)
        checked = events.treatments != UNCHECKED
        rates[slot][rows[checked]] = measured.rates[checked]
        spans[slot][rows[checked]] = measured.spans[checked]
    return Measurements(rates.ravel(), spans.ravel())


def _sensors_of(plan: ReplayPlan, kind: int, resolved: ResolvedRules, slot: int) -> tuple[Codes, Ints]:
    """
    Return the sensor of a slot by pair, and a pair by sensor.

    The sensor is negative for a pair that no candidate of the slot limits.
    """
    limited = np.zeros(plan.frame.pairs, np.bool_)
    for candidate in range(len(plan.candidates)):
        if plan.slot(candidate, kind) == slot:
            limited |= np.isfinite(plan.limits[candidate, kind])
    sensors = plan.sensors(resolved, limited)
    pairs = np.flatnonzero(sensors >= 0)
    # number the sensors that are left from 0 on, and find the first pair of each
    _, first_places, sensors[pairs] = np.unique(sensors[pairs], return_index=True, return_inverse=True)
    return sensors, pairs[first_places]


def events_of(frame: Frame, sensors: Codes, kind: int) -> tuple[Ints, Events]:
    """
    Return the row of the request of each event, and the events of the sensors of one quota type.

    A Fetch that the log shows as answered empty is charged and given back. Thread time of the handler is checked. Time
    of the network thread is an event of its own, unchecked, when the response has left.

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
    handled = np.flatnonzero(~np.isnan(requests.percents) & (numbers >= 0))
    leaving = np.flatnonzero((frame.networks > 0) & (numbers >= 0))
    rows = np.concatenate([handled, leaving])
    times = np.concatenate([requests.times[handled], frame.completed[leaving]])
    values = np.concatenate([requests.percents[handled], frame.networks[leaving]])
    treatments = np.full(len(rows), UNCHECKED, np.int8)
    treatments[: len(handled)] = CHECKED
    order = order_of(frame.groups[rows], times)
    return rows[order], Events(
        sensors=numbers[rows[order]], times=times[order], values=values[order], treatments=treatments[order]
    )
