"""
What a replay keeps count of, for each candidate, pair of broker and entity, and quota type (`whatif.results` says what it means).

A request only costs time here when some candidate throttles it, or when something of an earlier throttle is still going on.
"""

from typing import Final, NamedTuple

import numpy as np

from .compiled import Codes, Flags, Ints, kernel
from .requests import KINDS, MUTATION, NO_KIND, REQUEST, Scale
from .rounding import natural

UNSENT: Final = 0
UNSENT_BYTES: Final = 1
REJECTED: Final = 2
REJECTED_MUTATIONS: Final = 3
IDLE_MUTED_MS: Final = 4
"""What of the muted time lies outside the entity's activity."""
THROTTLED: Final = 5
THROTTLED_MS: Final = 6
MUTED_MS: Final = 7
DELAYED: Final = 8
DELAYED_BYTES: Final = 9
SUMS: Final = 10
"""Fields below are added up where several pairs are told together; the others tell the largest."""
LONGEST_MS: Final = 10
RECOVERY_MS: Final = 11
TOLD: Final = 12
"""Fields below are told; the others say what is going on."""
MUTE_END: Final = 12
BURST_START: Final = 13
FIELDS: Final = 14
"""Those that a throttle changes stand together."""

ACTIVITY_MS: Final = 1000
"""How long a request keeps its entity active."""

ACTIVE_MS: Final = 0
ACTIVE_END: Final = 1
LATEST_MUTE: Final = 2
BURSTING: Final = 3
"""Candidates from this rank on have no burst going on for this pair; of the open loop."""
MUTING: Final = 4
"""Candidates from this rank on do not mute this pair any more."""
PAIR_FIELDS: Final = 5


class Ledger(NamedTuple):
    """
    Flat tables; `FIELDS` numbers for each pair, rank of a candidate and kind, `PAIR_FIELDS` for each pair.

    What all candidates keep of a pair or a connection stands together by rank, since a request walks along them.
    """

    cells: Ints
    pairs: Ints
    bursts: Flags
    """By pair and rank: a bit for each kind with a burst going on."""
    late: Ints
    """By pair and rank, ms; of the closed loop."""
    mute_ends: Ints
    """By connection and rank, epoch ms."""
    mute_kinds: Flags
    """The quota type that muted it."""
    latest: Ints
    """By connection: from when on no candidate mutes it."""
    muting: Codes
    """By connection: candidates from this rank on do not mute it, until a request of it is entered again."""


Ledger.WRITTEN = True  # type: ignore[attr-defined]


def new_ledger(scale: Scale) -> Ledger:
    """Return a ledger with nothing in it."""
    connections = scale.candidates * scale.connections
    return Ledger(
        cells=np.zeros(scale.candidates * scale.pairs * KINDS * FIELDS, np.int64),
        pairs=np.zeros(scale.pairs * PAIR_FIELDS, np.int64),
        bursts=np.zeros(scale.candidates * scale.pairs, np.int8),
        late=np.zeros(scale.candidates * scale.pairs, np.int64),
        mute_ends=np.zeros(connections, np.int64),
        mute_kinds=np.zeros(connections, np.int8),
        latest=np.zeros(scale.connections, np.int64),
        muting=np.zeros(scale.connections, np.int32),
    )


@kernel
def trial_of(scale: Scale, rank: int, pair: int) -> int:
    """Return the number of a pair under a candidate."""
    return natural(pair * scale.candidates) + rank


@kernel
def cell_of(trial: int, kind: int) -> int:
    """Return where the figures of a pair under a candidate begin, for one kind."""
    return natural(trial * KINDS + kind) * FIELDS


@kernel
def book_activity(ledger: Ledger, scale: Scale, pair: int, now_ms: int) -> None:
    """Count the entity as active from now on; what muted it since it was last active lies outside its activity."""
    base = pair * PAIR_FIELDS
    end_ms = ledger.pairs[base + ACTIVE_END]
    if now_ms > end_ms:
        if ledger.pairs[base + LATEST_MUTE] > end_ms:
            for rank in range(ledger.pairs[base + MUTING]):
                trial = trial_of(scale, rank, pair)
                _book_idle_mutes(ledger, trial, end_ms, now_ms)
        end_ms = now_ms
    gain_ms = now_ms + ACTIVITY_MS - end_ms
    if gain_ms > 0:
        ledger.pairs[base + ACTIVE_MS] += gain_ms
        ledger.pairs[base + ACTIVE_END] = end_ms + gain_ms


@kernel
def _book_idle_mutes(ledger: Ledger, trial: int, end_ms: int, now_ms: int) -> None:
    for kind in range(KINDS):
        cell = cell_of(trial, kind)
        until_ms = min(ledger.cells[cell + MUTE_END], now_ms)
        if until_ms > end_ms:
            ledger.cells[cell + IDLE_MUTED_MS] += until_ms - end_ms


@kernel
def book_throttle(
    ledger: Ledger, trial: int, kind: int, now_ms: int, throttle_ms: int
) -> None:
    """Count a throttled request of a pair under a candidate."""
    cells, cell = ledger.cells, cell_of(trial, kind)
    cells[cell + THROTTLED] += 1
    cells[cell + THROTTLED_MS] += throttle_ms
    cells[cell + LONGEST_MS] = max(cells[cell + LONGEST_MS], throttle_ms)
    end_ms = now_ms + throttle_ms
    muted_to_ms = cells[cell + MUTE_END]
    cells[cell + MUTED_MS] += max(0, end_ms - max(now_ms, muted_to_ms))
    cells[cell + MUTE_END] = max(end_ms, muted_to_ms)
    bursts = ledger.bursts[trial]
    if bursts & (1 << kind) == 0:
        ledger.bursts[trial] = bursts | (1 << kind)
        cells[cell + BURST_START] = now_ms


@kernel
def _book_free(ledger: Ledger, trial: int, kind: int, now_ms: int) -> None:
    """Take notice of a request that charges a quota and is not throttled: a burst is over."""
    bursts = ledger.bursts[trial]
    if bursts & (1 << kind) == 0:
        return
    cells, cell = ledger.cells, cell_of(trial, kind)
    took_ms = now_ms - cells[cell + BURST_START]
    cells[cell + RECOVERY_MS] = max(cells[cell + RECOVERY_MS], took_ms)
    ledger.bursts[trial] = bursts & ~(1 << kind)


@kernel
def enter_free(
    ledger: Ledger,
    trial: int,
    kind: int,
    timed: bool,  # noqa: FBT001 - kernels take arguments by position
    now_ms: int,
) -> None:
    """Take notice of a request that nothing throttles: it ends the bursts of the quotas that it is charged to."""
    if ledger.bursts[trial] == 0:
        return
    if kind != NO_KIND:
        _book_free(ledger, trial, kind, now_ms)
    if timed:
        _book_free(ledger, trial, REQUEST, now_ms)


@kernel
def book_mutes(
    ledger: Ledger, pair: int, now_ms: int, end_ms: int, muting: int
) -> None:
    """Note until when a pair is muted under the candidates before a rank, at most; not at all where that is now."""
    base = pair * PAIR_FIELDS
    if now_ms < ledger.pairs[base + LATEST_MUTE]:
        muting = max(muting, ledger.pairs[base + MUTING])
    ledger.pairs[base + MUTING] = muting
    ledger.pairs[base + LATEST_MUTE] = max(ledger.pairs[base + LATEST_MUTE], end_ms)


@kernel
def book_delay(ledger: Ledger, trial: int, kind: int, size: int) -> None:
    """Count a request that had to wait."""
    cell = cell_of(trial, kind)
    ledger.cells[cell + DELAYED] += 1
    ledger.cells[cell + DELAYED_BYTES] += size


@kernel
def book_refusal(ledger: Ledger, trial: int, permits: int) -> None:
    """Count a refused mutation."""
    cell = cell_of(trial, MUTATION)
    ledger.cells[cell + REJECTED] += 1
    ledger.cells[cell + REJECTED_MUTATIONS] += permits


@kernel
def stronger(kind: int, own_ms: int, request_ms: int) -> int:
    """Return the quota type that throttles, `NO_KIND` if none does (`metrics.combination`)."""
    if max(own_ms, request_ms) <= 0:
        return NO_KIND
    return kind if own_ms > request_ms else REQUEST


@kernel
def close(ledger: Ledger, scale: Scale) -> None:
    """Cut mutes at the end of activity, and end bursts that nobody saw the end of with their last mute."""
    for pair in range(scale.pairs):
        end_ms = ledger.pairs[pair * PAIR_FIELDS + ACTIVE_END]
        for rank in range(scale.candidates):
            for kind in range(KINDS):
                _close(ledger, trial_of(scale, rank, pair), kind, end_ms)


@kernel
def _close(ledger: Ledger, trial: int, kind: int, end_ms: int) -> None:
    cells, cell = ledger.cells, cell_of(trial, kind)
    _book_free(ledger, trial, kind, cells[cell + MUTE_END])
    if cells[cell + MUTE_END] > end_ms:
        cells[cell + MUTED_MS] -= cells[cell + MUTE_END] - end_ms
        cells[cell + MUTE_END] = end_ms
