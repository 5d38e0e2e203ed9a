"""The local engine: a history is replayed group by group, in one process and without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..candidates import Candidate
from ..errors import PipelineError
from ..kernels.compiled import Ints
from .batches import NEEDED, whole_groups
from .closed_replay import replay_closed
from .figures import figures
from .frame import Frame, array, entities_of, frame_of, ints
from .groups import groups_of, order_of
from .mode import Mode, Settings
from .open_replay import replay_open
from .plan import Plan, plan_of
from .resolution import Rules, Shape
from .results import RESULTS

Progress = Callable[[int, int], None]
"""Told how many requests are done, and of how many (0 if nobody knows)."""


def replay(
    history: pa.Table | Iterable[pa.RecordBatch],
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """
    What the candidates would have done to the requests of a history; rows are those of `RESULTS`.

    Args:
        history: rows of `pipeline.history.HISTORY`, of which these columns are needed: `batches.NEEDED`. A table may be in any order.
            Of batches, those of a user must come together; they are replayed as they come, in the memory of the largest user, unless
            some candidate has rules for client ids alone: users may then share a limit, and all is kept.
        candidates: in the order of the results; names should differ.
        mode: whether arrivals react.
        settings: `Settings()` unless given.
        progress: told after each part.

    Raises:
        PipelineError: a column is missing.

    """
    chosen = Settings() if settings is None else settings
    if not candidates:
        return RESULTS.empty_table()
    rules = Rules(candidates)
    total = len(history) if isinstance(history, pa.Table) else 0
    work = _Work(rules, mode, chosen, progress, total)
    parts = [
        result
        for table in _tables(history, rules, chosen.rows_at_once)
        for result in work.replay(table)
    ]
    return pa.concat_tables([RESULTS.empty_table(), *parts])


def _tables(
    history: pa.Table | Iterable[pa.RecordBatch], rules: Rules, rows: int
) -> Iterator[pa.Table]:
    if isinstance(history, pa.Table):
        yield needed(history)
    elif rules.across_users:
        batches = [needed(batch) for batch in history]
        if batches:
            yield pa.concat_tables(batches)
    else:
        yield from whole_groups((needed(batch) for batch in history), rows)


def needed(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    """The columns that a replay looks at. Raises `PipelineError` when one is missing."""
    missing = [name for name in NEEDED if name not in rows.schema.names]
    if missing:
        raise PipelineError(
            f"the history lacks the columns {', '.join(missing)}; make it with this release"
        )
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    return table.select(NEEDED)


class _Work:
    """Replays tables that are complete in their groups."""

    def __init__(
        self,
        rules: Rules,
        mode: Mode,
        settings: Settings,
        progress: Progress | None,
        total: int,
    ) -> None:
        self._rules = rules
        self._mode = mode
        self._settings = settings
        self._progress = progress
        self._done = 0
        self._total = total

    def replay(self, table: pa.Table) -> Iterator[pa.Table]:
        for frame, shapes, _ in frames(table, self._rules, self._settings):
            plan = plan_of(self._rules, shapes, frame)
            yield self._figures(plan, frame)
            self._done += len(frame.groups)
            if self._progress is not None:
                self._progress(self._done, self._total)

    def _figures(self, plan: Plan, frame: Frame) -> pa.Table:
        work = replay_open if self._mode is Mode.OPEN_LOOP else replay_closed
        booked = work(plan, frame, self._settings)
        return figures(plan, frame, booked, per_broker=self._settings.per_broker)


def frames(
    table: pa.Table, rules: Rules, settings: Settings
) -> Iterator[tuple[Frame, list[Shape], Ints]]:
    """The rows in parts that are complete in their groups, each in the order of groups and times; with their numbers."""
    if not len(table):
        return
    entities, codes = entities_of(table)
    shapes = rules.resolve(entities)
    groups = groups_of(shapes, len(entities.users))
    rows: Ints = np.arange(len(table))
    order = in_order(groups[codes], ints(table, "timestamp"))
    if order is not None:
        table, codes, rows = table.take(array(order)), codes[order], order
    clients = max(1, settings.cells_at_once // len(rules.candidates))
    cuts = _cuts(groups[codes], groups, settings.rows_at_once, clients)
    for start, stop in cuts:
        numbers, local = np.unique(codes[start:stop], return_inverse=True)
        part = table.slice(start, stop - start)
        some = entities.only(numbers)
        frame = frame_of(part, some, local.astype(np.int32), groups[codes[start:stop]])
        local_shapes = [shape.only(numbers) for shape in shapes]
        yield frame, local_shapes, rows[start:stop]


def in_order(groups: Ints, times: Ints) -> Ints | None:
    """The order of rows by group and time, equal ones as they are; None if they are in it."""
    later = (groups[1:] > groups[:-1]) | (
        (groups[1:] == groups[:-1]) & (times[1:] >= times[:-1])
    )
    if later.all():
        return None
    return order_of(groups, times)


def _cuts(
    rows: Ints, entities: Ints, most_rows: int, most_entities: int
) -> Iterator[tuple[int, int]]:
    """Where to cut rows, given by their groups in order, so that no piece has more than so many rows or entities unless it is one group."""
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
