"""The waits of a history's requests, divided among those that held the handler threads meanwhile."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from ..blame.intervals import ALWAYS, Intervals, read, together
from ..blame.summing import Blame, Plan, Sums, Survey, plan_of, sums_of, surveys
from ..errors import PipelineError
from ..history.store import table_of
from ..rates import EmptyHistory
from ..request_log.schema import REQUESTS
from ..table import Progress
from ..table.table import run_here
from ..topics import topic_names
from .engine import Engine, chosen, run_of

if TYPE_CHECKING:
    from ..spark.run import SparkRun


MOST_LOCAL_REQUESTS: Final = 20_000_000
"""Requests above which Spark is worth its start, where it is installed: this process holds all, at 0.2 GB a million."""

_NEAR_MS: Final = 3_600_000
"""By how much the decision for a throttle, by which files know requests, may be beside their time in a thread: some wait for minutes in purgatory."""


class NoQueueTimes(PipelineError):
    """No request of the history has a queue time."""


def blame(
    folder: str,
    span_s: tuple[float | None, float | None] = (None, None),
    *,
    threads: int | None = None,
    engine: Engine = Engine.AUTO,
    progress: Progress | None = None,
) -> Blame:
    """
    Divide the waits of requests of a history.

    Args:
        folder: of the history, as `quotascope ingest` has made it.
        span_s: begin and end of the period, Unix times in seconds; the history's own for None.
        threads: `num.io.threads` of each broker; estimated from the log unless given.
        engine: what does the work; the sums are the same.
        progress: called with how much is done, and of how much.

    Raises:
        NoHistory: there is none.
        NoTable: it has no table of requests.
        EmptyHistory: it has no request, or none in the period.
        NoQueueTimes: none of these requests has a queue time.

    """
    table = table_of(folder, "requests", REQUESTS)
    if not any(file.rows for file in table.files()):
        raise EmptyHistory(f"{folder}: the history is empty: ingest request logs first")
    begin, end = (usual if at is None else round(1e6 * at) for at, usual in zip(span_s, ALWAYS, strict=True))
    first, last, span = begin // 1_000 - _NEAR_MS, end // 1_000 + _NEAR_MS, (begin, end)
    buckets = [[file for file in files if file.overlaps(first, last)] for files in table.buckets().values()]
    names = topic_names(folder, table)
    rows = sum(file.rows for files in buckets for file in files)
    run = run_of(chosen(engine, rows, MOST_LOCAL_REQUESTS), "survey of buckets")
    whole = together([*read(table, chain.from_iterable(buckets), names, span)]) if run is run_here else None
    survey = partial(surveys, table, names=names, span_us=span)
    found = [Survey.of(whole)] if whole is not None else chain.from_iterable(run(survey, buckets))
    plan = plan_of(list(found), threads, span)
    if not plan.rows and not plan.head.unknown.sum():
        raise EmptyHistory(f"{folder}: the history has no request in this period")
    if not plan.rows:
        raise NoQueueTimes(
            f"no request of {folder} has a queue time; ingest the request logs with this release into another folder"
        )
    if whole is not None:
        sums = Sums.of(pa.concat_tables(run(partial(_of_pool, whole, plan), range(len(plan.threads)), progress)))
    else:
        from ..spark.shuffled import waits_divided  # noqa: PLC0415 - brings Spark in

        sums = waits_divided(cast("SparkRun", run), table, buckets, names, plan, progress)
    return Blame(folder=folder, plan=plan, sums=sums)


def _of_pool(whole: Intervals, plan: Plan, pool: int) -> pa.Table:
    """All requests of a pool as one piece."""
    return sums_of(whole.of_pool(plan.head.pools[0][pool]), plan, pool, plan.begin_us, plan.end_us)
