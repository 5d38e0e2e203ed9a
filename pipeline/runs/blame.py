"""The waits of a history's requests, divided among those that held the handler threads meanwhile."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from ..blame.intervals import Intervals, read
from ..blame.summing import Blame, Plan, Sums, Survey, plan_of, sums_of, surveys
from ..errors import NoTable, PipelineError
from ..history.store import tables_of
from ..rates import EmptyHistory
from ..request_log.schema import REQUESTS
from ..table import Progress, Table
from ..table.table import run_here
from .engine import Engine, chosen, run_of

if TYPE_CHECKING:
    from ..spark.run import SparkRun


MOST_LOCAL_REQUESTS: Final = 20_000_000
"""Requests above which Spark is worth its start, where it is installed: this process holds all, at 0.2 GB a million."""


class NoQueueTimes(PipelineError):
    """No request of the history has a queue time."""


def blame(
    folder: str, *, threads: int | None = None, engine: Engine = Engine.AUTO, progress: Progress | None = None
) -> Blame:
    """
    Divide the waits of all requests of a history.

    Args:
        folder: of the history, as `quotascope ingest` has made it.
        threads: `num.io.threads` of each broker; estimated from the log unless given.
        engine: what does the work; the sums are the same.
        progress: called with how much is done, and of how much.

    Raises:
        NoHistory: there is none.
        NoTable: it has no table of requests.
        EmptyHistory: it has no request.
        NoQueueTimes: none of its requests has a queue time.

    """
    try:
        table = Table.open(f"{folder.rstrip('/')}/requests", schema=REQUESTS)
    except NoTable:
        tables_of(folder)  # raises NoHistory unless only this one is missing
        raise
    rows = sum(file.rows for file in table.files())
    if not rows:
        raise EmptyHistory(f"{folder}: the history is empty: ingest request logs first")
    run = run_of(chosen(engine, rows, MOST_LOCAL_REQUESTS), "survey of buckets")
    buckets = list(table.buckets().values())
    whole = read(table, table.files()) if run is run_here else None
    found = [Survey.of(whole)] if whole is not None else chain.from_iterable(run(partial(surveys, table), buckets))
    plan = plan_of(list(found), threads)
    if not plan.rows:
        raise NoQueueTimes(
            f"no request of {folder} has a queue time; ingest the request logs with this release into another folder"
        )
    if whole is not None:
        sums = Sums.of(pa.concat_tables(run(partial(_of_pool, whole, plan), range(len(plan.threads)), progress)))
    else:
        from ..spark.shuffled import waits_divided  # noqa: PLC0415 - brings Spark in

        sums = waits_divided(cast("SparkRun", run), table, buckets, plan, progress)
    return Blame(folder=folder, plan=plan, sums=sums)


def _of_pool(whole: Intervals, plan: Plan, pool: int) -> pa.Table:
    """All requests of a pool as one piece."""
    slot = plan.slot_us
    begin, end = plan.begin_us // slot * slot, -(-plan.end_us // slot) * slot
    return sums_of(whole.of_pool(plan.pools[0][pool]), plan, pool, begin, end)
