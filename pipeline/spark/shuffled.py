"""
Frames whose rows Spark shuffles by group: for the replay of any frame, and for work on a table.

If every group is in one shard, `Engine.map` is used instead, so that no row passes through the JVM.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from quotascope.quotas.candidates import Candidate

from ..columns import GroupKey
from ..errors import PipelineError
from ..history import HISTORY
from ..history.schema import PLACE
from ..replay import RESULTS, Mode, ReplaySettings, replay
from ..replay.frame import NEEDED
from ..replay.plan import CandidateRules
from ..table import File, Table
from .arrow import apply_in_arrow, collected, ddl
from .session import by_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP: Final = "quotascope_group"
"""Column by which rows are shuffled: rows of one group have one value of it."""
_GROUPS: Final = 200
"""Number of groups if `spark.sql.shuffle.partitions` is no number; Spark's default."""
_NUMBER: Final = "quotascope_number"
_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_TAKEN: Final = dict.fromkeys(_INTEGERS[1:], _INTEGERS) | {"double": (*_INTEGERS, "float", "double")}
"""Types of a frame's columns that are accepted for a type of history; other types must be equal."""


def replay_frame(
    frame: "DataFrame",
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: ReplaySettings | None = None,
) -> "DataFrame":
    """
    Replay the requests of a frame, such as `spark.read.format("delta").load("usage/history")`, under candidates.

    Rows are shuffled into `spark.sql.shuffle.partitions` groups of users, or of entities that may share a limit, and
    each group is replayed by `applyInArrow`. A Python worker holds a group in memory, with at least all rows of a user.
    With rules for client ids alone, a job of its own collects the entities first. Otherwise nothing runs before an
    action on the result.

    Args:
        frame: frame of Spark 4.0 or newer, also of Spark Connect, with the columns that `pipeline.history.HISTORY`
            describes, in any order; integers and floats may have any width. Without `file` and `position`, Spark
            decides on the order of requests of the same millisecond, which may change the ones that a strict mutation
            quota refuses.
        candidates: quotas to try, with different names (`quotascope.quotas.candidates.read_candidates`).
        mode: whether throttled clients send later.
        settings: settings; the defaults of `ReplaySettings` if they are left out.

    Returns:
        One row for each candidate, entity and quota type, with the columns of `pipeline.replay.RESULTS`.

    Raises:
        PipelineError: the frame lacks a column, or has one of another type.
        SparkFailed: Spark is older than 4.0.

    """
    chosen = tuple(candidates)
    grouped = grouped_by(_requests(frame), CandidateRules(chosen).key)
    work = partial(replay, candidates=chosen, mode=mode, settings=settings)
    return apply_in_arrow(grouped, GROUP, work, ddl(RESULTS))


def _requests(frame: "DataFrame") -> "DataFrame":
    """
    Return a frame with the columns that a replay reads. Raises `PipelineError` for a missing column or another type.

    Types are checked, since Spark would cast its own type `timestamp` to seconds.
    """
    kinds = dict(frame.dtypes)
    if missing := [name for name in NEEDED if name not in kinds and name not in PLACE]:
        raise PipelineError(
            f"the frame lacks the columns {', '.join(missing)}; the documentation (Usage history on disk) "
            "says what a history holds"
        )
    names = [name for name in NEEDED if name in kinds]
    for name in names:
        expected = ddl(pa.schema([HISTORY.field(name)])).split()[1]
        if kinds[name] not in _TAKEN.get(expected, (expected,)):
            raise PipelineError(
                f"the frame's column {name} is {kinds[name]}, not {expected}; the documentation (Usage "
                "history on disk) says what it holds"
            )
    return frame.select(*names)


def grouped_by(frame: "DataFrame", key: GroupKey) -> "DataFrame":
    """
    Return the rows with a column `GROUP`, which has as many values as a shuffle has partitions.

    Several groups of the key share a value, because each value is a call of the work, and a replay of few rows has a
    hundredth of the pace. For a key with `numbers`, a job of its own collects the values first.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - workers do without

    partitions = frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or ""
    count = int(partitions) if partitions.isdigit() else _GROUPS
    if key.numbers is None:
        return frame.withColumn(GROUP, sql.pmod(sql.xxhash64(*key.columns), sql.lit(count)))
    names = list(key.columns)
    rows = collected(frame.select(*names).distinct().dropna())
    values = pa.Table.from_pylist([row.asDict() for row in rows], pa.schema([(name, pa.string()) for name in names]))
    numbered = [(*row, number) for row, number in zip(rows, key.numbers(values), strict=True)]
    schema = f"{', '.join(f'{name} string' for name in names)}, {_NUMBER} bigint"
    numbers = frame.sparkSession.createDataFrame(numbered, schema)
    joined = frame.join(sql.broadcast(numbers), names, "left")  # a null is an error of the work
    return joined.withColumn(GROUP, sql.pmod(sql.xxhash64(_NUMBER), sql.lit(count))).drop(_NUMBER)


def rows_of(table: Table, columns: Sequence[str], spark: "SparkSession") -> "DataFrame":
    """Return columns of a table as a frame; each worker reads the files of a shard."""
    schema = pa.schema([table.schema.field(name) for name in columns])
    return by_tasks(spark, list(table.shards().values()), partial(_read, table, columns), ddl(schema))


def _read(table: Table, columns: Sequence[str], files: Sequence[File]) -> Iterator[pa.RecordBatch]:
    """Return the rows of some files, with the files as the last argument."""
    return table.batches(files, columns)
