"""
Closed loop: a throttled connection's next request comes later, and is measured later (`whatif.mode.Mode.CLOSED_LOOP`).

Every connection has one request to come; a heap says whose is next. Sensors are those of the open loop, driven in the order of the
replay's own time. One candidate at a time: its throttles make its arrivals.
"""

from typing import NamedTuple

from .bucket import PERMISSIVE, STRICT, Buckets, take
from .compiled import Codes, Flags, Floats, Ints, kernel
from .heap import Heap, pop, push
from .ledger import (
    UNSENT,
    UNSENT_BYTES,
    Ledger,
    book_activity,
    book_delay,
    book_mutes,
    book_refusal,
    book_throttle,
    cell_of,
    enter_free,
    stronger,
)
from .mutations import BURST_SPREADING
from .rate import Windows, add, measure
from .requests import FETCH, MUTATION, NO_KIND, REQUEST, Requests, Scale, is_timed
from .rounding import low_bits
from .spreading import Spreads, spread
from .throttle import rate_throttle


class Connections(NamedTuple):
    """Which request follows which, and when."""

    heads: Codes
    """The first request of each connection; negative for none."""
    followers: Codes
    """By request: the next one of its connection, negative for none."""
    thinks: Ints
    """By request: ms until the client sends the next one, if it is not muted."""
    groups: Codes
    """By connection: the first connection of the next group; groups share no sensor."""
    reactions: Ints
    """By connection: ms from the end of a mute to the next decision, at least 1."""
    ends: Ints
    """By connection: from when on nothing more of it is sent, epoch ms."""
    networks: Floats
    """By request: thread time in percent-seconds that is charged, unchecked, after the response."""
    network_waits: Ints
    """By request: how long after the decision that is, ms."""


class Rules(NamedTuple):
    """What one candidate allows, by kind and pair."""

    sensors: Codes
    """Number of the sensor or bucket, negative without a limit."""
    limits: Floats
    parts: Ints
    """By pair: most bytes of one Fetch, what all whole windows allow."""
    samples: int
    window_ms: int
    policy: int


class Progress(NamedTuple):
    """How far the replay is."""

    left: Ints
    """By request: bytes that a Fetch has still to bring."""
    held: Flags
    """By request: 1 if it was counted as delayed."""
    timed: Flags
    """By request: 1 if its thread time was charged, of a Fetch in parts that of the part to come."""
    heap: Heap


Progress.WRITTEN = True  # type: ignore[attr-defined]


class ClosedLoop(NamedTuple):
    """All that the replay of one candidate needs; the ledger is its own, with one trial for each pair."""

    requests: Requests
    connections: Connections
    rules: Rules
    windows: Windows
    buckets: Buckets
    spreads: Spreads
    progress: Progress
    ledger: Ledger
    scale: Scale


class Verdict(NamedTuple):
    """What becomes of a request."""

    throttled_by: int
    throttle_ms: int
    size: int
    """Bytes that were charged."""
    place: int
    """The window that was charged, negative for none."""
    refused: bool


@kernel
def replay_candidate(loop: ClosedLoop) -> None:
    """Replay all groups, one after the other."""
    connection = 0
    heads, heap = loop.connections.heads, loop.progress.heap
    while connection < len(heads):
        following = loop.connections.groups[connection]
        for member in range(connection, following):
            if heads[member] >= 0:
                push(heap, loop.requests.times[heads[member]], heads[member])
        while heap.size[0] > 0:
            now_ms, number = pop(heap)
            if number >= len(loop.requests.times):
                _charge_network(loop, number - len(loop.requests.times), now_ms)
            elif now_ms > loop.connections.ends[loop.requests.connections[number]]:
                _give_up(loop, number)
            else:
                _decide(loop, number, now_ms)
        connection = following


@kernel
def _charge_network(loop: ClosedLoop, row: int, now_ms: int) -> None:
    rules = loop.rules
    sensor = rules.sensors[REQUEST * loop.scale.pairs + loop.requests.pairs[row]]
    if sensor >= 0:
        value = loop.connections.networks[row]
        add(loop.windows, sensor, value, now_ms, rules.samples, rules.window_ms)


@kernel
def _decide(loop: ClosedLoop, row: int, now_ms: int) -> None:
    requests, pair = loop.requests, loop.requests.pairs[row]
    book_activity(loop.ledger, loop.scale, pair, now_ms)
    late_ms = now_ms - requests.times[row]
    loop.ledger.late[pair] = max(loop.ledger.late[pair], late_ms)
    verdict = _judge(loop, row, now_ms)
    if verdict.throttled_by == NO_KIND:
        kind, timed = requests.kinds[row], is_timed(requests, row)
        enter_free(loop.ledger, pair, kind, timed, now_ms)
    else:
        _throttle(loop, row, now_ms, verdict)
    _go_on(loop, row, now_ms, verdict)


@kernel
def _judge(loop: ClosedLoop, row: int, now_ms: int) -> Verdict:
    """Charge the request, and say what becomes of it."""
    requests = loop.requests
    size = requests.sizes[row]
    if requests.kinds[row] == FETCH:
        size = min(loop.progress.left[row], loop.rules.parts[requests.pairs[row]])
    own_ms, place, refused = 0, -1, False
    if requests.kinds[row] == MUTATION:
        own_ms, refused = _charge_mutation(loop, row, now_ms)
    elif requests.kinds[row] != NO_KIND:
        kind = requests.kinds[row]
        own_ms, place = _charge(
            loop, row, kind, float(size), now_ms, loop.scale.longest_ms
        )
    request_ms = _charge_time(loop, row, size, now_ms)
    return Verdict(
        throttled_by=stronger(requests.kinds[row], own_ms, request_ms),
        throttle_ms=max(0, own_ms, request_ms),
        size=size,
        place=place,
        refused=refused,
    )


@kernel
def _charge(
    loop: ClosedLoop, row: int, kind: int, value: float, now_ms: int, most_ms: int
) -> tuple[int, int]:
    """Charge a sensor; return the throttle in ms, and the place of the window that was charged."""
    rules = loop.rules
    at = kind * loop.scale.pairs + loop.requests.pairs[row]
    sensor = rules.sensors[at]
    if sensor < 0:
        return 0, -1
    place = add(loop.windows, sensor, value, now_ms, rules.samples, rules.window_ms)
    rate, span = measure(loop.windows, sensor, now_ms, rules.samples, rules.window_ms)
    return low_bits(rate_throttle(rate, rules.limits[at], span, most_ms)), place


@kernel
def _charge_time(loop: ClosedLoop, row: int, size: int, now_ms: int) -> int:
    """Charge the thread's time, of a part of a Fetch in proportion, and only the first time; return the throttle in ms."""
    requests = loop.requests
    if not is_timed(requests, row):
        return 0
    percent = requests.percents[row]
    if size < requests.sizes[row]:
        percent = percent * (size / requests.sizes[row])
    if loop.progress.timed[row] == 1:
        percent = 0.0
    loop.progress.timed[row] = 1
    most_ms = min(loop.rules.window_ms, loop.scale.longest_ms)
    return _charge(loop, row, REQUEST, percent, now_ms, most_ms)[0]


@kernel
def _charge_mutation(loop: ClosedLoop, row: int, now_ms: int) -> tuple[int, bool]:
    requests = loop.requests
    pair = requests.pairs[row]
    bucket = loop.rules.sensors[MUTATION * loop.scale.pairs + pair]
    if bucket < 0:
        return 0, False
    permits = float(requests.sizes[row])
    if loop.rules.policy == BURST_SPREADING:
        throttle_ms, refused = spread(loop.spreads, bucket, permits, now_ms, STRICT)
    else:
        treatment = PERMISSIVE if requests.permissive[row] == 1 else STRICT
        throttle_ms, refused = take(loop.buckets, bucket, permits, now_ms, treatment)
    if refused:
        book_refusal(loop.ledger, pair, requests.sizes[row])
    return low_bits(throttle_ms), refused


@kernel
def _throttle(loop: ClosedLoop, row: int, now_ms: int, verdict: Verdict) -> None:
    pair, kind = loop.requests.pairs[row], verdict.throttled_by
    book_throttle(loop.ledger, pair, kind, now_ms, verdict.throttle_ms)
    book_mutes(loop.ledger, pair, now_ms, now_ms + verdict.throttle_ms, 1)
    if loop.requests.kinds[row] == FETCH:
        if verdict.place >= 0:
            loop.windows.sums[verdict.place] += -float(verdict.size)
        _note_delay(loop, row, kind)


@kernel
def _note_delay(loop: ClosedLoop, row: int, kind: int) -> None:
    if loop.progress.held[row] == 1:
        return
    loop.progress.held[row] = 1
    requests = loop.requests
    size = requests.sizes[row] if requests.kinds[row] != MUTATION else 0
    book_delay(loop.ledger, requests.pairs[row], kind, size)


@kernel
def _go_on(loop: ClosedLoop, row: int, now_ms: int, verdict: Verdict) -> None:
    """Say what the connection does next."""
    heap, left = loop.progress.heap, loop.progress.left
    throttled = verdict.throttled_by != NO_KIND
    fetches = loop.requests.kinds[row] == FETCH
    mute_ms = verdict.throttle_ms
    if throttled or verdict.refused:
        mute_ms += loop.connections.reactions[loop.requests.connections[row]]
    if verdict.refused or (fetches and throttled):
        push(heap, now_ms + mute_ms, row)
        return
    if fetches and left[row] > verdict.size:
        left[row] -= verdict.size
        loop.progress.timed[row] = 0
        push(heap, now_ms, row)
        return
    if loop.connections.networks[row] > 0.0:
        later_ms = now_ms + loop.connections.network_waits[row]
        push(heap, later_ms, len(loop.requests.times) + row)
    following = loop.connections.followers[row]
    if following >= 0:
        think_ms = loop.connections.thinks[row]
        if throttled and verdict.throttle_ms > think_ms:
            _note_delay(loop, following, verdict.throttled_by)
        push(heap, now_ms + max(think_ms, mute_ms), following)


@kernel
def _give_up(loop: ClosedLoop, row: int) -> None:
    """Count a request and all that follow it on its connection as not sent."""
    requests = loop.requests
    while row >= 0:
        kind = requests.kinds[row]
        size = loop.progress.left[row] if kind != MUTATION else 0
        if kind != NO_KIND:
            _book_unsent(loop, row, kind, size)
        if is_timed(requests, row):
            _book_unsent(loop, row, REQUEST, size)
        row = loop.connections.followers[row]


@kernel
def _book_unsent(loop: ClosedLoop, row: int, kind: int, size: int) -> None:
    pair = loop.requests.pairs[row]
    cell = cell_of(pair, kind)
    loop.ledger.cells[cell + UNSENT] += 1
    loop.ledger.cells[cell + UNSENT_BYTES] += size
