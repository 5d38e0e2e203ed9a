"""A replay, by whoever does the work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from ..candidates import Candidate
from ..table import File, Table
from ..table.table import Run, run_here
from ..whatif import Mode, Settings, replay
from ..whatif.resolution import Rules
from ..whatif.results import RESULTS
from .parts import Progress, parts_of, told


def replayed(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    run: Run,
    progress: Progress | None = None,
    settings: Settings | None = None,
) -> pa.Table:
    """
    The results (`quotascope.pipeline.whatif.results.RESULTS`) of a replay.

    Users of different buckets share nothing, and are replayed apart, unless some candidate has rules for client-ids alone.
    """
    if run is not run_here:
        return _by_spark(history, candidates, mode, settings)
    parts = parts_of(history, across_users=Rules(candidates).across_users)
    work = partial(replay_part, history, tuple(candidates), mode, settings)
    results = list(told(run_here(work, parts), len(parts), progress))
    return pa.concat_tables([RESULTS.empty_table(), *results])


def _by_spark(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    settings: Settings | None,
) -> pa.Table:
    from ..spark.whatif import replay_table  # noqa: PLC0415 - brings Spark in

    # what can be a program of its own imports absolutely: to mypy its classes are others
    given: tuple[Any, Any, Any, Any] = (history, candidates, mode, settings)
    return replay_table(*given)


def replay_part(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    settings: Settings | None,
    files: Sequence[File],
) -> pa.Table:
    """The results of some files that have whatever shares a limit together."""
    return replay(history.batches(files), candidates, mode, settings)
