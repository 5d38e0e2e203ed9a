"""
Answers for which Spark has to shuffle rows: those of any frame, and those of a history in which users share limits.

Else `runs` takes a history bucket by bucket: each worker reads the files of its bucket, and no row passes through the JVM, at a third of the
CPU time.

A `run` is of the session, workers must reach the paths of its tables, and `progress` is called with the tasks that are done, and of how many.
A `PipelineError` is raised as the same work raises it in one process.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.quotas.candidates import Candidate

from ..blame.intervals import read
from ..blame.summing import KEY, ROWS, Plan, Sums, sums_of
from ..blame.waits import MARGIN_US, spread
from ..columns import names_of
from ..errors import PipelineError
from ..history import HISTORY
from ..history.schema import PLACE
from ..recommend.need import Need, needs
from ..recommend.policy import ClusterWindows, Policy
from ..replay import RESULTS, Mode, ReplaySettings, replay
from ..replay.frame import NEEDED, Entities
from ..replay.plan import CandidateRules, groups_of
from ..table import File, Progress, Table
from .arrow import ANSWER, answer_of, answers_in, apply_in_arrow, collected, ddl, errors_restored, map_in_arrow
from .run import SparkRun, by_tasks, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP: Final = "quotascope_group"
"""The column by which rows are shuffled: those that may meet in a limit have one value of it."""
_PIECES: Final = pa.schema(
    [
        (GROUP, pa.int64()),
        *((name, pa.int64()) for name in ("enqueued", "dequeued", "released")),
        *((name, pa.int32()) for name in ("groups", "places")),
    ]
)
_PART_ROWS: Final = 200_000
"""Requests to a partition, also of sums, of which the driver's JVM holds some copies: Spark would join them to as few as it has cores."""
_GROUPS: Final = 200
"""Where `spark.sql.shuffle.partitions` is no number; Spark's default."""
_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_TAKEN: Final = dict.fromkeys(_INTEGERS[1:], _INTEGERS) | {"double": (*_INTEGERS, "float", "double")}
"""The types of a frame's columns that are taken for one of a history; of others the same only."""


def replay_shared(
    run: SparkRun,
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    settings: ReplaySettings | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """
    `replay` of a committed `History.detail` in which users share limits: rows of any two buckets may meet.

    Raises `PipelineError`.
    """
    with shown(run.spark, "replay of users that share limits", progress):
        frame = replay_frame(rows_of(history, run.spark), candidates, mode, settings)
        rows = [row.asDict() for row in collected(frame)]
    return pa.Table.from_pylist(rows, RESULTS)


def needs_of_clients(
    run: SparkRun, history: Table, policy: Policy, windows: ClusterWindows, progress: Progress | None = None
) -> list[Need]:
    """
    `needs` of each client-id with all of its users in a committed `History.detail`, by a policy with a shape for client-ids.

    A worker holds a group of client-ids in memory (`grouped_by`). Raises `PipelineError`.
    """
    with shown(run.spark, "search for the limits of client-ids", progress):
        grouped = grouped_by(rows_of(history, run.spark), "client_id")
        found = apply_in_arrow(grouped, GROUP, partial(_needs, policy, windows), ANSWER)
        return list(chain.from_iterable(answers_in(collected(found))))


def _needs(policy: Policy, windows: ClusterWindows, rows: pa.Table) -> pa.Table:
    return pa.Table.from_batches([answer_of(list(needs(rows, policy, windows)))])


def waits_divided(
    run: SparkRun,
    requests: Table,
    parts: Sequence[Sequence[File]],
    names: Mapping[str, str],
    plan: Plan,
    progress: Progress | None = None,
) -> Sums:
    """
    Divide the waits of all requests, a pool of handler threads and a piece of time after the other (`Plan.piece_us`).

    The pieces' sums together may be larger than the log: Spark adds them up, on disk if need be, and the driver reads one partition at a time.
    `parts` are all files of the table of requests, each read by one worker, with these names of topics, and the plan is of these. Raises `PipelineError`.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - workers do without

    spark = run.spark
    with shown(spark, "division of waits", progress), errors_restored():
        count = 1 + plan.rows // _PART_ROWS
        rows = by_tasks(spark, parts, partial(_pieces, requests, names, plan), ddl(_PIECES)).repartition(count, GROUP)
        sums = apply_in_arrow(rows, GROUP, partial(_divided, plan), ddl(ROWS))
        values = [sql.sum(name).alias(name) for name in ROWS.names if name not in KEY]
        added = sums.repartition(count, *KEY).groupBy(*KEY).agg(*values)
        # of an iterator's partitions one is made after the other: there is no more to make than to read
        answers = map_in_arrow(added, partial(map, answer_of), ANSWER).repartition(count)
        batches = answers_in(answers.toLocalIterator())
    return Sums.of(pa.Table.from_batches(batches, ROWS))


def _pieces(requests: Table, names: Mapping[str, str], plan: Plan, files: Sequence[File]) -> Iterator[pa.RecordBatch]:
    """The requests of some files, each in all pieces in which it waits or holds a thread."""
    of_listeners = plan.head.pools[1].astype(np.int64)
    for part in read(requests, files, names, (plan.begin_us, plan.end_us)):
        found = plan.head.filled([part])
        begin, end = found.enqueued - MARGIN_US, found.released + MARGIN_US
        places, pieces, _ = spread(begin, end + 1 - begin, plan.piece_us)
        columns: dict[str, Any] = {name: getattr(found, name)[places] for name in _PIECES.names[1:]}
        columns[GROUP] = pieces * len(of_listeners) + of_listeners[found.places[places]]
        yield from pa.table(columns, _PIECES).to_batches()


def _divided(plan: Plan, rows: pa.Table) -> pa.Table:
    columns: Any = {name: rows[name].to_numpy() for name in _PIECES.names[1:]}
    found = replace(plan.head, **columns, rows=np.arange(len(rows)))
    piece, pool = divmod(rows[GROUP][0].as_py(), len(plan.head.listeners))
    begin, end = (at * plan.piece_us for at in (piece, piece + 1))
    ordered = found.only(np.argsort(found.dequeued, kind="stable"))
    return sums_of(ordered, plan, pool, max(begin, plan.begin_us), min(end, plan.end_us))


def replay_frame(
    frame: "DataFrame",
    candidates: Sequence[Candidate],
    mode: Mode = Mode.OPEN_LOOP,
    settings: ReplaySettings | None = None,
) -> "DataFrame":
    """
    What candidates would have done to the requests of a frame, such as `spark.read.format("delta").load("usage/history")`.

    Rows are shuffled into `spark.sql.shuffle.partitions` groups of users, or of entities that may share a limit, and each group is replayed
    by `applyInArrow`. A Python worker holds a group in memory, which is at least the largest user. With rules for client ids alone the
    entities are collected first, which is a job of its own; else nothing runs before an action on the result.

    Args:
        frame: of Spark 4.0 or newer, also of Spark Connect, with the columns that `pipeline.history.HISTORY` describes, in any order; integers
            and floats of any width. Without `file` and `position` the order of requests of one millisecond is Spark's, and a strict mutation
            quota may refuse another one of them.
        candidates: quotas to try, each under another name (`quotascope.quotas.candidates.read_candidates`).
        mode: whether throttled clients send later.
        settings: `ReplaySettings()` unless given.

    Returns:
        One row for each candidate, entity and quota type, with the columns of `pipeline.replay.RESULTS`.

    Raises:
        PipelineError: the frame lacks a column, or has one of another type.
        SparkFailed: Spark is older than 4.0.

    """
    chosen = tuple(candidates)
    grouped = _grouped(_requests(frame), CandidateRules(chosen))
    work = partial(replay, candidates=chosen, mode=mode, settings=settings)
    return apply_in_arrow(grouped, GROUP, work, ddl(RESULTS))


def _requests(frame: "DataFrame") -> "DataFrame":
    """
    The columns that a replay reads, of the types of a history: Spark would cast its own `timestamp` to seconds.

    Rows of an earlier release have some values under a former name only, and null would be taken for an exempt request.
    """
    kinds = dict(frame.dtypes)
    names = {name: [each for each in names_of(HISTORY.field(name)) if each in kinds] for name in NEEDED}
    missing = [name for name in NEEDED if not names[name] and name not in PLACE]
    if missing:
        raise PipelineError(
            f"the frame lacks the columns {', '.join(missing)}; docs/history.md says what a history holds"
        )
    for name, given in names.items():
        wanted = ddl(pa.schema([HISTORY.field(name)])).split()[1]
        for each in given:
            if kinds[each] not in _TAKEN.get(wanted, (wanted,)):
                raise PipelineError(
                    f"the frame's column {each} is {kinds[each]}, not {wanted}; docs/history.md says what it holds"
                )
    quoted = {name: ", ".join(f"`{each}`" for each in given) for name, given in names.items() if given}
    return frame.selectExpr(*(f"coalesce({given}) AS `{name}`" for name, given in quoted.items()))


def _grouped(frame: "DataFrame", rules: CandidateRules) -> "DataFrame":
    if not rules.across_users:
        return grouped_by(frame, "user")
    from pyspark.sql import functions as sql  # noqa: PLC0415 - workers do without

    names = ["user", "client_id"]
    found = collected(frame.select(*names).distinct().dropna())
    entities = Entities(
        users=pa.array([row.user for row in found], pa.string()),
        client_ids=pa.array([row.client_id for row in found], pa.string()),
    )
    groups = groups_of(rules.resolve(entities), len(found)).tolist()
    rows = [(*row, group) for row, group in zip(found, groups, strict=True)]
    schema = "user string, client_id string, together bigint"
    members = frame.sparkSession.createDataFrame(rows, schema)
    known = frame.join(sql.broadcast(members), names, "left")  # a null is an error of the replay
    return grouped_by(known, "together").drop("together")


def grouped_by(frame: "DataFrame", column: str) -> "DataFrame":
    """The rows with `GROUP`, as many as a shuffle has partitions: each is a call, and small ones are replayed at a hundredth of the pace."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - workers do without

    partitions = frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or ""
    count = int(partitions) if partitions.isdigit() else _GROUPS
    return frame.withColumn(GROUP, sql.pmod(sql.xxhash64(column), sql.lit(count)))


def rows_of(history: Table, spark: "SparkSession") -> "DataFrame":
    """The columns of a history that a replay looks at, as a frame; each worker reads the files of a bucket."""
    needed = pa.schema([HISTORY.field(name) for name in NEEDED])
    return by_tasks(spark, list(history.buckets().values()), partial(_read, history), ddl(needed))


def _read(history: Table, files: Sequence[File]) -> Iterator[pa.RecordBatch]:
    """Rows of an earlier release get a place, before all others: by user, as one process replays those of a millisecond."""
    count = 0
    for rows in history.batches(files, NEEDED):
        columns: dict[str, Any] = {name: rows[name] for name in NEEDED}
        if rows["position"].null_count:
            users: Any = pc.binary_join_element_wise("\0", columns["user"], "")
            columns["file"] = pc.coalesce(columns["file"], users)
            columns["position"] = pc.coalesce(columns["position"], pa.array(np.arange(count, count + len(rows))))
        count += len(rows)
        yield pa.record_batch(columns, schema=rows.schema)
