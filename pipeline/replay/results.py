"""
Results of a replay: the call of the kernels for each part of a history, and the table made of their counts.

A throttle is counted under one quota type, as a broker decides it (`metrics.engine.combination`): the type with the
longer throttle time, and the request quota on a tie. So the figures of an entity's quota types add up.

Figures of several brokers are added up. Of longest times, the result is the largest of any broker.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import floor
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from quotascope.metrics.kafka.entities import TYPE_LABELS
from quotascope.quotas.candidates import Candidate

from ..columns import Column, array, column
from ..table import Progress
from .algorithms import Measurements
from .closed_loop import NEVER, replay_closed
from .compiled import Codes, Floats, Ints, kernel, run
from .delays import DelayedRequests, all_have_places
from .frame import KINDS, REQUEST, Frame
from .ledger import (
    DELAYED,
    DELAYED_BYTES,
    FIELDS,
    IDLE_MUTED_MS,
    LONGEST_MS,
    MUTED_MS,
    RECOVERY_MS,
    REFUSED,
    REFUSED_MUTATIONS,
    RESULT_FIELDS,
    SUMS,
    THROTTLED,
    THROTTLED_MS,
    UNSENT,
    UNSENT_BYTES,
    Booked,
)
from .open_loop import measured_by, replay_open
from .plan import LEVELS, MEASURED, TYPES, Mode, ReplayPlan, ReplaySettings, plans

RESULTS: Final = pa.schema(
    [
        column("candidate", pa.string(), "Name of the candidate."),
        column("broker", pa.string(), "The broker; null for the sum of all of them.", null=True),
        column("user", pa.string(), "Principal's name, as in history."),
        column("client_id", pa.string(), "Client id, as in history."),
        column(
            "quota_type",
            pa.string(),
            (
                f"{TYPE_LABELS}. There is a row only where the candidate limits the entity by this type and the "
                "entity charged it."
            ),
        ),
        column(
            "limit",
            pa.float64(),
            "What the candidate allows: bytes/s, percent of a thread, or partitions/s; per broker, mutations in all.",
        ),
        column(
            "level",
            pa.string(),
            "Level of the rule that decides, such as user_client; others of the entity may share its limit.",
        ),
        column("requests", pa.int64(), "Requests that charged this quota, as logged."),
        column(
            "amount",
            pa.float64(),
            "What they charged: bytes, percent-seconds of a thread (handler and network), or partitions.",
        ),
        column(
            "requests_of_unknown_size",
            pa.int64(),
            "Those of them that are Fetches which were throttled while logged and never answered, or mutations of an "
            "unknown number of partitions. They count as 0: figures of throttles are lower bounds.",
        ),
        column(
            "held_back_requests",
            pa.int64(),
            "Those of `requests` that were throttled or refused while logged, for any quota. Where there are some, "
            "the entity would use at least `amount` without that quota: figures of throttles are lower bounds.",
        ),
        column(
            "throttled_requests",
            pa.int64(),
            "Requests that this quota throttles. Closed loop: a request that is sent again counts each time.",
        ),
        column("throttled_ms", pa.int64(), "Sum of the throttle times of these requests."),
        column(
            "muted_ms",
            pa.int64(),
            (
                "Time in which this quota muted at least one connection of the entity: the union of [decision, "
                "decision + throttle) over its throttled requests, up to `active_ms`'s end."
            ),
        ),
        column(
            "active_ms",
            pa.int64(),
            (
                "Time in which the entity was active or muted: the union of [decision, decision + 1 s) over its "
                "requests and of what `muted_ms` measures, up to 1 s after the last request."
            ),
        ),
        column("throttled_share", pa.float64(), "muted_ms / active_ms, from 0 to 1; 0 without a request."),
        column("longest_throttle_ms", pa.int64(), "The longest throttle time of a request."),
        column(
            "delayed_requests",
            pa.int64(),
            (
                "Requests that had to wait for the mute of their connection that this quota had caused, and Fetches "
                "that this quota had answered empty."
            ),
        ),
        column("delayed_bytes", pa.int64(), "Bytes of these requests."),
        column(
            "refused_requests",
            pa.int64(),
            (
                "Requests refused with THROTTLING_QUOTA_EXCEEDED, clients being new enough to understand it. Closed "
                "loop: each time."
            ),
        ),
        column(
            "refused_mutations",
            pa.int64(),
            (
                "Partitions that these asked for, but for those that the log shows as granted and "
                "the candidate grants, too."
            ),
        ),
        column(
            "recovery_ms",
            pa.int64(),
            (
                "Longest time to recover after a burst: from the first throttled request to the first one of the "
                "entity that charges this quota and is not throttled by any, or, if that is earlier, to when this "
                "quota would throttle no more without requests."
            ),
        ),
        column(
            "late_ms",
            pa.int64(),
            (
                "Closed loop: how much later than logged the entity's latest request came, largest of its connections. "
                "Open loop: 0."
            ),
        ),
        column(
            "unsent_requests",
            pa.int64(),
            "Closed loop: requests that had not been sent when the replay ended (`Settings.drain_ms`). Open loop: 0.",
        ),
        column("unsent_bytes", pa.int64(), "Bytes of these requests."),
    ]
)
"""Schema with one row per candidate, entity and quota type, and per broker if requested."""

_ROUNDING: Final = 1e-9
"""Largest error of a sum of parts, by which a whole number may be missed."""
CLOSED_LOOP_ONLY: Final = ("late_ms", "unsent_requests", "unsent_bytes")
"""Columns that an open loop does not measure: 0 in its results, and unknown wherever they are shown."""

_FIELDS = {
    "throttled_requests": THROTTLED,
    "throttled_ms": THROTTLED_MS,
    "muted_ms": MUTED_MS,
    "delayed_requests": DELAYED,
    "delayed_bytes": DELAYED_BYTES,
    "refused_requests": REFUSED,
    "refused_mutations": REFUSED_MUTATIONS,
    "unsent_requests": UNSENT,
    "unsent_bytes": UNSENT_BYTES,
    "longest_throttle_ms": LONGEST_MS,
    "recovery_ms": RECOVERY_MS,
}


def replay(
    history: pa.Table,
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: ReplaySettings | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """
    Replay the requests of a history under candidates, and return rows of `RESULTS`.

    Args:
        history: rows of `pipeline.history.HISTORY` in any order, with the columns `frame.NEEDED`. It must have all rows
            of a user, or of all users that share a limit.
        candidates: candidates in the order of the results; names should differ.
        mode: reaction of arrivals to throttles.
        settings: settings; the defaults of `ReplaySettings` if they are left out.
        progress: called after each part with the number of replayed requests, and of all.

    Raises:
        PipelineError: a column is missing.

    """
    if not candidates:
        return RESULTS.empty_table()
    replay_plan = replay_open if mode is Mode.OPEN_LOOP else replay_closed
    done = 0
    parts = [RESULTS.empty_table()]
    for plan in plans(history, candidates, settings or ReplaySettings()):
        parts.append(results_of(plan, replay_plan(plan)))
        done += len(plan.frame.groups)
        if progress is not None:
            progress(done, len(history))
    return pa.concat_tables(parts)


def replay_with_delays(
    history: pa.Table, candidates: Sequence[Candidate], mode: Mode, settings: ReplaySettings | None = None
) -> tuple[pa.Table, Sequence[DelayedRequests] | None]:
    """
    Return what `replay` returns, and the requests that the candidates delay.

    The second is None if a row has no place, as rows of other programs: they could not be told apart.
    """
    if not all_have_places(history):
        return replay(history, candidates, mode, settings), None
    tables, delayed = [RESULTS.empty_table()], []
    for plan in plans(history, candidates, settings or ReplaySettings()):
        if mode is Mode.CLOSED_LOOP:
            late_ms = np.zeros((len(candidates), len(plan.frame.positions)), np.int64)
            booked = replay_closed(plan, late_ms)
        else:
            measured = measured_by(plan)
            booked, late_ms = replay_open(plan, measured), _unsent(plan, measured)
        tables.append(results_of(plan, booked))
        rows = np.flatnonzero(late_ms.any(axis=0))
        files = plan.frame.files.take(array(rows)).combine_chunks().dictionary_encode()
        delayed.append(
            DelayedRequests(files.dictionary, files.indices.to_numpy(), plan.frame.positions[rows], late_ms[:, rows])
        )
    return pa.concat_tables(tables), delayed


def results_of(plan: ReplayPlan, booked: Booked, *, every_active_entity: bool = False) -> pa.Table:
    """
    Return the results of a plan, as rows of `RESULTS` by candidate and then by entity.

    There is a row for each limit on an entity that charged the quota. With `every_active_entity` there is a row for
    each limit on an entity with any request, so that the rows of several plans add up.
    """
    frame = plan.frame
    # pairs are sorted by entity: an entity, or a pair, of the results is a range of pairs
    owners = np.arange(frame.pairs, dtype=np.int32) if plan.settings.per_broker else frame.pair_entities
    first_pairs = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    pair_counts = np.diff(np.append(first_pairs, frame.pairs))
    requests, unsized, held_back, amounts = (
        np.add.reduceat(figures, first_pairs, axis=1) for figures in _charged(frame)
    )
    limits = plan.limits[:, :, first_pairs]
    has_requests = requests > 0
    if every_active_entity:
        requests_by_pair = np.bincount(frame.requests.pairs, minlength=frame.pairs)
        has_requests = np.add.reduceat(requests_by_pair, first_pairs) > 0
    rows = np.nonzero(np.isfinite(limits) & has_requests)
    candidates, kinds, places = rows
    # Each row is repeated for its pairs, to read the counts of the pairs under the row's candidate and kind. The
    # repetitions of a row begin at its `row_starts`, and their pairs are its first pair and those that follow it.
    counts = pair_counts[places]
    row_starts = np.cumsum(counts) - counts
    pairs = np.arange(counts.sum()) - np.repeat(row_starts - first_pairs[places], counts)
    trials = pairs * len(booked.ranks) + np.repeat(booked.ranks[candidates], counts)
    cells = booked.cells.reshape(-1, KINDS, FIELDS)[trials, np.repeat(kinds, counts), :RESULT_FIELDS]
    # Counts of the pairs of a row are added up. Of longest times, a row has the largest.
    sums = np.add.reduceat(cells[:, :SUMS], row_starts)
    longest = np.maximum.reduceat(cells[:, SUMS:], row_starts)
    fields = np.hstack([sums, longest])
    active = np.add.reduceat(booked.active[trials], row_starts) + fields[:, IDLE_MUTED_MS]
    share: Floats = np.zeros(len(active))
    np.divide(fields[:, MUTED_MS], active, out=share, where=active > 0)
    columns = {
        **_names(plan, candidates, kinds, first_pairs[places]),
        **{name: array(fields[:, field]) for name, field in _FIELDS.items()},
        "limit": array(limits[rows]),
        "requests": array(requests[kinds, places]),
        "amount": array(amounts[kinds, places]),
        "requests_of_unknown_size": array(unsized[kinds, places]),
        "held_back_requests": array(held_back[kinds, places]),
        "late_ms": array(np.maximum.reduceat(booked.late[trials], row_starts)),
        "active_ms": array(active),
        "throttled_share": array(share),
    }
    return pa.table({name: columns[name] for name in RESULTS.names}, schema=RESULTS)


def _names(plan: ReplayPlan, candidates: Ints, kinds: Ints, pairs: Ints) -> dict[str, Column]:
    """Return the columns of names: candidate, broker, user, client id, quota type and level of each row."""
    frame = plan.frame
    entities = frame.pair_entities[pairs]
    levels = np.zeros(len(pairs), np.int32)
    # rows of one candidate and kind follow each other, and share the resolution of the rules
    borders = np.flatnonzero(np.diff(candidates * KINDS + kinds)) + 1
    for start, stop in pairwise((0, *borders, len(pairs))):
        if start < stop:
            resolved = plan.resolution(int(candidates[start]), int(kinds[start]))
            levels[start:stop] = resolved.levels()[entities[start:stop]]
    brokers: Column = pa.nulls(len(pairs), pa.string())
    if plan.settings.per_broker:
        brokers = frame.brokers.take(array(frame.pair_brokers[pairs]))
    names = array([candidate.name for candidate in plan.candidates])
    types = array([TYPES[kind].label for kind in range(KINDS)])
    return {
        "candidate": names.take(array(candidates)),
        "broker": brokers,
        "user": frame.entities.users.take(array(entities)),
        "client_id": frame.entities.client_ids.take(array(entities)),
        "quota_type": types.take(array(kinds)),
        "level": array([level.value for level in LEVELS]).take(array(levels)),
    }


def _charged(frame: Frame) -> tuple[Ints, Ints, Ints, Floats]:
    """
    Return four arrays by kind and pair, about the logged requests that charged the quota.

    They have the number of all requests, of those of unknown size, and of those that were throttled while logged; and
    the amount that was charged and not given back.
    """
    counts, unsized, held_back = np.zeros((3, KINDS, frame.pairs), np.int64)
    amounts = np.zeros((KINDS, frame.pairs), np.float64)
    requests, final_sizes = frame.requests, frame.final_sizes
    was_throttled = (frame.throttles > 0) | (requests.as_logged == 1)
    for kind in TYPES:
        timed = ~np.isnan(requests.percents)
        charges = timed if kind == REQUEST else requests.kinds == kind
        counts[kind] = np.bincount(requests.pairs[charges], minlength=frame.pairs)
        held_back[kind] = np.bincount(requests.pairs[charges & was_throttled], minlength=frame.pairs)
        if kind != REQUEST:
            amounts[kind] = np.bincount(requests.pairs[charges], final_sizes[charges], frame.pairs)
            unsized[kind] = np.bincount(requests.pairs[charges & frame.unsized], minlength=frame.pairs)
    spent = np.nan_to_num(requests.percents) + frame.networks
    amounts[REQUEST] = np.bincount(requests.pairs, spent, frame.pairs)
    return counts, unsized, held_back, amounts


def lateness(
    history: pa.Table, candidates: Sequence[Candidate], mode: Mode, rows: int, settings: ReplaySettings | None = None
) -> Ints:
    """
    Return the delay of requests against the log, ms, by candidate and `position`; `NEVER` for one that is not sent.

    In closed loop, delays are those of the replay. In open loop, no request is delayed. While the rate of a client is
    above its limit, the part of its requests above the limit is not sent, evenly among them. A real client would send
    them later, or not at all.

    Args:
        history: history as `replay` takes it, from a single `file`.
        candidates: candidates as `replay` takes them.
        mode: reaction of arrivals to throttles.
        rows: number above all `position`s.
        settings: settings; the defaults of `ReplaySettings` if they are left out.

    """
    late = np.zeros((len(candidates), rows), np.int64)
    for plan in plans(history, candidates, settings or ReplaySettings()):
        if mode is Mode.CLOSED_LOOP:
            delays = np.zeros((len(candidates), len(plan.frame.positions)), np.int64)
            replay_closed(plan, delays)
        else:
            delays = _unsent(plan, measured_by(plan))
        late[:, plan.frame.positions] = delays
    return late


class _Sent(NamedTuple):
    """Requests of one candidate that are sent in an open loop."""

    sums: Floats
    """Sum of the allowed parts of the requests so far, by pair."""
    late_ms: Ints
    """By request: 0, or `NEVER` for one that is not sent."""


_Sent.WRITTEN = True  # type: ignore[attr-defined]


@kernel
def send_parts(parts: Floats, pairs: Codes, sent: _Sent) -> None:
    """Send a request where the sum of the parts of its client on the broker reaches the next whole number."""
    for row in range(len(parts)):
        pair = pairs[row]
        before = sent.sums[pair]
        after = before + parts[row]
        sent.sums[pair] = after
        if floor(after + _ROUNDING) <= floor(before + _ROUNDING):
            sent.late_ms[row] = NEVER


def _unsent(plan: ReplayPlan, measured: Measurements) -> Ints:
    """
    Return the delay by candidate and request in an open loop, in which clients keep within their limits.

    Where a client's rate is above its limit, the part limit/rate of its requests is sent, evenly among them; the others
    have `NEVER`, and those that are sent 0.
    """
    requests = plan.frame.requests
    rates = measured.rates.reshape(-1, len(requests.times))
    late_ms = np.zeros((len(plan.candidates), len(requests.times)), np.int64)
    for candidate in range(len(plan.candidates)):
        sent_parts: Floats = np.ones(len(requests.times))
        for kind in MEASURED:
            charged = requests.kinds == kind
            if kind == REQUEST:
                charged = ~np.isnan(requests.percents)
            rate = rates[plan.slot(candidate, kind)][charged]
            limit = plan.limits[candidate, kind][requests.pairs[charged]]
            allowed_part = np.divide(limit, rate, out=np.ones(len(rate)), where=rate > limit)
            sent_parts[charged] = np.minimum(sent_parts[charged], allowed_part)
        sent = _Sent(sums=np.zeros(plan.frame.pairs), late_ms=late_ms[candidate])
        run(send_parts, sent_parts, requests.pairs, sent, work=len(sent_parts))
    return late_ms
