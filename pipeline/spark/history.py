"""Keeps a usage history up to date by Spark's workers; `quotascope ingest` and `quotascope history` do so under spark-submit."""

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..history.store import BUCKETS, History
from ..table import Table
from .run import SparkRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was done to a history."""

    requests: int
    """Requests that were taken over."""
    dropped: int
    """Requests that were too old."""
    replaced: int
    """Files that compaction put others in the place of."""


def update(
    spark: "SparkSession",
    requests: str,
    into: str,
    *,
    compact: bool = False,
    keep_from: dt.date | None = None,
    buckets: int = BUCKETS,
) -> Done:
    """
    Take over new requests; see `History.update`.

    Args:
        spark: the session.
        requests: path of the table of requests.
        into: folder of the history.
        compact: whether to merge small files afterwards.
        keep_from: first day (UTC) whose requests stay; all stay by default.
        buckets: for a history that is made now.

    Raises:
        TableError: what was taken over before it stays.

    """
    run = SparkRun(spark)
    history = History.create(into, buckets)
    return Done(
        requests=history.update(Table.open(requests), run),
        dropped=0 if keep_from is None else history.drop_before(keep_from),
        replaced=history.compact(run) if compact else 0,
    )
