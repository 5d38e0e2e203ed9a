"""
Work done by Spark's Python workers.

What is sent are functions of this package, paths, and the names of files; rows go straight between the workers and the tables' files,
without the JVM. Every worker needs this package with its extra `pipeline`, and must reach the tables' paths.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..errors import PipelineError
from ..table.table import Answer, Item
from .arrow import collected, map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWER: Final = "answer binary"


@dataclass(frozen=True)
class SparkRun:
    """Gives each item to a task of its own (`quotascope.pipeline.table.Run`)."""

    spark: "SparkSession"

    def __call__(
        self, work: Callable[[Item], Answer], items: Sequence[Item]
    ) -> Iterable[Answer]:
        """
        Return the answers in the order of the items.

        Raises:
            PipelineError: what the work raised; Spark does not try that again.
            SparkFailed: Spark gave up for another reason.

        """
        count = len(items)
        if not count:
            return []
        tasks = self.spark.range(0, count, 1, count)
        worked = partial(_worked, work, items)
        rows = map_in_arrow(tasks, worked, f"number long, {_ANSWER}")
        numbered = {row.number: pickle.loads(row.answer) for row in collected(rows)}  # noqa: S301 - of our own workers
        return [raised(numbered[number]) for number in range(count)]


def _worked(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers: list[Any] = batch.column("id").to_pylist()
        for number in numbers:
            answer = answer_of(partial(work, items[number]))
            yield pa.RecordBatch.from_pydict({"number": [number], "answer": [answer]})


def answer_of(work: Callable[[], Any]) -> bytes:
    """What work on a worker answers, pickled: an error of ours, which would come again, too; others are Spark's to try again."""
    try:
        return pickle.dumps(work())
    except PipelineError as error:
        return pickle.dumps(error)


def raised(answer: Any) -> Any:  # noqa: ANN401 - whatever the work answers
    """The answer, unless it is an error: that is raised."""
    if isinstance(answer, PipelineError):
        raise answer
    return answer
