"""
Lines of request logs as a frame, and what becomes of them: read where they are, brought together by part, written by the workers.

Rows cross into Python twice, once as lines and once as requests; between the two they are shuffled, because only rows of one part can be
the same line.
"""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ..ingest import IngestOptions, IngestTables
from ..ingest.committing import Staged
from ..ingest.parts import LINES, ROWS, parsed, staged
from .arrow import collected, ddl, map_in_arrow
from .run import answer_of, raised

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANSWER: Final = "answer binary"
_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_ROWS: Final = 2_000


def lines_of_files(
    spark: "SparkSession", paths: list[str], names: str = "*"
) -> "DataFrame":
    """
    The lines of files that Spark can read, as `LINES`.

    Only line feeds end a line. A compressed file is one task's work; zstd needs Spark 4.1 or Hadoop's native library.
    """
    files = spark.read.format("text").option("lineSep", "\n")
    found = files.option("recursiveFileLookup", "true").option("pathGlobFilter", names)
    return found.load(paths).selectExpr(
        "CAST(value AS BINARY) AS line",
        "_metadata.file_path AS file",
        "_metadata.file_block_start AS start",
        "CAST(NULL AS BIGINT) AS number",
    )


def lines_of_topic(messages: "DataFrame") -> "DataFrame":
    """The messages of Kafka's source, each a line, as `LINES`: topic and partition for a file, the offset for the line's number."""
    return messages.selectExpr(
        "value AS line",
        "concat(topic, '-', partition) AS file",
        "CAST(NULL AS BIGINT) AS start",
        "offset AS number",
    )


def staged_lines(
    lines: "DataFrame", tables: IngestTables, options: IngestOptions
) -> list[Staged]:
    """
    Read lines in `LINES`, and write those that are new; nothing is part of the tables before `Committer.commit`.

    Raises:
        TableError: a worker could not read or write the tables.
        SparkFailed: Spark could not read the lines, or not finish.

    """
    ordered = lines.select(*LINES.names)
    rows = map_in_arrow(ordered, partial(parsed, options), ddl(ROWS))
    # one part after the other, so that a worker need not hold all that a task gets; each in the order of its logs
    together = rows.repartition("part").sortWithinPartitions("part", "line")
    parts = map_in_arrow(together, partial(_staged, tables), _ANSWER)
    with _small_batches(lines.sparkSession):
        answers = [pickle.loads(row.answer) for row in collected(parts)]  # noqa: S301 - of our own workers
    return [raised(answer) for answer in answers]


@contextmanager
def _small_batches(spark: "SparkSession") -> Iterator[None]:
    """Bound what crosses into Python at once also where Spark counts rows only (before 4.1): a row may have 100 kB."""
    before = spark.conf.get(_BATCH) or "0"
    if 0 < int(before) <= _BATCH_ROWS:
        yield
        return
    spark.conf.set(_BATCH, str(_BATCH_ROWS))
    try:
        yield
    finally:
        spark.conf.set(_BATCH, before)


def _staged(
    tables: IngestTables, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    answer = answer_of(partial(staged, tables, batches))
    yield pa.RecordBatch.from_pydict({"answer": [answer]})
