"""
Counts of a replay for each candidate, pair of entity and broker, and quota type; `results` gives their meaning.

A *trial* is a pair under a candidate. A *cell* has the figures of a trial for one quota type. A *burst* of a cell lasts
from its first throttled request to the first one that is not throttled. A candidate's *rank* is its index among the
candidates, sorted from the strictest on.

A request only costs time here when some candidate throttles it, or when an earlier throttle still has an effect.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from .compiled import Codes, Flags, Ints, kernel, natural, run
from .frame import KINDS, MUTATION, NO_KIND, REQUEST, TableSizes

UNSENT: Final = 0
UNSENT_BYTES: Final = 1
REFUSED: Final = 2
REFUSED_MUTATIONS: Final = 3
IDLE_MUTED_MS: Final = 4
"""Muted time outside the entity's activity."""
THROTTLED: Final = 5
THROTTLED_MS: Final = 6
MUTED_MS: Final = 7
DELAYED: Final = 8
DELAYED_BYTES: Final = 9
SUMS: Final = 10
"""
Number of the first fields, which are added up if several pairs make one row of results.

Of the other fields of the results, a row has the largest value.
"""
LONGEST_MS: Final = 10
RECOVERY_MS: Final = 11
RESULT_FIELDS: Final = 12
"""Number of the fields that are in the results; the fields after them are the state of the replay."""
MUTE_END: Final = 12
"""End of the latest mute, epoch ms."""
BURST_START: Final = 13
"""Time of the first throttled request of the open burst, epoch ms."""
BURST_END: Final = 14
"""Time when the quota would stop to throttle if the entity sent nothing, epoch ms."""
FIELDS: Final = 15
"""Number of all fields of a cell."""

ACTIVITY_MS: Final = 1000
"""Time for which a request keeps its entity active."""

ACTIVE_MS: Final = 0
"""Time for which the pair was active."""
ACTIVE_END: Final = 1
"""End of the pair's activity, epoch ms."""
LATEST_MUTE: Final = 2
"""Latest end of a mute under any candidate, epoch ms."""
BURSTING: Final = 3
"""First rank from which on no candidate has an open burst of this pair; only for the open loop."""
MUTING: Final = 4
"""First rank from which on no candidate mutes this pair."""
PAIR_FIELDS: Final = 5
"""Number of fields of a pair."""


class ReplayLedger(NamedTuple):
    """
    Flat tables of a replay.

    Figures of all candidates for a pair or a connection stand together, in the order of ranks, since a request is
    entered under one candidate after the other.
    """

    cells: Ints
    """`FIELDS` numbers for each pair, rank and kind."""
    pairs: Ints
    """`PAIR_FIELDS` numbers for each pair."""
    bursts: Flags
    """Bit for each kind with an open burst, by pair and rank."""
    late: Ints
    """Largest delay against the log by pair and rank, ms; only for the closed loop."""
    mute_ends: Ints
    """End of the mute by connection and rank, epoch ms."""
    mute_kinds: Flags
    """Quota type that caused the mute, by connection and rank."""
    latest: Ints
    """Time by connection from which on no candidate mutes it, epoch ms."""
    muting: Codes
    """First rank by connection from which on no candidate mutes it, as of its last entered request."""


ReplayLedger.WRITTEN = True  # type: ignore[attr-defined]


def new_ledger(sizes: TableSizes) -> ReplayLedger:
    """Return an empty ledger."""
    connections = sizes.candidates * sizes.connections
    return ReplayLedger(
        cells=np.zeros(sizes.candidates * sizes.pairs * KINDS * FIELDS, np.int64),
        pairs=np.zeros(sizes.pairs * PAIR_FIELDS, np.int64),
        bursts=np.zeros(sizes.candidates * sizes.pairs, np.int8),
        late=np.zeros(sizes.candidates * sizes.pairs, np.int64),
        mute_ends=np.zeros(connections, np.int64),
        mute_kinds=np.zeros(connections, np.int8),
        latest=np.zeros(sizes.connections, np.int64),
        muting=np.zeros(sizes.connections, np.int32),
    )


@kernel
def trial_of(sizes: TableSizes, rank: int, pair: int) -> int:
    """Return the number of the trial of a pair under a candidate."""
    return natural(pair * sizes.candidates) + rank


@kernel
def cell_of(trial: int, kind: int) -> int:
    """Return the index of the first field of a trial's cell for one kind."""
    return natural(trial * KINDS + kind) * FIELDS


@kernel
def book_activity(ledger: ReplayLedger, sizes: TableSizes, pair: int, now_ms: int) -> None:
    """Count the pair as active for `ACTIVITY_MS` from now on, and mutes since it was last active as outside of that."""
    base = pair * PAIR_FIELDS
    end_ms = ledger.pairs[base + ACTIVE_END]
    if now_ms > end_ms:  # the pair was idle in between: count how long each candidate muted it in that time
        if ledger.pairs[base + LATEST_MUTE] > end_ms:
            for rank in range(ledger.pairs[base + MUTING]):
                for kind in range(KINDS):
                    cell = cell_of(trial_of(sizes, rank, pair), kind)
                    until_ms = min(ledger.cells[cell + MUTE_END], now_ms)
                    if until_ms > end_ms:
                        ledger.cells[cell + IDLE_MUTED_MS] += until_ms - end_ms
        end_ms = now_ms
    gain_ms = now_ms + ACTIVITY_MS - end_ms
    if gain_ms > 0:
        ledger.pairs[base + ACTIVE_MS] += gain_ms
        ledger.pairs[base + ACTIVE_END] = end_ms + gain_ms


@kernel
def end_burst(ledger: ReplayLedger, trial: int, kind: int, before_ms: int) -> None:
    """Close a burst that ended before a time, epoch ms, so that a throttle at that time begins another one."""
    if ledger.cells[cell_of(trial, kind) + BURST_END] < before_ms:
        _close_burst(ledger, trial, kind, before_ms)


@kernel
def book_throttle(
    ledger: ReplayLedger, trial: int, kind: int, now_ms: int, throttle_ms: int, silence_ms: int
) -> None:  # fmt: skip
    """
    Count a throttled request of a trial.

    Without further requests the quota would throttle for `throttle_ms` or `silence_ms`, the longer of them.
    """
    cells, cell = ledger.cells, cell_of(trial, kind)
    cells[cell + THROTTLED] += 1
    cells[cell + THROTTLED_MS] += throttle_ms
    cells[cell + LONGEST_MS] = max(cells[cell + LONGEST_MS], throttle_ms)
    end_ms = now_ms + throttle_ms
    muted_to_ms = cells[cell + MUTE_END]
    # only the time after the end of earlier mutes, as overlapping ones count once
    cells[cell + MUTED_MS] += max(0, end_ms - max(now_ms, muted_to_ms))
    cells[cell + MUTE_END] = max(end_ms, muted_to_ms)
    bursts = ledger.bursts[trial]
    if bursts & (1 << kind) == 0:
        ledger.bursts[trial] = bursts | (1 << kind)
        cells[cell + BURST_START] = now_ms
    cells[cell + BURST_END] = max(cells[cell + MUTE_END], now_ms + silence_ms)


@kernel
def _close_burst(ledger: ReplayLedger, trial: int, kind: int, now_ms: int) -> None:
    """Close the open burst of a cell, if any, at a request that is not throttled, or at its end if that is earlier."""
    bursts = ledger.bursts[trial]
    if bursts & (1 << kind) == 0:
        return
    cells, cell = ledger.cells, cell_of(trial, kind)
    took_ms = min(now_ms, cells[cell + BURST_END]) - cells[cell + BURST_START]
    cells[cell + RECOVERY_MS] = max(cells[cell + RECOVERY_MS], took_ms)
    ledger.bursts[trial] = bursts & ~(1 << kind)


@kernel
def book_unthrottled(
    ledger: ReplayLedger,
    trial: int,
    kind: int,
    timed: bool,  # noqa: FBT001 - kernels take arguments by position
    now_ms: int,
) -> None:
    """Close the bursts of the quotas that an unthrottled request is charged to: `kind`, and `REQUEST` if `timed`."""
    if ledger.bursts[trial] == 0:
        return
    if kind != NO_KIND:
        _close_burst(ledger, trial, kind, now_ms)
    if timed:
        _close_burst(ledger, trial, REQUEST, now_ms)


@kernel
def book_mutes(ledger: ReplayLedger, pair: int, now_ms: int, end_ms: int, muting: int) -> None:
    """Set the latest end of the mutes of a pair, and the first rank from which on no candidate mutes it."""
    base = pair * PAIR_FIELDS
    if now_ms < ledger.pairs[base + LATEST_MUTE]:
        muting = max(muting, ledger.pairs[base + MUTING])
    ledger.pairs[base + MUTING] = muting
    ledger.pairs[base + LATEST_MUTE] = max(ledger.pairs[base + LATEST_MUTE], end_ms)


@kernel
def book_delay(ledger: ReplayLedger, trial: int, kind: int, size: int) -> None:
    """Count a delayed request."""
    cell = cell_of(trial, kind)
    ledger.cells[cell + DELAYED] += 1
    ledger.cells[cell + DELAYED_BYTES] += size


@kernel
def book_refusal(ledger: ReplayLedger, trial: int, permits: int) -> None:
    """Count a refused mutation."""
    cell = cell_of(trial, MUTATION)
    ledger.cells[cell + REFUSED] += 1
    ledger.cells[cell + REFUSED_MUTATIONS] += permits


@kernel
def stronger(kind: int, own_ms: int, request_ms: int) -> int:
    """Return the quota type that throttles, `NO_KIND` if none does (`metrics.engine.combination`)."""
    if max(own_ms, request_ms) <= 0:
        return NO_KIND
    return kind if own_ms > request_ms else REQUEST


@kernel
def _close(ledger: ReplayLedger, sizes: TableSizes) -> None:
    """Cut mutes at the end of activity, and end the bursts that are still open."""
    cells = ledger.cells
    for pair in range(sizes.pairs):
        end_ms = ledger.pairs[pair * PAIR_FIELDS + ACTIVE_END]
        for rank in range(sizes.candidates):
            trial = trial_of(sizes, rank, pair)
            for kind in range(KINDS):
                cell = cell_of(trial, kind)
                _close_burst(ledger, trial, kind, cells[cell + BURST_END])
                if cells[cell + MUTE_END] > end_ms:
                    cells[cell + MUTED_MS] -= cells[cell + MUTE_END] - end_ms
                    cells[cell + MUTE_END] = end_ms


class Booked(NamedTuple):
    """Counts of a replay that is over."""

    cells: Ints
    """Figures by pair, rank, kind and field; the first `RESULT_FIELDS` fields of a cell are those of the results."""
    late: Ints
    """Largest delay against the log by pair and rank, ms."""
    active: Ints
    """Active time by pair and rank, ms."""
    ranks: Codes
    """Rank by candidate."""


def booked_of(ledger: ReplayLedger, sizes: TableSizes, candidates: Codes) -> Booked:
    """Close a ledger, and return its figures; `candidates` has the number of the candidate by rank."""
    run(_close, ledger, sizes, work=len(ledger.cells))
    active = ledger.pairs.reshape(sizes.pairs, PAIR_FIELDS)[:, ACTIVE_MS]
    return Booked(
        cells=ledger.cells,
        late=ledger.late,
        active=np.repeat(active, sizes.candidates),
        ranks=np.argsort(candidates).astype(np.int32),
    )


def joined(parts: Sequence[Booked], pairs: int) -> Booked:
    """Return the figures of several replays, of one candidate each, as those of one replay of all candidates."""

    def by_pair(columns: Iterable[Ints]) -> Ints:
        """Return the figures of all candidates together, by pair and then by candidate."""
        by_candidate = [column.reshape(pairs, -1) for column in columns]
        return np.concatenate(by_candidate, axis=1).ravel()

    return Booked(
        cells=by_pair(part.cells for part in parts),
        late=by_pair(part.late for part in parts),
        active=by_pair(part.active for part in parts),
        ranks=np.arange(len(parts), dtype=np.int32),
    )
