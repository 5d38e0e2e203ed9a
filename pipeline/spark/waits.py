"""The division of waits on Spark: requests are cut at pieces of time, and these are shuffled."""

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
"""Column by which requests are shuffled: number of a piece of time and a pool of handler threads."""
_PIECES: Final = pa.schema(
    [
        (_GROUP, pa.int64()),
        *((name, pa.int64()) for name in ("enqueued", "dequeued", "released")),
        *((name, pa.int32()) for name in ("groups", "places")),
    ]
)
_PART_ROWS: Final = 200_000
"""
Number of requests of a partition, also of sums, of which the driver's JVM holds some copies.

Spark would join them to as few as it has cores.
"""


def waits_divided(spark: "SparkSession", requests: Requests, plan: Plan) -> Sums:
    """
    Divide the waits of all requests, a pool of handler threads and a piece of time after the other (`Plan.piece_us`).

    The pieces' sums together may be larger than the log: Spark adds them up, on disk if need be, and the driver reads
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
    """Yield the requests of some files, each in all pieces in which it waits or holds a thread."""
    of_listeners = plan.head.pools[1].astype(np.int64)
    for requests_read in read(requests.table, files, requests.names, (plan.begin_us, plan.end_us)):
        busy = plan.head.with_rows_of([requests_read])
        begin, end = busy.enqueued - MARGIN_US, busy.released + MARGIN_US
        places, pieces, _ = spread(begin, end + 1 - begin, plan.piece_us)
        columns: dict[str, Any] = {name: getattr(busy, name)[places] for name in _PIECES.names[1:]}
        columns[_GROUP] = pieces * len(of_listeners) + of_listeners[busy.places[places]]
        yield from pa.table(columns, _PIECES).to_batches()


def _divided(plan: Plan, rows: pa.Table) -> pa.Table:
    columns: Any = {name: rows[name].to_numpy() for name in _PIECES.names[1:]}
    busy = replace(plan.head, **columns, rows=np.arange(len(rows)))
    piece, pool = divmod(rows[_GROUP][0].as_py(), len(plan.head.listeners))
    begin, end = (number * plan.piece_us for number in (piece, piece + 1))
    ordered = busy.only(np.argsort(busy.dequeued, kind="stable"))
    return sums_of(ordered, plan, pool, max(begin, plan.begin_us), min(end, plan.end_us))
