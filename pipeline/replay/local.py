"""The local engine: a history is replayed group by group, in one process and without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..candidates import Candidate
from ..table import Progress
from .closed_loop import replay_closed
from .compiled import Ints
from .frame import (
    Frame,
    array,
    entities_of,
    frame_of,
    in_order,
    needed,
)
from .open_loop import replay_open
from .plan import (
    CandidateRules,
    Mode,
    ReplaySettings,
    ResolvedRules,
    groups_of,
    plan_of,
)
from .results import RESULTS, results_of


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
    for frame, resolved in _frames(needed(history), rules, settings):
        plan = plan_of(frame, rules, resolved, settings)
        booked = work(plan)
        parts.append(results_of(plan, booked))
        done += len(frame.groups)
        if progress is not None:
            progress(done, len(history))
    return pa.concat_tables(parts)


def _frames(
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


def _cuts(
    rows: Ints, entities: Ints, most_rows: int, most_entities: int
) -> Iterator[tuple[int, int]]:
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
