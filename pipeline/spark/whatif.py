"""
What-if on Spark: the same replay, group by group in Spark's Python workers.

::

    spark-submit pipeline/spark/whatif.py --history /data/quota --candidates tighter.yaml --mode closed_loop --into results.parquet

Where limits are shared within users only, each worker reads the files of its buckets, and no row passes through the JVM. Where some
candidate has rules for client ids alone, users may share a limit, and rows are shuffled into groups first.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quotascope.metrics import KafkaRelease, MalformedName
from quotascope.pages.files import put
from quotascope.pipeline.candidates import Candidate, read_candidates
from quotascope.pipeline.errors import PipelineError
from quotascope.pipeline.followed import followed, followed_by
from quotascope.pipeline.history import HISTORY, History
from quotascope.pipeline.spark.arrow import collected, map_in_arrow
from quotascope.pipeline.spark.run import SparkRun
from quotascope.pipeline.table import File, Table
from quotascope.pipeline.whatif import RESULTS, Mode, Settings, replay
from quotascope.pipeline.whatif.batches import NEEDED, whole_groups
from quotascope.pipeline.whatif.frame import Entities
from quotascope.pipeline.whatif.groups import groups_of
from quotascope.pipeline.whatif.resolution import Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP: Final = "quotascope_group"
"""The column by which rows are shuffled: no group has two values of it."""
PLACE: Final = "quotascope_place"
"""The column with the place of a row in its bucket, where it is known: requests of the same millisecond stay in their order."""
_PLACE: Final = pa.field(PLACE, pa.int64(), nullable=False)
_SPARK: Final = {
    pa.string(): "string",
    pa.float64(): "double",
    pa.int64(): "bigint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.bool_(): "boolean",
}


def replay_table(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: Settings | None = None,
    spark: "SparkSession | None" = None,
) -> pa.Table:
    """
    Replay a committed history.

    Args:
        history: `History.detail`; workers must reach its path.
        candidates: as in `whatif.replay`.
        mode: as there.
        settings: as there.
        spark: the session; begun if need be.

    Raises:
        PipelineError: as `whatif.replay` does, and what keeps a worker from reading the table.

    """
    session = _session() if spark is None else spark
    if Rules(candidates).across_users:
        return _collected(
            replay_frame(rows_of(history, session), candidates, mode, settings)
        )
    work = partial(_replay_bucket, history, tuple(candidates), mode, settings)
    buckets = list(history.buckets().values())
    parts = list(SparkRun(session)(work, buckets))
    return pa.concat_tables([RESULTS.empty_table(), *parts])


def replay_frame(
    frame: "DataFrame",
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: Settings | None = None,
) -> "DataFrame":
    """
    Replay any frame with the columns of a history, such as one read from another store; the result has the columns of `RESULTS`.

    Rows are shuffled and sorted by group and time; a worker holds the rows of one group in memory, or of `Settings.rows_at_once` requests.
    """
    chosen = tuple(candidates)
    places = [PLACE] if PLACE in frame.columns else []
    grouped = _grouped(frame.select(*NEEDED, *places), Rules(chosen))
    order = (GROUP, "timestamp", "user", *places)
    ordered = grouped.repartition(GROUP).sortWithinPartitions(*order)
    work = partial(_replay_groups, chosen, mode, settings)
    return map_in_arrow(ordered, work, _ddl(RESULTS))


def _replay_bucket(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    settings: Settings | None,
    files: Sequence[File],
) -> pa.Table:
    return replay(history.batches(files, NEEDED), candidates, mode, settings)


def _replay_groups(
    candidates: Sequence[Candidate],
    mode: Mode,
    settings: Settings | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    rows = (settings or Settings()).rows_at_once
    for table in whole_groups(tables, rows, GROUP):
        yield from replay(table, candidates, mode, settings).to_batches()


def _grouped(frame: "DataFrame", rules: Rules) -> "DataFrame":
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
    return map_in_arrow(tasks, partial(_read, history, buckets), _ddl(needed))


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


def _collected(frame: "DataFrame") -> pa.Table:
    rows = [row.asDict() for row in collected(frame)]
    return pa.Table.from_pylist(rows, RESULTS)


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_SPARK[field.type]}" for field in schema)


def _session() -> "SparkSession":
    from quotascope.pipeline.spark.session import session  # noqa: PLC0415 - brings Spark in

    return session()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program of its own, as spark-submit does; return the exit code."""
    options = _options().parse_args(arguments)
    try:
        candidates = read_candidates(Path(options.candidates))
        given = None if options.kafka_version is None else KafkaRelease.parse(options.kafka_version)  # fmt: skip
        history = History.open(options.history).detail
        kafka = followed_by(options.history, history, followed(given))
        settings = Settings(per_broker=options.per_broker, release=kafka.release)
        results = replay_table(history, candidates, Mode(options.mode), settings)
        written = BytesIO()
        pq.write_table(results, written)
        put(Path(options.into), written.getvalue())
    except (PipelineError, MalformedName, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{len(results)} results in {options.into}\n{kafka.note}\n")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Replay candidate quotas over a usage history."
    )
    modes = [mode.value for mode in Mode]
    parser.add_argument("--history", required=True, metavar="FOLDER")
    parser.add_argument("--candidates", required=True, metavar="FILE", help="YAML")
    parser.add_argument("--mode", choices=modes, default=Mode.OPEN_LOOP.value)
    parser.add_argument("--per-broker", action="store_true", help="keep brokers apart")
    parser.add_argument("--kafka-version", metavar="VERSION", help="release of the brokers; else what the logs say, else the newest")  # fmt: skip
    parser.add_argument("--into", required=True, metavar="FILE", help="Parquet")
    return parser


if __name__ == "__main__":
    sys.exit(main())
