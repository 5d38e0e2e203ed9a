"""
What a replay answers: the walk through the kernels, group by group in one process, and the columns made of what they counted.

Which quota a throttle belongs to is decided as a broker decides it (`metrics.combination`): the one that asks for the longer time, the
request quota on a tie. A request is counted under one type only, so that the figures of the types of an entity add up.

Figures of several brokers are added up; those that say "longest" are the largest of one broker.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from quotascope.quotas.candidates import Candidate

from ..table import Progress
from ..table.layout import Column
from .closed_loop import replay_closed
from .compiled import Floats, Ints, run
from .frame import KINDS, REQUEST, Frame, array, entities_of, frame_of, in_order, needed
from .ledger import (
    DELAYED,
    DELAYED_BYTES,
    IDLE_MUTED_MS,
    LONGEST_MS,
    MUTED_MS,
    RECOVERY_MS,
    REJECTED,
    REJECTED_MUTATIONS,
    RESULT_FIELDS,
    THROTTLED,
    THROTTLED_MS,
    UNSENT,
    UNSENT_BYTES,
    Booked,
    ResultRows,
    add_up,
    new_totals,
)
from .open_loop import replay_open
from .plan import LEVELS, TYPES, CandidateRules, Mode, ReplayPlan, ReplaySettings, ResolvedRules, groups_of, plan_of


def _column(name: str, kind: pa.DataType, about: str, *, null: bool = False) -> "pa.Field[pa.DataType]":
    return pa.field(name, kind, nullable=null, metadata={"about": about})


RESULTS: Final = pa.schema(
    [
        _column("candidate", pa.string(), "Name of the candidate."),
        _column("broker", pa.string(), "The broker; null for the sum of all of them.", null=True),
        _column("user", pa.string(), "Principal's name, as in history."),
        _column("client_id", pa.string(), "Client id, as in history."),
        _column(
            "quota_type",
            pa.string(),
            "produce, fetch, request or controller_mutation. There is a row only where the candidate limits the entity by this type and the entity charged it.",
        ),
        _column(
            "limit",
            pa.float64(),
            "What the candidate allows: bytes/s, percent of a thread, or partitions/s; per broker, mutations in all.",
        ),
        _column(
            "level",
            pa.string(),
            "Level of the rule that decides, such as user_client; others of the entity may share its limit.",
        ),
        _column("requests", pa.int64(), "Requests that charged this quota, as logged."),
        _column(
            "amount",
            pa.float64(),
            "What they charged: bytes, percent-seconds of a thread (handler and network), or partitions.",
        ),
        _column(
            "throttled_requests",
            pa.int64(),
            "Requests that this quota throttles. Closed loop: a request that is sent again counts each time.",
        ),
        _column("throttled_ms", pa.int64(), "Sum of the throttle times of these requests."),
        _column(
            "muted_ms",
            pa.int64(),
            "Time in which this quota muted at least one connection of the entity: the union of [decision, decision + throttle) over its throttled requests, up to `active_ms`'s end.",
        ),
        _column(
            "active_ms",
            pa.int64(),
            "Time in which the entity was active or muted: the union of [decision, decision + 1 s) over its requests and of what `muted_ms` measures, up to 1 s after the last request.",
        ),
        _column("throttled_share", pa.float64(), "muted_ms / active_ms, from 0 to 1; 0 without a request."),
        _column("longest_throttle_ms", pa.int64(), "The longest throttle time of a request."),
        _column(
            "delayed_requests",
            pa.int64(),
            "Requests that had to wait for the mute of their connection that this quota had caused, and Fetches that this quota had answered empty.",
        ),
        _column("delayed_bytes", pa.int64(), "Bytes of these requests."),
        _column(
            "rejected_requests",
            pa.int64(),
            "Requests refused with THROTTLING_QUOTA_EXCEEDED, clients being new enough to understand it. Closed loop: each time.",
        ),
        _column(
            "rejected_mutations",
            pa.int64(),
            "Partitions that these asked for, but for those that the log shows as granted and the candidate grants, too.",
        ),
        _column(
            "recovery_ms",
            pa.int64(),
            "Longest time to recover after a burst: from the first throttled request to the first one of the entity that charges this quota and is not throttled by any; without such a one, to the end of the last throttle.",
        ),
        _column(
            "late_ms",
            pa.int64(),
            "Closed loop: how much later than logged the entity's latest request came, largest of its connections. Open loop: 0.",
        ),
        _column(
            "unsent_requests",
            pa.int64(),
            "Closed loop: requests that had not been sent when the replay ended (`Settings.drain_ms`). Open loop: 0.",
        ),
        _column("unsent_bytes", pa.int64(), "Bytes of these requests."),
    ]
)
"""One row per candidate, entity and quota type, and per broker when asked for."""

CLOSED_LOOP_ONLY: Final = ("late_ms", "unsent_requests", "unsent_bytes")
"""What an open loop does not measure: 0 in its results, and unknown wherever they are shown."""

_FIELDS = {
    "throttled_requests": THROTTLED,
    "throttled_ms": THROTTLED_MS,
    "muted_ms": MUTED_MS,
    "delayed_requests": DELAYED,
    "delayed_bytes": DELAYED_BYTES,
    "rejected_requests": REJECTED,
    "rejected_mutations": REJECTED_MUTATIONS,
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
    What the candidates would have done to the requests of a history; rows are those of `RESULTS`.

    Args:
        history: rows of `pipeline.history.HISTORY` in any order, of which these columns are needed: `frame.NEEDED`; all of each user, or of
            all users that share a limit.
        candidates: in the order of the results; names should differ.
        mode: whether arrivals react.
        settings: `ReplaySettings()` unless given.
        progress: called after each part with the number of requests.

    Raises:
        PipelineError: a column is missing.

    """
    if not candidates:
        return RESULTS.empty_table()
    settings = settings or ReplaySettings()
    rules = CandidateRules(candidates)
    work = replay_open if mode is Mode.OPEN_LOOP else replay_closed
    done = 0
    parts = [RESULTS.empty_table()]
    for frame, resolved in frames(needed(history), rules, settings):
        plan = plan_of(frame, rules, resolved, settings)
        booked = work(plan)
        parts.append(results_of(plan, booked))
        done += len(frame.groups)
        if progress is not None:
            progress(done, len(history))
    return pa.concat_tables(parts)


def frames(
    table: pa.Table, rules: CandidateRules, settings: ReplaySettings
) -> Iterator[tuple[Frame, list[ResolvedRules]]]:
    """The rows in frames that are complete in their groups, each in the order of groups and times, with their resolved rules."""
    if not len(table):
        return
    entities, codes = entities_of(table)
    resolved = rules.resolve(entities)
    groups = groups_of(resolved, len(entities.users))
    order = in_order(table, groups[codes])
    codes = codes[order]
    clients = max(1, settings.cells_at_once // len(rules.candidates))
    for start, stop in _cuts(groups[codes], groups, settings.rows_at_once, clients):
        numbers, local = np.unique(codes[start:stop], return_inverse=True)
        part = table.take(array(order[start:stop]))
        part_groups = groups[codes[start:stop]]
        some = entities.only(numbers)
        frame = frame_of(part, some, local.astype(np.int32), part_groups)
        yield frame, [each.only(numbers) for each in resolved]


def _cuts(rows: Ints, entities: Ints, most_rows: int, most_entities: int) -> Iterator[tuple[int, int]]:
    """Where to cut rows, given by their groups in order, so that no piece exceeds either number unless it is one group."""
    borders = [*np.flatnonzero(rows[1:] != rows[:-1]) + 1, len(rows)]
    counts = np.unique(entities, return_counts=True)[1]
    start = stop = held = 0
    for border, count in zip(borders, counts.tolist(), strict=True):
        full = border - start > most_rows or held + count > most_entities
        if full and stop > start:
            yield start, stop
            start, held = stop, 0
        stop = int(border)
        held += count
    yield start, stop


def results_of(plan: ReplayPlan, booked: Booked, *, of_active: bool = False) -> pa.Table:
    """
    The rows of a frame, by candidate and then by entity: one wherever a candidate limits what an entity charged.

    With `of_active` there is one wherever a candidate limits an entity with any request, so that rows of several frames add up.
    """
    frame = plan.frame
    owners = frame.pair_entities
    if plan.settings.per_broker:
        owners = np.arange(frame.pairs, dtype=np.int32)
    starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    requests, amounts = (np.add.reduceat(each, starts, axis=1) for each in _charged(frame))
    limits = plan.limits[:, :, starts]
    seen = requests > 0
    if of_active:
        counts = np.bincount(frame.requests.pairs, minlength=frame.pairs)
        seen = np.add.reduceat(counts, starts) > 0
    rows = np.nonzero(np.isfinite(limits) & seen)
    candidates, kinds, places = map(np.ascontiguousarray, rows)
    added = ResultRows(candidates=candidates, kinds=kinds, places=places, starts=np.append(starts, frame.pairs))
    totals = new_totals(len(places))
    # As much as the whole replay: what is compiled once is used for all of it.
    run(add_up, booked, added, totals, work=plan.steps)
    fields = totals.fields.reshape(RESULT_FIELDS, -1)
    active = totals.active + fields[IDLE_MUTED_MS]
    share: Floats = np.zeros(len(active))
    np.divide(fields[MUTED_MS], active, out=share, where=active > 0)
    columns = {
        **_names(plan, candidates, kinds, starts[places]),
        **{name: array(fields[field]) for name, field in _FIELDS.items()},
        "limit": array(limits[rows]),
        "requests": array(requests[kinds, places]),
        "amount": array(amounts[kinds, places]),
        "late_ms": array(totals.late),
        "active_ms": array(active),
        "throttled_share": array(share),
    }
    return pa.table({name: columns[name] for name in RESULTS.names}, schema=RESULTS)


def _names(plan: ReplayPlan, candidates: Ints, kinds: Ints, pairs: Ints) -> dict[str, Column]:
    """The names of each row's candidate, entity, quota type and level."""
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
    names = array([each.name for each in plan.candidates])
    types = array([TYPES[kind].label for kind in range(KINDS)])
    return {
        "candidate": names.take(array(candidates)),
        "broker": brokers,
        "user": frame.entities.users.take(array(entities)),
        "client_id": frame.entities.client_ids.take(array(entities)),
        "quota_type": types.take(array(kinds)),
        "level": array([level.value for level in LEVELS]).take(array(levels)),
    }


def _charged(frame: Frame) -> tuple[Ints, Floats]:
    """By kind and pair: how many requests charged the quota as logged, and how much."""
    counts = np.zeros((KINDS, frame.pairs), np.int64)
    amounts = np.zeros((KINDS, frame.pairs), np.float64)
    requests, kept = frame.requests, frame.kept
    for kind in TYPES:
        timed = ~np.isnan(requests.percents)
        here = timed if kind == REQUEST else requests.kinds == kind
        counts[kind] = np.bincount(requests.pairs[here], minlength=frame.pairs)
        if kind != REQUEST:
            amounts[kind] = np.bincount(requests.pairs[here], kept[here], frame.pairs)
    spent = np.nan_to_num(requests.percents) + frame.networks
    amounts[REQUEST] = np.bincount(requests.pairs, spent, frame.pairs)
    return counts, amounts
