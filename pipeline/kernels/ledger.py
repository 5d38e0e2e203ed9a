"""
What a replay keeps count of, for each candidate, pair of broker and entity, and quota type (`whatif.results` says what it means).

A request only costs time here when some candidate throttles it, or when something of an earlier throttle is still going on.
"""

from typing import Final, NamedTuple

import numpy as np

from .compiled import Flags, Ints, kernel
from .requests import KINDS, NO_KIND, REQUEST, Scale

THROTTLED: Final = 0
THROTTLED_MS: Final = 1
LONGEST_MS: Final = 2
MUTED_MS: Final = 3
IDLE_MUTED_MS: Final = 4
"""What of it lies outside the entity's activity."""
MUTE_END: Final = 5
DELAYED: Final = 6
DELAYED_BYTES: Final = 7
REJECTED: Final = 8
REJECTED_MUTATIONS: Final = 9
RECOVERY_MS: Final = 10
IN_EPISODE: Final = 11
EPISODE_START: Final = 12
UNSENT: Final = 13
UNSENT_BYTES: Final = 14
FIELDS: Final = 15

ACTIVITY_MS: Final = 1000
"""How long a request keeps its entity active."""

ACTIVE_MS: Final = 0
ACTIVE_END: Final = 1
LATEST_MUTE: Final = 2
OPEN_EPISODES: Final = 3
TOUCHED: Final = 4
"""Candidates from this rank on have neither a mute nor a burst going on for this pair."""
PAIR_FIELDS: Final = 5


class Ledger(NamedTuple):
    """
    Flat tables; `FIELDS` numbers for each pair, candidate and kind, `PAIR_FIELDS` for each pair.

    What all candidates keep of a pair or a connection stands together, since a request is entered under all of them.
    """

    cells: Ints
    pairs: Ints
    late: Ints
    """By candidate and pair, ms."""
    mute_ends: Ints
    """By connection and candidate, epoch ms."""
    mute_kinds: Flags
    """The quota type that muted it."""
    latest: Ints
    """By connection: the end of the longest mute under any candidate."""


Ledger.WRITTEN = True  # type: ignore[attr-defined]


def new_ledger(scale: Scale) -> Ledger:
    """Return a ledger with nothing in it."""
    connections = scale.candidates * scale.connections
    return Ledger(
        cells=np.zeros(scale.candidates * scale.pairs * KINDS * FIELDS, np.int64),
        pairs=np.zeros(scale.pairs * PAIR_FIELDS, np.int64),
        late=np.zeros(scale.candidates * scale.pairs, np.int64),
        mute_ends=np.zeros(connections, np.int64),
        mute_kinds=np.zeros(connections, np.int8),
        latest=np.zeros(scale.connections, np.int64),
    )


@kernel
def cell_of(scale: Scale, candidate: int, pair: int, kind: int) -> int:
    """Return where the figures of a candidate, pair and kind begin."""
    return ((pair * scale.candidates + candidate) * KINDS + kind) * FIELDS


@kernel
def book_activity(ledger: Ledger, scale: Scale, pair: int, now_ms: int) -> None:
    """Count the entity as active from now on; what muted it since it was last active lies outside its activity."""
    base = pair * PAIR_FIELDS
    end_ms = ledger.pairs[base + ACTIVE_END]
    if now_ms > end_ms:
        if ledger.pairs[base + LATEST_MUTE] > end_ms:
            for candidate in range(scale.candidates):
                _book_idle_mutes(ledger, scale, candidate, pair, now_ms)
        end_ms = now_ms
    gain_ms = now_ms + ACTIVITY_MS - end_ms
    if gain_ms > 0:
        ledger.pairs[base + ACTIVE_MS] += gain_ms
        ledger.pairs[base + ACTIVE_END] = end_ms + gain_ms


@kernel
def _book_idle_mutes(
    ledger: Ledger, scale: Scale, candidate: int, pair: int, now_ms: int
) -> None:
    end_ms = ledger.pairs[pair * PAIR_FIELDS + ACTIVE_END]
    for kind in range(KINDS):
        cell = cell_of(scale, candidate, pair, kind)
        until_ms = min(ledger.cells[cell + MUTE_END], now_ms)
        if until_ms > end_ms:
            ledger.cells[cell + IDLE_MUTED_MS] += until_ms - end_ms


@kernel
def book_throttle(
    ledger: Ledger, cell: int, pair: int, now_ms: int, throttle_ms: int
) -> None:
    """Count a throttled request."""
    cells = ledger.cells
    cells[cell + THROTTLED] += 1
    cells[cell + THROTTLED_MS] += throttle_ms
    cells[cell + LONGEST_MS] = max(cells[cell + LONGEST_MS], throttle_ms)
    end_ms = now_ms + throttle_ms
    muted_ms = end_ms - max(now_ms, cells[cell + MUTE_END])
    if muted_ms > 0:
        cells[cell + MUTED_MS] += muted_ms
        cells[cell + MUTE_END] = end_ms
    latest = pair * PAIR_FIELDS + LATEST_MUTE
    ledger.pairs[latest] = max(ledger.pairs[latest], end_ms)
    if cells[cell + IN_EPISODE] == 0:
        cells[cell + IN_EPISODE] = 1
        cells[cell + EPISODE_START] = now_ms
        ledger.pairs[pair * PAIR_FIELDS + OPEN_EPISODES] += 1


@kernel
def book_free(ledger: Ledger, cell: int, pair: int, now_ms: int) -> None:
    """Take notice of a request that charges a quota and is not throttled: a burst is over."""
    cells = ledger.cells
    if cells[cell + IN_EPISODE] == 0:
        return
    took_ms = now_ms - cells[cell + EPISODE_START]
    cells[cell + RECOVERY_MS] = max(cells[cell + RECOVERY_MS], took_ms)
    cells[cell + IN_EPISODE] = 0
    ledger.pairs[pair * PAIR_FIELDS + OPEN_EPISODES] -= 1


@kernel
def book_delay(ledger: Ledger, cell: int, size: int) -> None:
    """Count a request that had to wait."""
    ledger.cells[cell + DELAYED] += 1
    ledger.cells[cell + DELAYED_BYTES] += size


@kernel
def mute(ledger: Ledger, channel: int, connection: int, end_ms: int, kind: int) -> None:
    """Note until when a connection is muted."""
    if end_ms > ledger.mute_ends[channel]:
        ledger.mute_ends[channel] = end_ms
        ledger.mute_kinds[channel] = kind
    ledger.latest[connection] = max(ledger.latest[connection], end_ms)


@kernel
def book_refusal(ledger: Ledger, cell: int, permits: int) -> None:
    """Count a refused mutation."""
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
    for candidate in range(scale.candidates):
        for pair in range(scale.pairs):
            end_ms = ledger.pairs[pair * PAIR_FIELDS + ACTIVE_END]
            for kind in range(KINDS):
                _close_cell(ledger.cells, cell_of(scale, candidate, pair, kind), end_ms)


@kernel
def _close_cell(cells: Ints, cell: int, end_ms: int) -> None:
    if cells[cell + IN_EPISODE] == 1:
        took_ms = cells[cell + MUTE_END] - cells[cell + EPISODE_START]
        cells[cell + RECOVERY_MS] = max(cells[cell + RECOVERY_MS], took_ms)
        cells[cell + IN_EPISODE] = 0
    if cells[cell + MUTE_END] > end_ms:
        cells[cell + MUTED_MS] -= cells[cell + MUTE_END] - end_ms
        cells[cell + MUTE_END] = end_ms
