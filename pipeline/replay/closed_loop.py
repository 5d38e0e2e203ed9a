"""
Closed loop: the next request of a throttled connection arrives later, and is measured later (`plan.Mode.CLOSED_LOOP`).

A heap holds the next request of every connection, by time. Sensors are the same as in the open loop, but record values
in the order of the simulated time. Candidates are replayed one by one, because arrivals depend on the candidate's
throttles.
"""

from typing import NamedTuple

import numpy as np

from .algorithms import (
    BURST_SPREADING,
    PERMISSIVE,
    POLICIES,
    STRICT,
    Buckets,
    SensorRings,
    SensorWindows,
    Spreads,
    add,
    empty_windows,
    low_bits,
    measure,
    rate_throttle,
    spread,
    take,
)
from .compiled import LONG_MAX, Codes, Flags, Floats, Heap, Ints, kernel, new_heap, pop, push, run
from .frame import FETCH, KINDS, MUTATION, NO_KIND, REQUEST, Frame, RequestColumns, TableSizes, is_timed
from .ledger import (
    UNSENT,
    UNSENT_BYTES,
    Booked,
    ReplayLedger,
    book_activity,
    book_delay,
    book_mutes,
    book_refusal,
    book_throttle,
    book_unthrottled,
    booked_of,
    cell_of,
    end_burst,
    joined,
    new_ledger,
    stronger,
)
from .plan import MEASURED, ReplayPlan, buckets_of, memory_ms

NEVER = -LONG_MAX
"""Value in place of a delay in ms for a request that is never sent."""
_MOST_PART = 2.0**62
"""Number of bytes in a part of a Fetch without a limit; as an integer it fits in 64 bits."""
_BATCHES = 10
"""Assumed number of batches in the bytes that the only window allows."""


class Connections(NamedTuple):
    """Order and times of the requests of connections."""

    heads: Codes
    """First request of each connection; negative for none."""
    followers: Codes
    """Next request of the connection by request, negative for none."""
    thinks: Ints
    """Time in ms by request until the client sends the next one, if the connection is not muted."""
    next_groups: Codes
    """First connection of the next group, by connection; two groups share no sensor."""
    reactions: Ints
    """Time in ms by connection from the end of a mute to the next decision, at least 1."""
    ends: Ints
    """Time by connection when it stops sending, epoch ms."""
    networks: Floats
    """Network thread's time by request, percent-seconds, which is charged unchecked when the response has left."""
    network_waits: Ints
    """Time in ms by request from the decision to the charge of `networks`."""


class LoopLimits(NamedTuple):
    """Limits of one candidate."""

    sensors: Codes
    """Number of the sensor, or bucket, by kind and pair; negative without a limit."""
    limits: Floats
    """Limit by kind and pair; infinite without one."""
    parts: Ints
    """Largest number of bytes of one Fetch by pair: as many as all complete windows allow."""
    samples: int
    """Number of windows of client quotas."""
    window_ms: int
    """Length of these windows."""
    memory_ms: int
    """Time in ms for which a sensor or a bucket depends on a request."""
    policy: int
    """`TOKEN_BUCKET` or `BURST_SPREADING`."""
    stops: Ints
    """Longest throttle time of rates by pair, before it is cut to 32 bits (`metrics.KafkaRelease.longest_rate_ms`)."""


class Pending(NamedTuple):
    """State of the requests."""

    unfetched: Ints
    """Bytes by request that its Fetch has still to bring."""
    held: Flags
    """1 by request if it was counted as delayed."""
    timed: Flags
    """1 by request if its thread time was charged, or that of the current part of a Fetch in parts."""
    late: Ints
    """Delay of the request's last decision against the log, by request, ms; `NEVER` if it was not sent."""
    heap: Heap
    """
    Next steps by time, epoch ms.

    Number `n` is the request `n`. With as many more as there are requests, it is the charge of its `networks`.
    """


Pending.WRITTEN = True  # type: ignore[attr-defined]


class ClosedLoop(NamedTuple):
    """State of the replay of one candidate; its ledger has one trial for each pair."""

    requests: RequestColumns
    connections: Connections
    limits: LoopLimits
    windows: SensorWindows
    buckets: Buckets
    spreads: Spreads
    pending: Pending
    ledger: ReplayLedger
    sizes: TableSizes


class RequestVerdict(NamedTuple):
    """Decision of the broker on a request."""

    throttled_by: int
    """Quota type that throttles, `NO_KIND` for none."""
    throttle_ms: int
    silence_ms: int
    """Time without a request after which the request quota would not throttle."""
    size: int
    """Number of charged bytes."""
    place: int
    """Index of the charged window of the bytes, negative for none."""
    refusal_ms: int
    """Time after which a refused mutation would be granted, negative if it is not refused."""


@kernel
def replay_candidate(loop: ClosedLoop) -> None:
    """Replay all groups, one after the other."""
    first_connection = 0
    heads, heap = loop.connections.heads, loop.pending.heap
    while first_connection < len(heads):
        next_group = loop.connections.next_groups[first_connection]
        for connection in range(first_connection, next_group):
            if heads[connection] >= 0:
                push(heap, loop.requests.times[heads[connection]], heads[connection])
        while heap.size[0] > 0:
            now_ms, number = pop(heap)
            if number >= len(loop.requests.times):
                _charge_network(loop, number - len(loop.requests.times), now_ms)
            elif now_ms > loop.connections.ends[loop.requests.connections[number]]:
                _give_up(loop, number)
            else:
                _decide(loop, number, now_ms)
        first_connection = next_group


@kernel
def _charge_network(loop: ClosedLoop, row: int, now_ms: int) -> None:
    """Charge the network thread's time of a request whose response has left."""
    limits = loop.limits
    sensor = limits.sensors[REQUEST * loop.sizes.pairs + loop.requests.pairs[row]]
    if sensor >= 0:
        add(loop.windows, sensor, loop.connections.networks[row], now_ms, limits.samples, limits.window_ms)


@kernel
def _decide(loop: ClosedLoop, row: int, now_ms: int) -> None:
    """
    Charge a request, count its throttle, and schedule the next step of its connection.

    The ledger has a single candidate, so the number of a pair is also that of its trial.
    """
    requests, pair = loop.requests, loop.requests.pairs[row]
    book_activity(loop.ledger, loop.sizes, pair, now_ms)
    late_ms = now_ms - requests.times[row]
    loop.ledger.late[pair] = max(loop.ledger.late[pair], late_ms)
    loop.pending.late[row] = late_ms
    verdict = _judge(loop, row, now_ms)
    if verdict.throttled_by == NO_KIND:
        kind, timed = requests.kinds[row], is_timed(requests, row)
        book_unthrottled(loop.ledger, pair, kind, timed, now_ms)
    else:
        kind = verdict.throttled_by
        # a throttle for request time is at most a window, even where only a longer silence would end the excess
        silence_ms = verdict.silence_ms if kind == REQUEST else 0
        end_burst(loop.ledger, pair, kind, now_ms - loop.limits.memory_ms)
        book_throttle(loop.ledger, pair, kind, now_ms, verdict.throttle_ms, silence_ms)
        book_mutes(loop.ledger, pair, now_ms, now_ms + verdict.throttle_ms, 1)
        if requests.kinds[row] == FETCH:
            if verdict.place >= 0:  # a throttled Fetch is answered empty: its bytes are given back
                loop.windows.sums[verdict.place] += -float(verdict.size)
            _note_delay(loop, row, kind)
    _continue(loop, row, now_ms, verdict)


@kernel
def _judge(loop: ClosedLoop, row: int, now_ms: int) -> RequestVerdict:
    """
    Charge a request, and return the decision on it.

    `own_ms` is the throttle time of the request's own quota type, and `request_ms` that of the request quota.
    """
    requests = loop.requests
    size = requests.sizes[row]
    if requests.kinds[row] == FETCH:
        size = min(loop.pending.unfetched[row], loop.limits.parts[requests.pairs[row]])
    own_ms, place, refusal_ms = 0, -1, -1
    if requests.kinds[row] == MUTATION:
        own_ms, refusal_ms = _charge_mutation(loop, row, now_ms)
    elif requests.kinds[row] != NO_KIND:
        kind = requests.kinds[row]
        own_ms, place = _charge(loop, row, kind, float(size), now_ms, loop.limits.stops[requests.pairs[row]])
        own_ms = low_bits(own_ms)
    silence_ms = _charge_time(loop, row, size, now_ms)
    request_ms = low_bits(min(silence_ms, loop.limits.window_ms, loop.limits.stops[requests.pairs[row]]))
    return RequestVerdict(
        throttled_by=stronger(requests.kinds[row], own_ms, request_ms),
        throttle_ms=max(0, own_ms, request_ms),
        silence_ms=silence_ms,
        size=size,
        place=place,
        refusal_ms=refusal_ms,
    )


@kernel
def _charge(loop: ClosedLoop, row: int, kind: int, value: float, now_ms: int, most_ms: int) -> tuple[int, int]:
    """
    Charge the sensor of a kind.

    Return the ms without a request after which its rate would be at the limit, at most `most_ms`, and the index of the
    charged window: 0 and -1 without a limit.
    """
    limits = loop.limits
    index = kind * loop.sizes.pairs + loop.requests.pairs[row]
    sensor = limits.sensors[index]
    if sensor < 0:
        return 0, -1
    place = add(loop.windows, sensor, value, now_ms, limits.samples, limits.window_ms)
    rate, span = measure(loop.windows, sensor, now_ms, limits.samples, limits.window_ms)
    return rate_throttle(rate, limits.limits[index], span, most_ms), place


@kernel
def _charge_time(loop: ClosedLoop, row: int, size: int, now_ms: int) -> int:
    """
    Charge the thread time of a request, and return the ms without a request after which its rate would be at the limit.

    A part of a Fetch is charged in proportion to its `size`. A request that is sent again is charged nothing.
    """
    requests = loop.requests
    if not is_timed(requests, row):
        return 0
    percent = requests.percents[row]
    if size < requests.sizes[row]:
        percent = percent * (size / requests.sizes[row])
    if loop.pending.timed[row] == 1:
        percent = 0.0
    loop.pending.timed[row] = 1
    return _charge(loop, row, REQUEST, percent, now_ms, loop.limits.memory_ms)[0]


@kernel
def _charge_mutation(loop: ClosedLoop, row: int, now_ms: int) -> tuple[int, int]:
    """
    Charge the bucket of a mutation.

    Return the throttle time, and the time after which a refused mutation would be granted, both in ms. The second is
    negative if the mutation is not refused.
    """
    requests = loop.requests
    pair = requests.pairs[row]
    bucket = loop.limits.sensors[MUTATION * loop.sizes.pairs + pair]
    if bucket < 0:
        return 0, -1
    permits = float(requests.sizes[row])
    if loop.limits.policy == BURST_SPREADING:
        throttle_ms, refused = spread(loop.spreads, bucket, permits, now_ms, STRICT)
    else:
        treatment = PERMISSIVE if requests.permissive[row] == 1 else STRICT
        throttle_ms, refused = take(loop.buckets, bucket, permits, now_ms, treatment)
    if refused:
        book_refusal(loop.ledger, pair, requests.sizes[row])
    return low_bits(throttle_ms), throttle_ms if refused else -1


@kernel
def _note_delay(loop: ClosedLoop, row: int, kind: int) -> None:
    """Count a request as delayed by a quota, unless it was counted before."""
    if loop.pending.held[row] == 1:
        return
    loop.pending.held[row] = 1
    requests = loop.requests
    size = requests.sizes[row] if requests.kinds[row] != MUTATION else 0
    book_delay(loop.ledger, requests.pairs[row], kind, size)


@kernel
def _continue(loop: ClosedLoop, row: int, now_ms: int, verdict: RequestVerdict) -> None:
    """Schedule the next step of a connection: the request again, the next part of its Fetch, or its next request."""
    heap, unfetched = loop.pending.heap, loop.pending.unfetched
    is_refused, is_throttled = verdict.refusal_ms >= 0, verdict.throttled_by != NO_KIND
    is_fetch = loop.requests.kinds[row] == FETCH
    # A throttle time above 24.8 days overflows 32 bits, maybe to 0 or less. A refused client would then retry each
    # millisecond, only to be refused again. So it waits for `refusal_ms`, which is not cut to 32 bits.
    left_ms = loop.connections.ends[loop.requests.connections[row]] - now_ms
    mute_ms = max(verdict.throttle_ms, min(verdict.refusal_ms, left_ms))
    if is_throttled or is_refused:
        mute_ms += loop.connections.reactions[loop.requests.connections[row]]
    if is_refused or (is_fetch and is_throttled):
        push(heap, now_ms + mute_ms, row)
        return
    if is_fetch and unfetched[row] > verdict.size:
        unfetched[row] -= verdict.size
        loop.pending.timed[row] = 0
        push(heap, now_ms, row)
        return
    if loop.connections.networks[row] > 0.0:
        leaving_ms = now_ms + loop.connections.network_waits[row]
        push(heap, leaving_ms, len(loop.requests.times) + row)
    follower = loop.connections.followers[row]
    if follower >= 0:
        think_ms = loop.connections.thinks[row]
        if is_throttled and verdict.throttle_ms > think_ms:
            _note_delay(loop, follower, verdict.throttled_by)
        push(heap, now_ms + max(think_ms, mute_ms), follower)


@kernel
def _give_up(loop: ClosedLoop, row: int) -> None:
    """Count a request and all later ones of its connection as not sent."""
    requests = loop.requests
    while row >= 0:
        kind = requests.kinds[row]
        size = loop.pending.unfetched[row] if kind != MUTATION else 0
        if kind != NO_KIND:
            _book_unsent(loop, row, kind, size)
        if is_timed(requests, row):
            _book_unsent(loop, row, REQUEST, size)
        row = loop.connections.followers[row]


@kernel
def _book_unsent(loop: ClosedLoop, row: int, kind: int, size: int) -> None:
    """Count a request, and its bytes, that was not sent under one kind."""
    pair = loop.requests.pairs[row]
    cell = cell_of(pair, kind)
    loop.ledger.cells[cell + UNSENT] += 1
    loop.ledger.cells[cell + UNSENT_BYTES] += size


def replay_closed(plan: ReplayPlan, late: Ints | None = None) -> Booked:
    """
    Replay a plan in closed loop, one candidate after the other, and return its counts.

    Args:
        plan: frame and candidates.
        late: array to which the delay of each request against the log is written, by candidate and request, ms; `NEVER`
            for a request that is not sent.

    """
    requests = plan.frame.requests._replace(sizes=plan.frame.final_sizes)
    connections = connections_of(plan)
    sizes = plan.sizes()._replace(candidates=1)
    booked = []
    for candidate, chosen in enumerate(plan.candidates):
        numbers, buckets, spreads = buckets_of(plan, [candidate])
        limits = _limits(plan, candidate, numbers)
        loop = ClosedLoop(
            requests=requests,
            connections=connections,
            limits=limits,
            windows=empty_windows(_rings(plan, limits), chosen.windows.samples),
            buckets=buckets,
            spreads=spreads,
            pending=Pending(
                unfetched=requests.sizes.copy(),
                held=np.zeros(len(requests.times), np.int8),
                timed=np.zeros(len(requests.times), np.int8),
                # Requests that the log shows as answered empty or refused are not replayed: they stay.
                late=np.where(requests.as_logged == 1, 0, NEVER),
                heap=new_heap(2 * len(requests.times) + 1),
            ),
            ledger=new_ledger(sizes),
            sizes=sizes,
        )
        run(replay_candidate, loop, work=plan.steps + _parts(loop))
        if late is not None:
            late[candidate] = loop.pending.late
        booked.append(booked_of(loop.ledger, sizes, np.zeros(1, np.int32)))
    return joined(booked, plan.frame.pairs)


def _rings(plan: ReplayPlan, limits: LoopLimits) -> SensorRings:
    """Return the rings of the sensors of one candidate."""
    broker_by_sensor = np.zeros(len(MEASURED) * plan.frame.pairs, np.int64)
    for kind in MEASURED:
        sensors = limits.sensors.reshape(KINDS, -1)[kind]
        limited = sensors >= 0
        broker_by_sensor[sensors[limited]] = plan.frame.pair_brokers[limited]
    return plan.rings.only(broker_by_sensor)


def _parts(loop: ClosedLoop) -> int:
    """
    Return the approximate number of parts of all Fetches.

    A Fetch has at most one part per window until its connection stops sending.
    """
    requests, limits = loop.requests, loop.limits
    rows = np.flatnonzero(requests.kinds == FETCH)
    left_ms = loop.connections.ends[requests.connections[rows]] - requests.times[rows]
    parts = requests.sizes[rows] // limits.parts[requests.pairs[rows]]
    return int(np.minimum(parts, left_ms // limits.window_ms).sum())


def _limits(plan: ReplayPlan, candidate: int, buckets: Codes) -> LoopLimits:
    """Return the sensors, buckets and limits of one candidate."""
    frame, chosen = plan.frame, plan.candidates[candidate]
    sensors = np.full((KINDS, frame.pairs), -1, np.int32)
    for place, kind in enumerate(MEASURED):
        limited = np.isfinite(plan.limits[candidate, kind])
        numbers = plan.sensors(plan.resolution(candidate, kind), limited)
        sensors[kind] = np.where(numbers >= 0, numbers + place * frame.pairs, -1)
    sensors[MUTATION] = buckets[frame.pair_entities]
    # A Fetch gets as many bytes as all whole windows allow (`maxValueInQuotaWindow`). If there is a single window, that
    # is 0, and a broker sends one batch of unknown size: a tenth of the window's bytes is assumed. With all bytes of
    # the window, the Fetch would be throttled for ever, since the window begins again with each attempt.
    whole_windows, window_s = chosen.windows.samples - 1, chosen.windows.window_seconds
    seconds = whole_windows * window_s if whole_windows else window_s / _BATCHES
    most_bytes = plan.limits[candidate, FETCH] * seconds
    parts = np.clip(np.nan_to_num(most_bytes, posinf=_MOST_PART), 1, _MOST_PART)
    return LoopLimits(
        sensors=sensors.ravel(),
        limits=plan.limits[candidate].ravel(),
        parts=parts.astype(np.int64),
        samples=chosen.windows.samples,
        window_ms=chosen.windows.window_ms,
        memory_ms=memory_ms(chosen),
        policy=POLICIES[chosen.mutation_policy],
        stops=plan.stops(),
    )


def connections_of(plan: ReplayPlan) -> Connections:
    """
    Return the connections of a frame.

    Requests that the log shows as answered empty or refused are left out, since their retries are in the log.
    """
    frame, requests = plan.frame, plan.frame.requests
    order = np.argsort(requests.connections, kind="stable")
    heads, followers = _chains(frame, order)
    # The clock of a connection stands still while it is muted: the think time is what passes on it.
    # The sum runs on from one connection to the next, but only differences within a connection are used.
    steps = np.diff(requests.times[order], prepend=0)
    mutes = np.maximum(0, np.r_[0, frame.throttles[order][:-1]])
    unmuted_clock = np.zeros(len(order), np.int64)
    unmuted_clock[order] = np.cumsum(np.maximum(0, steps - mutes))
    thinks = np.zeros(len(requests.times), np.int64)
    has_follower = np.flatnonzero(followers >= 0)
    thinks[has_follower] = unmuted_clock[followers[has_follower]] - unmuted_clock[has_follower]
    pair_by_connection = np.zeros(frame.connections, np.int64)
    pair_by_connection[requests.connections] = requests.pairs
    # The end of an entity's replay depends neither on the candidate nor on other entities that share its limit.
    last_ms = np.full(frame.pairs, -LONG_MAX, np.int64)
    np.maximum.at(last_ms, requests.pairs, requests.times)
    group_by_connection = np.zeros(frame.connections, np.int64)
    group_by_connection[requests.connections] = frame.groups
    # Connections are numbered as they first occur in the requests, so those of a group follow each other.
    connections_by_group = np.unique(group_by_connection, return_counts=True)[1]
    return Connections(
        heads=heads,
        followers=followers,
        thinks=thinks,
        next_groups=np.repeat(np.cumsum(connections_by_group), connections_by_group).astype(np.int32),
        reactions=_reactions(frame, order),
        ends=last_ms[pair_by_connection] + plan.settings.drain_ms,
        networks=frame.networks,
        network_waits=np.maximum(0, frame.completed - requests.times),
    )


def _chains(frame: Frame, order: Ints) -> tuple[Codes, Codes]:
    """
    Return the first request by connection, and the next one of its connection by request; negative for none.

    `order` has all requests, one connection after the other.
    """
    requests, connections = frame.requests, frame.requests.connections
    # without Fetches that were answered empty, and refused requests without a granted partition
    sent = order[(requests.as_logged[order] == 0) | (frame.charged[order] > 0)]
    heads = np.full(frame.connections, -1, np.int32)
    followers = np.full(len(connections), -1, np.int32)
    if len(sent):
        is_head = np.r_[True, connections[sent[1:]] != connections[sent[:-1]]]
        heads[connections[sent[is_head]]] = sent[is_head]
        follower_rows = np.flatnonzero(~is_head)
        followers[sent[follower_rows - 1]] = sent[follower_rows]
    return heads, followers


def _reactions(frame: Frame, order: Ints) -> Ints:
    """Return by connection the shortest time from a reported throttle's end to the next request, ms; 1 if unknown."""
    times, connections = frame.requests.times, frame.requests.connections
    earlier, later = order[:-1], order[1:]
    reaction_ms = times[later] - times[earlier] - frame.throttles[earlier]
    is_same = connections[earlier] == connections[later]
    is_reaction = is_same & (frame.throttles[earlier] > 0) & (reaction_ms > 0)
    shortest = np.full(frame.connections, LONG_MAX, np.int64)
    np.minimum.at(shortest, connections[earlier[is_reaction]], reaction_ms[is_reaction])
    reactions: Ints = np.where(shortest == LONG_MAX, 1, shortest)
    return reactions
