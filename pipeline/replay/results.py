"""
Results of a replay: the walk through the kernels, group by group, and the columns made of their counts.

Which quota a throttle belongs to is decided as a broker decides it (`metrics.engine.combination`): the one that asks
for the longer time, the request quota on a tie. A request is counted under one type only, so that the figures of the
types of an entity add up.

Figures of several brokers are added up; those that say "longest" are the largest of one broker.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import TYPE_LABELS
from quotascope.quotas.candidates import Candidate

from ..columns import Column, array, column
from ..table import Progress
from .closed_loop import NEVER, replay_closed
from .compiled import Floats, Ints
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
    Replay the requests of a history under candidates; return rows of `RESULTS`.

    Args:
        history: rows of `pipeline.history.HISTORY` in any order, of which these columns are needed: `frame.NEEDED`; all
            of each user, or of all users that share a limit.
        candidates: candidates in the order of the results; names should differ.
        mode: whether arrivals react.
        settings: `ReplaySettings()` unless given.
        progress: called after each part with the number of requests.

    Raises:
        PipelineError: a column is missing.

    """
    if not candidates:
        return RESULTS.empty_table()
    work = replay_open if mode is Mode.OPEN_LOOP else replay_closed
    done = 0
    parts = [RESULTS.empty_table()]
    for plan in plans(history, candidates, settings or ReplaySettings()):
        parts.append(results_of(plan, work(plan)))
        done += len(plan.frame.groups)
        if progress is not None:
            progress(done, len(history))
    return pa.concat_tables(parts)


def results_of(plan: ReplayPlan, booked: Booked, *, of_active: bool = False) -> pa.Table:
    """
    Return the rows of a frame, by candidate and then by entity.

    There is a row for each limit on an entity that charged the quota.

    With `of_active` there is one for each limit on an entity with any request, so that rows of several frames add up.
    """
    frame = plan.frame
    owners = frame.pair_entities
    if plan.settings.per_broker:
        owners = np.arange(frame.pairs, dtype=np.int32)
    starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    requests, unsized, held_back, amounts = (np.add.reduceat(figures, starts, axis=1) for figures in _charged(frame))
    limits = plan.limits[:, :, starts]
    has_requests = requests > 0
    if of_active:
        counts = np.bincount(frame.requests.pairs, minlength=frame.pairs)
        has_requests = np.add.reduceat(counts, starts) > 0
    rows = np.nonzero(np.isfinite(limits) & has_requests)
    candidates, kinds, places = rows
    # For each row its pairs, and for each pair its counts under the row's candidate.
    counts = np.diff(np.append(starts, frame.pairs))[places]
    ends = np.cumsum(counts)
    pairs = np.arange(counts.sum()) - np.repeat(ends - counts - starts[places], counts)
    trials = pairs * len(booked.ranks) + np.repeat(booked.ranks[candidates], counts)
    cells = booked.cells.reshape(-1, KINDS, FIELDS)[trials, np.repeat(kinds, counts), :RESULT_FIELDS]
    sums = np.add.reduceat(cells[:, :SUMS], ends - counts)
    fields = np.hstack([sums, np.maximum.reduceat(cells[:, SUMS:], ends - counts)])
    active = np.add.reduceat(booked.active[trials], ends - counts) + fields[:, IDLE_MUTED_MS]
    share: Floats = np.zeros(len(active))
    np.divide(fields[:, MUTED_MS], active, out=share, where=active > 0)
    columns = {
        **_names(plan, candidates, kinds, starts[places]),
        **{name: array(fields[:, field]) for name, field in _FIELDS.items()},
        "limit": array(limits[rows]),
        "requests": array(requests[kinds, places]),
        "amount": array(amounts[kinds, places]),
        "requests_of_unknown_size": array(unsized[kinds, places]),
        "held_back_requests": array(held_back[kinds, places]),
        "late_ms": array(np.maximum.reduceat(booked.late[trials], ends - counts)),
        "active_ms": array(active),
        "throttled_share": array(share),
    }
    return pa.table({name: columns[name] for name in RESULTS.names}, schema=RESULTS)


def _names(plan: ReplayPlan, candidates: Ints, kinds: Ints, pairs: Ints) -> dict[str, Column]:
    """Return the names of each row's candidate, entity, quota type and level."""
    frame = plan.frame
    entities = frame.pair_entities[pairs]
    levels = np.zeros(len(pairs), np.int32)
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
    Return by kind and pair the logged requests that charged the quota, and the amounts.

    The requests are counted in all, of unknown size, and throttled while logged.
    """
    counts, unsized, held_back = np.zeros((3, KINDS, frame.pairs), np.int64)
    amounts = np.zeros((KINDS, frame.pairs), np.float64)
    requests, charged_in_the_end = frame.requests, frame.kept
    was_throttled = (frame.throttles > 0) | (requests.as_logged == 1)
    for kind in TYPES:
        timed = ~np.isnan(requests.percents)
        charges = timed if kind == REQUEST else requests.kinds == kind
        counts[kind] = np.bincount(requests.pairs[charges], minlength=frame.pairs)
        held_back[kind] = np.bincount(requests.pairs[charges & was_throttled], minlength=frame.pairs)
        if kind != REQUEST:
            amounts[kind] = np.bincount(requests.pairs[charges], charged_in_the_end[charges], frame.pairs)
            unsized[kind] = np.bincount(requests.pairs[charges & frame.unsized], minlength=frame.pairs)
    spent = np.nan_to_num(requests.percents) + frame.networks
    amounts[REQUEST] = np.bincount(requests.pairs, spent, frame.pairs)
    return counts, unsized, held_back, amounts


def lateness(
    history: pa.Table, candidates: Sequence[Candidate], mode: Mode, rows: int, settings: ReplaySettings | None = None
) -> Ints:
    """
    Return by candidate and position the delay of the request against the log, ms; `NEVER` for one that is not sent.

    Closed loop: the replay moves requests. Open loop: no request moves, and of those that measure a rate above their
    limit the part above it never comes, evenly among them; a real client sends them later, or not.

    Args:
        history: history as `replay` takes it, but all of one `file`.
        candidates: candidates as `replay` takes them.
        mode: whether arrivals react.
        rows: number of rows; all `position`s are below it.
        settings: `ReplaySettings()` unless given.

    """
    late = np.zeros((len(candidates), rows), np.int64)
    for plan in plans(history, candidates, settings or ReplaySettings()):
        positions = plan.frame.positions
        if mode is Mode.CLOSED_LOOP:
            moved = np.zeros((len(candidates), len(positions)), np.int64)
            replay_closed(plan, moved)
        else:
            moved = np.where(_is_within(plan), 0, NEVER)
        late[:, positions] = moved
    return late


def _is_within(plan: ReplayPlan) -> NDArray[np.bool_]:
    """Return by candidate and request whether it is within the limits, or in the part of the excess that is."""
    requests, measured = plan.frame.requests, measured_by(plan)
    rates = measured.rates.reshape(-1, len(requests.times))
    order = np.argsort(requests.pairs, kind="stable")
    pairs = requests.pairs[order]
    starts = np.flatnonzero(np.r_[True, pairs[1:] != pairs[:-1]])
    lengths = np.diff(np.r_[starts, len(pairs)])
    is_within = np.ones((len(plan.candidates), len(pairs)), np.bool_)
    for candidate in range(len(plan.candidates)):
        parts: Floats = np.ones(len(pairs))
        for kind in MEASURED:
            charged = requests.kinds == kind
            if kind == REQUEST:
                charged = ~np.isnan(requests.percents)
            rate = rates[plan.slot(candidate, kind)][charged]
            limit = plan.limits[candidate, kind][requests.pairs[charged]]
            allowed_part = np.divide(limit, rate, out=np.ones(len(rate)), where=rate > limit)
            parts[charged] = np.minimum(parts[charged], allowed_part)
        # A request comes where the sum of the parts of its client reaches the next whole number.
        sums = np.cumsum(parts[order])
        sums -= np.repeat(sums[starts] - parts[order][starts], lengths)
        whole = np.floor(sums + 1e-9)
        is_within[candidate, order] = whole > np.floor(sums - parts[order] + 1e-9)
    return is_within
