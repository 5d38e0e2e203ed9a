"""
What-if on Spark: the same replay, group by group in Spark's Python workers.

Where limits are shared within users only, each worker reads the files of its buckets, and no row passes through the JVM. Where some
candidate has rules for client ids alone, users may share a limit, and rows are shuffled into groups first.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from quotascope.pipeline.candidates import Candidate
from quotascope.pipeline.history import HISTORY
from quotascope.pipeline.replay import RESULTS, Mode, ReplaySettings, replay
from quotascope.pipeline.replay.frame import NEEDED, Entities, whole_groups
from quotascope.pipeline.replay.plan import CandidateRules, groups_of
from quotascope.pipeline.spark.arrow import collected, ddl, map_in_arrow
from quotascope.pipeline.spark.run import SparkRun
from quotascope.pipeline.table import File, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP: Final = "quotascope_group"
"""The column by which rows are shuffled: no group has two values of it."""
PLACE: Final = "quotascope_place"
"""The column with the place of a row in its bucket, where it is known: requests of the same millisecond stay in their order."""
_PLACE: Final = pa.field(PLACE, pa.int64(), nullable=False)


def replay_table(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: ReplaySettings | None = None,
    spark: "SparkSession | None" = None,
) -> pa.Table:
    """
    Replay a committed history.

    Args:
        history: `History.detail`; workers must reach its path.
        candidates: as in `replay`.
        mode: as there.
        settings: as there.
        spark: the session; begun if need be.

    Raises:
        PipelineError: as `replay` does, and what keeps a worker from reading the table.

    """
    from quotascope.pipeline.spark.session import session  # noqa: PLC0415 - brings Spark in

    used = spark or session()
    if CandidateRules(candidates).across_users:
        frame = replay_frame(rows_of(history, used), candidates, mode, settings)
        rows = [row.asDict() for row in collected(frame)]
        return pa.Table.from_pylist(rows, RESULTS)
    work = partial(_replay_bucket, history, tuple(candidates), mode, settings)
    buckets = list(history.buckets().values())
    parts = list(SparkRun(used)(work, buckets))
    return pa.concat_tables([RESULTS.empty_table(), *parts])


def replay_frame(
    frame: "DataFrame",
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: ReplaySettings | None = None,
) -> "DataFrame":
    """
    Replay any frame with the columns of a history, such as one read from another store; the result has the columns of `RESULTS`.

    Rows are shuffled and sorted by group and time; a worker holds the rows of one group in memory, or of `ReplaySettings.rows_at_once` requests.
    """
    chosen = tuple(candidates)
    places = [PLACE] if PLACE in frame.columns else []
    grouped = _grouped(frame.select(*NEEDED, *places), CandidateRules(chosen))
    order = (GROUP, "timestamp", "user", *places)
    ordered = grouped.repartition(GROUP).sortWithinPartitions(*order)
    work = partial(_replay_groups, chosen, mode, settings)
    return map_in_arrow(ordered, work, ddl(RESULTS))


def _replay_bucket(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    settings: ReplaySettings | None,
    files: Sequence[File],
) -> pa.Table:
    users = history.whole_users(files, NEEDED)
    return pa.concat_tables([replay(rows, candidates, mode, settings) for rows in users])  # fmt: skip


def _replay_groups(
    candidates: Sequence[Candidate],
    mode: Mode,
    settings: ReplaySettings | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    rows = (settings or ReplaySettings()).rows_at_once
    for table in whole_groups(tables, rows, GROUP):
        yield from replay(table, candidates, mode, settings).to_batches()


def _grouped(frame: "DataFrame", rules: CandidateRules) -> "DataFrame":
    from pyspark.sql import functions as sql  # noqa: PLC0415 - workers do without

    if not rules.across_users:
        return frame.withColumn(GROUP, sql.xxhash64("user"))
    names = ["user", "client_id"]
    found = collected(frame.select(*names).distinct())
    entities = Entities(
        users=pa.array([row.user for row in found], pa.string()),
        client_ids=pa.array([row.client_id for row in found], pa.string()),
    )
    groups = groups_of(rules.resolve(entities), len(found)).tolist()
    rows = [
        (row.user, row.client_id, group)
        for row, group in zip(found, groups, strict=True)
    ]
    schema = f"user string, client_id string, {GROUP} bigint"
    members = frame.sparkSession.createDataFrame(rows, schema)
    return frame.join(sql.broadcast(members), names)


def rows_of(history: Table, spark: "SparkSession") -> "DataFrame":
    """The columns of a history that a replay looks at, as a frame; each worker reads the files of a bucket."""
    buckets = list(history.buckets().values())
    needed = pa.schema([*(HISTORY.field(name) for name in NEEDED), _PLACE])
    tasks = spark.range(0, len(buckets), 1, max(1, len(buckets)))
    return map_in_arrow(tasks, partial(_read, history, buckets), ddl(needed))


def _read(
    history: Table,
    buckets: Sequence[Sequence[File]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_numpy():
            yield from _placed(history.batches(buckets[int(number)], NEEDED))


def _placed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    place = 0
    for batch in batches:
        places = np.arange(place, place + batch.num_rows)
        yield batch.append_column(_PLACE, pa.array(places))
        place += batch.num_rows
