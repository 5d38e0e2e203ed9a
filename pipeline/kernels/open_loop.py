"""
Open loop: everything arrives as logged, and each candidate only compares.

The measurements are there already, once for all candidates that share sensors (`rate.observe`); mutation quotas have decided
(`mutations.decide_mutations`), since what they hold depends on the limit.
"""

from typing import NamedTuple

from .compiled import kernel
from .ledger import (
    LATEST_MUTE,
    OPEN_EPISODES,
    PAIR_FIELDS,
    TOUCHED,
    Ledger,
    book_activity,
    book_delay,
    book_free,
    book_refusal,
    book_throttle,
    cell_of,
    mute,
    stronger,
)
from .rate import Measured
from .requests import (
    FETCH,
    KINDS,
    MUTATION,
    NO_KIND,
    REQUEST,
    Limits,
    Outcomes,
    Requests,
    Scale,
)
from .rounding import LONG_MAX, narrowed
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
    ledger = loop.ledger
    for row in range(len(loop.requests.times)):
        pair = loop.requests.pairs[row]
        book_activity(ledger, loop.scale, pair, loop.requests.times[row])
        touched = pair * PAIR_FIELDS + TOUCHED
        stop = _stop(loop, row, _touched(loop, row, pair))
        for rank in range(stop):
            if enter(loop, row, loop.limits.ranks[rank]):
                ledger.pairs[touched] = max(ledger.pairs[touched], rank + 1)


@kernel
def _touched(loop: OpenLoop, row: int, pair: int) -> int:
    """Return the first rank from which on nothing of an earlier throttle matters to the request."""
    ledger, now_ms = loop.ledger, loop.requests.times[row]
    base = pair * PAIR_FIELDS
    goes_on = ledger.pairs[base + OPEN_EPISODES] > 0
    if goes_on or now_ms < ledger.latest[loop.requests.connections[row]]:
        rank: int = ledger.pairs[base + TOUCHED]
        return rank
    if now_ms >= ledger.pairs[base + LATEST_MUTE]:
        ledger.pairs[base + TOUCHED] = 0
    return 0


@kernel
def _stop(loop: OpenLoop, row: int, rank: int) -> int:
    """Return the first rank, not before the given one, from which on no candidate throttles the request."""
    kind, pair = loop.requests.kinds[row], loop.requests.pairs[row]
    candidates = loop.scale.candidates
    if kind == MUTATION and loop.outcomes.noted[loop.outcomes.numbers[row]] == 1:
        return candidates
    bytes_rate, time_rate = _highest(loop, row)
    own = (max(kind, 0) * loop.scale.pairs + pair) * candidates
    time = (REQUEST * loop.scale.pairs + pair) * candidates
    lowest = loop.limits.lowest
    while rank < candidates and (
        bytes_rate > lowest[own + rank] or time_rate > lowest[time + rank]
    ):
        rank += 1
    return rank


@kernel
def _highest(loop: OpenLoop, row: int) -> tuple[float, float]:
    """Return the highest rate of bytes and of thread time that is measured at a request, whatever the candidate."""
    bytes_rate, time_rate = 0.0, 0.0
    for slot in range(loop.scale.slots):
        rate = loop.measured.rates[slot * len(loop.requests.times) + row]
        if loop.limits.kinds[slot] == REQUEST:
            time_rate = max(time_rate, rate)
        else:
            bytes_rate = max(bytes_rate, rate)
    return bytes_rate, time_rate


@kernel
def own_throttle(loop: OpenLoop, row: int, candidate: int) -> int:
    """Return the throttle that the quota beside the request quota asks for, ms."""
    kind = loop.requests.kinds[row]
    if kind == NO_KIND:
        return 0
    if kind == MUTATION:
        number = loop.outcomes.numbers[row]
        place = candidate * loop.scale.mutations + number
        decided: int = loop.outcomes.throttles[place]
        return decided
    return _of_rate(loop, row, candidate, kind, LONG_MAX)


@kernel
def request_throttle(loop: OpenLoop, row: int, candidate: int) -> int:
    """Return the throttle that the request quota asks for, ms: at most one window (KIP-124)."""
    if not is_timed(loop.requests, row):
        return 0
    return _of_rate(loop, row, candidate, REQUEST, loop.limits.longest[candidate])


@kernel
def is_timed(requests: Requests, row: int) -> bool:
    """Whether the request quota is charged."""
    percent: float = requests.percents[row]
    return percent == percent  # noqa: PLR0124 - NaN is not


@kernel
def _of_rate(loop: OpenLoop, row: int, candidate: int, kind: int, most_ms: int) -> int:
    pair = loop.requests.pairs[row]
    own = (kind * loop.scale.pairs + pair) * loop.scale.candidates
    limit = loop.limits.limits[own + candidate]
    slot = loop.limits.slots[candidate * KINDS + kind]
    place = slot * len(loop.requests.times) + row
    rate, span = loop.measured.rates[place], loop.measured.spans[place]
    return narrowed(rate_throttle(rate, limit, span, most_ms), loop.scale.saturate == 1)


@kernel
def enter(loop: OpenLoop, row: int, candidate: int) -> bool:
    """Enter one request under one candidate, and return whether it is throttled."""
    requests, ledger = loop.requests, loop.ledger
    pair, kind = requests.pairs[row], requests.kinds[row]
    held = _enter_delay(loop, row, candidate)
    if kind == MUTATION:
        _enter_refusal(loop, row, candidate)
    own_ms = own_throttle(loop, row, candidate)
    request_ms = request_throttle(loop, row, candidate)
    throttled_by = stronger(kind, own_ms, request_ms)
    if throttled_by == NO_KIND:
        now_ms = requests.times[row]
        enter_free(requests, ledger, loop.scale, row, candidate, now_ms)
        return False
    cell = cell_of(loop.scale, candidate, pair, throttled_by)
    throttle_ms = max(own_ms, request_ms)
    book_throttle(ledger, cell, pair, requests.times[row], throttle_ms)
    if kind == FETCH and not held:
        book_delay(ledger, cell, requests.sizes[row])
    connection = requests.connections[row]
    channel = connection * loop.scale.candidates + candidate
    end_ms = requests.times[row] + throttle_ms
    mute(ledger, channel, connection, end_ms, throttled_by)
    return True


@kernel
def _enter_delay(loop: OpenLoop, row: int, candidate: int) -> bool:
    requests, ledger = loop.requests, loop.ledger
    channel = requests.connections[row] * loop.scale.candidates + candidate
    if requests.times[row] >= ledger.mute_ends[channel]:
        return False
    size = requests.sizes[row] if requests.kinds[row] != MUTATION else 0
    kind = ledger.mute_kinds[channel]
    book_delay(ledger, cell_of(loop.scale, candidate, requests.pairs[row], kind), size)
    return True


@kernel
def _enter_refusal(loop: OpenLoop, row: int, candidate: int) -> None:
    outcomes, number = loop.outcomes, loop.outcomes.numbers[row]
    place = candidate * loop.scale.mutations + number
    if outcomes.refused[place] == 1:
        pair, size = loop.requests.pairs[row], loop.requests.sizes[row]
        if outcomes.granted[number] > 0 and outcomes.refused[place - 1] == 0:
            size -= outcomes.granted[number]
        cell = cell_of(loop.scale, candidate, pair, MUTATION)
        book_refusal(loop.ledger, cell, size)


@kernel
def enter_free(
    requests: Requests,
    ledger: Ledger,
    scale: Scale,
    row: int,
    candidate: int,
    now_ms: int,
) -> None:
    """Take notice of a request that nothing throttles."""
    pair, kind = requests.pairs[row], requests.kinds[row]
    if kind != NO_KIND:
        book_free(ledger, cell_of(scale, candidate, pair, kind), pair, now_ms)
    if is_timed(requests, row):
        book_free(ledger, cell_of(scale, candidate, pair, REQUEST), pair, now_ms)
