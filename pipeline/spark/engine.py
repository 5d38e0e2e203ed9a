"""
The engine that does its work on Spark's Python workers.

What is sent are functions of this package, paths, and the names of files. In `map` rows go straight between the workers
and the tables' files, without the JVM, at a third of the CPU time. In `grouped` and `waits` Spark shuffles the rows, as
those of any two files may meet. Every worker needs this package with its extra `pipeline`, and must reach the tables'
paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from ..blame.summing import Plan, Requests, Sums, surveys
from ..columns import GroupKey
from ..engine import Engine
from ..engine.base import Answer, Item
from ..ingest import IngestOptions, IngestReport
from ..table import Progress, Table
from .arrow import ANSWER, answer_of, answers_in, apply_in_arrow, collected
from .ingest import ingest
from .session import by_tasks, shown
from .shuffled import GROUP, grouped_by, rows_of
from .waits import waits_divided

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Spark(Engine):
    """
    Gives the work to the workers of a session; progress is in Spark's tasks.

    An error of the work is raised as the work raises it; `SparkFailed` is raised if Spark gives up for another reason.
    """

    spark: SparkSession
    doing: str = "parts of tables"
    """
    Name of the items of `map` in Spark's UI.

    Task 0 of `quotascope: replay of shards 1 to 16` does the first one.
    """

    def map(
        self, work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
    ) -> Iterable[Answer]:
        """Return the answers; each item is a task of its own."""
        if not items:
            return []
        with shown(self.spark, f"{self.doing} 1 to {len(items)}", progress):
            answers = by_tasks(self.spark, items, lambda item: [answer_of(work(item))], ANSWER)
            return answers_in(collected(answers))

    def grouped(
        self,
        table: Table,
        columns: Sequence[str],
        key: GroupKey,
        work: Callable[[pa.Table], Answer],
        doing: str,
        progress: Progress | None = None,
    ) -> Iterable[Answer]:
        """Return an answer for each partition of a shuffle; a worker holds one partition in memory."""
        with shown(self.spark, doing, progress):
            rows = grouped_by(rows_of(table, columns, self.spark), key)
            return answers_in(collected(apply_in_arrow(rows, GROUP, partial(_answered, work), ANSWER)))

    def waits(self, requests: Requests, threads: int | None, progress: Progress | None = None) -> tuple[Plan, Sums]:
        """Survey each file by the worker that reads its shard, then divide the waits by pieces of time."""
        survey = partial(surveys, requests.table, names=requests.names, span_us=requests.span_us)
        plan = requests.plan(list(chain.from_iterable(self.map(survey, requests.shards))), threads)
        with shown(self.spark, "division of waits", progress):
            return plan, waits_divided(self.spark, requests, plan)

    def ingest(
        self, paths: Sequence[str], into: str, options: IngestOptions, *, shards: int, progress: Progress
    ) -> IngestReport:
        """Commit all lines at once, as `quotascope.pipeline.spark.ingest.ingest` does."""
        with shown(self.spark, "reading of request logs", progress):
            return ingest(self.spark, paths, into, options, shards=shards)


def _answered(work: Callable[[pa.Table], object], rows: pa.Table) -> pa.Table:
    """Return the answer of the work on rows as a table of one row, which `answers_in` reads."""
    return pa.Table.from_batches([answer_of(work(rows))])
