"""
Open loop: everything arrives as logged, and each candidate only compares.

The measurements are there already, once for all candidates that share sensors (`rate.observe`); mutation quotas have decided
(`mutations.decide_mutations`), since what they hold depends on the limit.
"""

from typing import NamedTuple

from .compiled import kernel
from .ledger import (
    BURSTING,
    PAIR_FIELDS,
    Ledger,
    book_activity,
    book_delay,
    book_mutes,
    book_refusal,
    book_throttle,
    enter_free,
    stronger,
    trial_of,
)
from .rate import Measured
from .requests import (
    FETCH,
    MUTATION,
    NO_KIND,
    REQUEST,
    Asked,
    Limits,
    Outcomes,
    Requests,
    Scale,
    asked,
)
from .rounding import low_bits, natural
from .throttle import rate_throttle


class OpenLoop(NamedTuple):
    """All that the fold needs."""

    requests: Requests
    measured: Measured
    """One table of all requests for each slot."""
    outcomes: Outcomes
    limits: Limits
    ledger: Ledger
    scale: Scale


@kernel
def fold(loop: OpenLoop) -> None:
    """Enter every request under every candidate that may throttle it, or for which something of an earlier throttle is going on."""
    for row in range(len(loop.requests.times)):
        request = asked(loop.requests, row)
        book_activity(loop.ledger, loop.scale, request.pair, request.time)
        stop = _stop(loop, request, _going_on(loop.ledger, request))
        if stop > 0:
            _enter_all(loop, request, stop)


@kernel
def _going_on(ledger: Ledger, request: Asked) -> int:
    """Return the first rank from which on nothing of an earlier throttle matters to the request."""
    bursting: int = ledger.pairs[request.pair * PAIR_FIELDS + BURSTING]
    if request.time >= ledger.latest[request.connection]:
        return bursting
    muting: int = ledger.muting[request.connection]
    return max(bursting, muting)


@kernel
def _enter_all(loop: OpenLoop, request: Asked, stop: int) -> None:
    """Enter a request under the candidates before a rank, and note which of them it leaves with something going on."""
    ledger = loop.ledger
    bursting, muting, latest_ms = 0, 0, request.time
    for rank in range(stop):
        end_ms = _enter(loop, request, rank)
        if ledger.bursts[trial_of(loop.scale, rank, request.pair)] != 0:
            bursting = rank + 1
        if end_ms > request.time:
            muting = rank + 1
            latest_ms = max(latest_ms, end_ms)
    ledger.pairs[request.pair * PAIR_FIELDS + BURSTING] = bursting
    ledger.muting[request.connection] = muting
    ledger.latest[request.connection] = latest_ms
    book_mutes(ledger, request.pair, request.time, latest_ms, muting)


@kernel
def _stop(loop: OpenLoop, request: Asked, rank: int) -> int:
    """Return the first rank, not before the given one, from which on no candidate throttles the request."""
    candidates = loop.scale.candidates
    if request.kind == MUTATION:
        number = loop.outcomes.numbers[request.row]
        if loop.outcomes.noted[number] == 1:
            return candidates
    bytes_rate, time_rate = _highest(loop, request.row)
    own = _limits_at(loop.scale, max(request.kind, 0), request.pair)
    time = _limits_at(loop.scale, REQUEST, request.pair)
    lowest = loop.limits.lowest
    while rank < candidates and (
        bytes_rate > lowest[own + rank] or time_rate > lowest[time + rank]
    ):
        rank += 1
    return rank


@kernel
def _limits_at(scale: Scale, kind: int, pair: int) -> int:
    """Return where the limits of a pair for one kind begin."""
    return natural((kind * scale.pairs + pair) * scale.candidates)


@kernel
def _highest(loop: OpenLoop, row: int) -> tuple[float, float]:
    """Return the highest rate of bytes and of thread time that is measured at a request, whatever the candidate."""
    bytes_rate, time_rate = 0.0, 0.0
    for slot in range(loop.scale.slots):
        rate = loop.measured.rates[natural(slot * len(loop.requests.times)) + row]
        if loop.limits.kinds[slot] == REQUEST:
            time_rate = max(time_rate, rate)
        else:
            bytes_rate = max(bytes_rate, rate)
    return bytes_rate, time_rate


@kernel
def own_throttle(loop: OpenLoop, request: Asked, rank: int) -> int:
    """Return the throttle that the quota beside the request quota asks for, ms."""
    if request.kind == NO_KIND:
        return 0
    if request.kind == MUTATION:
        number = loop.outcomes.numbers[request.row]
        place = loop.limits.ranks[rank] * loop.scale.mutations + number
        decided: int = loop.outcomes.throttles[place]
        return decided
    return _of_rate(loop, request, rank, request.kind, loop.scale.longest_ms)


@kernel
def request_throttle(loop: OpenLoop, request: Asked, rank: int) -> int:
    """Return the throttle that the request quota asks for, ms: at most one window (KIP-124)."""
    if not request.timed:
        return 0
    most_ms = min(loop.limits.longest[rank], loop.scale.longest_ms)
    return _of_rate(loop, request, rank, REQUEST, most_ms)


@kernel
def _of_rate(loop: OpenLoop, request: Asked, rank: int, kind: int, most_ms: int) -> int:
    own = _limits_at(loop.scale, kind, request.pair)
    limit = loop.limits.limits[own + rank]
    slot = loop.limits.slots[natural(kind * loop.scale.candidates) + rank]
    place = natural(slot * len(loop.requests.times) + request.row)
    rate, span = loop.measured.rates[place], loop.measured.spans[place]
    return low_bits(rate_throttle(rate, limit, span, most_ms))


@kernel
def _enter(loop: OpenLoop, request: Asked, rank: int) -> int:
    """Enter one request under one candidate, and return until when its connection is muted, epoch ms."""
    ledger, kind = loop.ledger, request.kind
    trial = trial_of(loop.scale, rank, request.pair)
    channel = natural(request.connection * loop.scale.candidates) + rank
    muted_to_ms: int = ledger.mute_ends[channel]
    held = request.time < muted_to_ms
    if held:
        size = request.size if kind != MUTATION else 0
        book_delay(ledger, trial, ledger.mute_kinds[channel], size)
    if kind == MUTATION:
        _enter_refusal(loop, request, rank)
    own_ms = own_throttle(loop, request, rank)
    request_ms = request_throttle(loop, request, rank)
    throttled_by = stronger(kind, own_ms, request_ms)
    if throttled_by == NO_KIND:
        enter_free(ledger, trial, kind, request.timed, request.time)
        return muted_to_ms
    throttle_ms = max(own_ms, request_ms)
    book_throttle(ledger, trial, throttled_by, request.time, throttle_ms)
    if kind == FETCH and not held:
        book_delay(ledger, trial, throttled_by, request.size)
    end_ms = request.time + throttle_ms
    if end_ms > muted_to_ms:
        ledger.mute_ends[channel] = end_ms
        ledger.mute_kinds[channel] = throttled_by
    return max(end_ms, muted_to_ms)


@kernel
def _enter_refusal(loop: OpenLoop, request: Asked, rank: int) -> None:
    outcomes, number = loop.outcomes, loop.outcomes.numbers[request.row]
    place = loop.limits.ranks[rank] * loop.scale.mutations + number
    if outcomes.refused[place] == 1:
        size = request.size
        if outcomes.granted[number] > 0 and outcomes.refused[place - 1] == 0:
            size -= outcomes.granted[number]
        trial = trial_of(loop.scale, rank, request.pair)
        book_refusal(loop.ledger, trial, size)
