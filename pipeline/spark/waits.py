"""The division of waits on Spark: requests are shuffled by pool and piece of time, and each group is divided apart."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from ..blame.intervals import read
from ..blame.summing import KEY, ROWS, Plan, Requests, Sums, sums_of
from ..blame.waits import MARGIN_US, spread
from ..table import File
from .arrow import ANSWER, answer_of, answers_in, apply_in_arrow, ddl, errors_restored, map_in_arrow
from .session import by_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUP: Final = "quotascope_group"
"""Column by which requests are shuffled: a number for a piece of time and a pool of handler threads."""
_PIECES: Final = pa.schema(
    [
        (_GROUP, pa.int64()),
        *((name, pa.int64()) for name in ("enqueued", "dequeued", "released")),
        *((name, pa.int32()) for name in ("groups", "places")),
    ]
)
_PART_ROWS: Final = 200_000
"""
Approximate number of requests, or of sums, in a partition, of which the driver's JVM holds some copies.

The number of partitions is given, as Spark would otherwise make only as many as it has cores.
"""


def waits_divided(spark: "SparkSession", requests: Requests, plan: Plan) -> Sums:
    """
    Divide the waits of all requests, by pool of handler threads and piece of time (`Plan.piece_us`).

    The sums of all pieces may be larger than the log. So Spark adds them up, on disk if necessary, and the driver reads
    one partition at a time. Raises what `errors_restored` raises.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - workers do without

    with errors_restored():
        count = 1 + plan.rows // _PART_ROWS
        pieces = by_tasks(spark, requests.shards, partial(_pieces, requests, plan), ddl(_PIECES))
        sums = apply_in_arrow(pieces.repartition(count, _GROUP), _GROUP, partial(_divided, plan), ddl(ROWS))
        values = [sql.sum(name).alias(name) for name in ROWS.names if name not in KEY]
        added = sums.repartition(count, *KEY).groupBy(*KEY).agg(*values)
        # an iterator makes one partition after the other, so that no more is in memory than is being read
        answers = map_in_arrow(added, partial(map, answer_of), ANSWER).repartition(count)
        batches = answers_in(answers.toLocalIterator())
    return Sums.of(pa.Table.from_batches(batches, ROWS))


def _pieces(requests: Requests, plan: Plan, files: Sequence[File]) -> Iterator[pa.RecordBatch]:
    """Yield the requests of some files, once for each piece in which they wait or hold a thread."""
    pool_by_listener = plan.head.pools[1].astype(np.int64)
    for batch in read(requests.table, files, requests.names, (plan.begin_us, plan.end_us)):
        intervals = plan.head.with_rows_of([batch])
        begin, end = intervals.enqueued - MARGIN_US, intervals.released + MARGIN_US
        rows, pieces, _ = spread(begin, end + 1 - begin, plan.piece_us)
        columns: dict[str, Any] = {name: getattr(intervals, name)[rows] for name in _PIECES.names[1:]}
        columns[_GROUP] = pieces * len(pool_by_listener) + pool_by_listener[intervals.places[rows]]
        yield from pa.table(columns, _PIECES).to_batches()


def _divided(plan: Plan, rows: pa.Table) -> pa.Table:
    """Return the sums (`ROWS`) of the requests of one pool and piece."""
    columns: Any = {name: rows[name].to_numpy() for name in _PIECES.names[1:]}
    intervals = replace(plan.head, **columns, rows=np.arange(len(rows)))
    # `_pieces` numbers a group as `piece * listeners + pool`: there are at most as many pools as listeners
    piece, pool = divmod(rows[_GROUP][0].as_py(), len(plan.head.listeners))
    begin, end = piece * plan.piece_us, (piece + 1) * plan.piece_us
    ordered = intervals.only(np.argsort(intervals.dequeued, kind="stable"))
    return sums_of(ordered, plan, pool, max(begin, plan.begin_us), min(end, plan.end_us))
