"""
Request logs on Spark: lines of files, or of a Kafka topic as they come.

Rows cross into Python twice: as `LINES`, which `parsed` reads where they come, and as `TOGETHER`, which `staged` writes. Between the two Spark
brings those of one part together, because only they can be the same line. The driver commits.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import bounded, by_number, gathered
from ..errors import SparkFailed, UnreadableLog
from ..ingest import IngestOptions, IngestReport, IngestTables
from ..ingest.committing import Batch, Ingest, Staged
from ..ingest.files import LINK_OUT, log_files, path_here
from ..request_log.parsing import Parsed, parse_lines
from ..request_log.schema import PARSED_QUARANTINE, PARSED_REQUESTS
from ..table.storage import BUCKETS, buckets_of
from .arrow import ANSWER, answer_of, answers_in, collected, ddl, errors_marked, errors_restored, map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_AT_ONCE: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MOST_AT_ONCE: Final = 250
"""Lines, or values with rows (`TOGETHER`), that cross into Python at once."""
_DAMAGED: Final = (
    "native zStandard library",
    "FAILED_READ_FILE",
    "EOFException",
    "ZipException",
    "Unexpected end of input",
    "incorrect data check",
)
"""In Spark's errors about files that it cannot read to their end, what says more before what says less."""
_NO_CONNECTOR: Final = "this Spark has no Kafka connector: run it with spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:{}; where there is none of its version, such as 4.3, use Spark 4.2"

_OF_LINES: Final[Any] = {"line": pa.binary(), "file": pa.string(), "start": pa.int64(), "number": pa.int64()}
LINES: Final = pa.schema(_OF_LINES)
"""Lines in their order: text, file, the byte at which the piece of the file begins (null: unknown), and the line's number, if known."""
_VALUES: Final[Any] = {"part": pa.int64(), "place": pa.int64(), "requests": pa.binary(), "quarantine": pa.binary()}
TOGETHER: Final = pa.schema(_VALUES)
"""
Some requests, or some unreadable lines, of a part in one value (Arrow's IPC), and the place of the first in its log.

Each column of each row costs the JVM time, and a value as much as one: so ingest takes a tenth less CPU time.
"""
TOGETHER_BYTES: Final = 256 << 10
"""Of a value; Spark counts values where it counts rows."""
SLICE_MS: Final = 600_000
"""The requests of a bucket in so much time are one part: what one worker has to hold in memory."""
PIECE: Final = 200_000
"""Rows that a worker holds and writes at once, if they have no more than `PIECE_BYTES`."""
PIECE_BYTES: Final = 64 << 20
"""Of these rows; what is done with them takes several times as much."""
READ: Final = 1 << 16
"""Lines that are read at once, if they have no more than `READ_BYTES`."""
READ_BYTES: Final = 8 << 20
"""Of these lines."""


def ingest(
    spark: "SparkSession", paths: Sequence[str], into: str, options: IngestOptions | None = None
) -> IngestReport:
    """
    As `pipeline.ingest.ingest`, with one commit for each table: where a file is damaged, nothing is added. Raises `SparkFailed` as well.

    Args:
        spark: the session; its workers need this package with the extra `pipeline`, and must reach the tables.
        paths: files, folders and patterns that Spark can read: plain, gzip and, since Spark 4.1 or with Hadoop's native library, zstd.
        into: folder of the tables, as the workers see it.
        options: what has to be known about the logs.

    """
    options = options or IngestOptions()
    _check_links(spark, paths, options)
    topics = options.topics()
    try:
        with errors_restored():  # such as a scheme that has no file system, or credentials that are missing
            lines = lines_of_files(spark, list(paths), options.names)
            if lines.isEmpty():
                return IngestReport()
            adding = Ingest(IngestTables.create(into), topics)
            return adding.add(partial(staged_lines, lines, adding.tables, options))
    except SparkFailed as error:
        if why := _unreadable(error.__cause__):
            raise UnreadableLog(", ".join(paths), why) from error
        raise


def stream(
    lines: "DataFrame", checkpoint: str, add: Callable[["DataFrame", Batch], None], every: str | None = None
) -> None:
    """
    Give lines to `add` as they come, until the query ends or an exception, such as a keyboard interrupt, stops it.

    A batch that was interrupted comes again with the same lines and number after a restart.

    Args:
        lines: a stream of `LINES`; not of Spark Connect, where a batch does not know its query.
        checkpoint: folder of the query's own state; two queries must not share it.
        add: called with the lines of each batch.
        every: how often a batch begins, such as `1 minute`; None reads what there is, and ends.

    Raises:
        PipelineError: what `add` raised; a query that is started again continues with the same batch.
        SparkFailed: the source cannot be read, or Spark gave up for another reason.

    """

    def add_batch(lines: "DataFrame", number: int) -> None:
        context = lines.sparkSession.sparkContext
        # kept with the checkpoint
        query = context.getLocalProperty("sql.streaming.queryId")
        with errors_marked():
            add(lines, Batch(f"stream {query}", number))

    writer: Any = lines.writeStream.option("checkpointLocation", checkpoint)
    trigger = {"processingTime": every} if every else {"availableNow": True}
    with errors_restored():
        query = writer.foreachBatch(add_batch).trigger(**trigger).start()
        try:
            query.awaitTermination()
        finally:
            with suppress(Exception):  # of a JVM that is gone
                query.stop()


def lines_of_files(spark: "SparkSession", paths: list[str], names: str = "*") -> "DataFrame":
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


def lines_of_topic(spark: "SparkSession", source: Mapping[str, str]) -> "DataFrame":
    """
    The messages of a topic as they come, each a line, as `LINES`.

    Args:
        spark: the session, with Kafka's connector.
        source: options of Spark's source: `kafka.bootstrap.servers`, `subscribe`, `kafka.security.protocol`, …

    Raises:
        SparkFailed: there is no connector, or an option is wrong.

    """
    topic = spark.readStream.format("kafka").option("startingOffsets", "earliest")
    try:
        with errors_restored():
            return lines_of_messages(topic.options(**source).load())
    except SparkFailed as error:
        if "data source: kafka" in str(error.__cause__):
            raise SparkFailed(_NO_CONNECTOR.format(spark.version)) from error
        raise


def lines_of_messages(messages: "DataFrame") -> "DataFrame":
    """Rows of Kafka's source as `LINES`: topic and partition for a file, the offset for the line's number."""
    return messages.selectExpr(
        "value AS line", "concat(topic, '-', partition) AS file", "CAST(NULL AS BIGINT) AS start", "offset AS number"
    )


def staged_lines(lines: "DataFrame", tables: IngestTables, options: IngestOptions) -> Staged:
    """
    Read lines in `LINES`, and write those that are new; nothing is part of the tables before `Ingest.add` commits it.

    Raises what `collected` raises.
    """
    read = lines.select(*LINES.names)
    rows = map_in_arrow(read, lambda batches: map(packed, parsed(options, batches)), ddl(TOGETHER))
    # one part after the other, so that a worker need not hold all that a task gets; each in the order of its logs
    together = rows.repartition("part").sortWithinPartitions("part", "place")
    answers = map_in_arrow(together, lambda batches: [answer_of(staged(tables, batches))], ANSWER)
    whole, conf = Staged(), lines.sparkSession.conf
    # a row may have 100 kB, and before 4.1 Spark counts rows only
    before = conf.get(_ROWS_AT_ONCE) or "0"
    conf.set(_ROWS_AT_ONCE, before if 0 < int(before) <= _MOST_AT_ONCE else str(_MOST_AT_ONCE))
    try:
        for part in answers_in(collected(answers)):
            whole.add(part)
    finally:
        conf.set(_ROWS_AT_ONCE, before)
    return whole


def packed(found: Parsed) -> pa.RecordBatch:
    """What became of lines as `TOGETHER`: wherever a line is read, its part is the same."""
    slices = np.asarray(found.requests["timestamp"].to_numpy(), np.int64) // SLICE_MS
    parts = slices * BUCKETS + buckets_of(found.requests["user"], BUCKETS)
    identities: list[Any] = found.quarantine["identity"].to_pylist()
    beginnings = np.array([-1 - identity[0] for identity in identities], np.int64)
    values = [
        {"part": part, "place": piece[place][0].as_py(), table: piece.serialize().to_pybytes()}
        for table, place, rows, numbers in (
            ("requests", "position", found.requests, parts),
            ("quarantine", "line", found.quarantine, beginnings),
        )
        for part, of_part in by_number(rows, numbers)
        for batch in of_part.combine_chunks().to_batches()
        for piece in bounded(batch, len(batch), TOGETHER_BYTES)
    ]
    return pa.RecordBatch.from_pylist(values, TOGETHER)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`TOGETHER` as `PARSED_REQUESTS` and `PARSED_QUARANTINE`."""
    for batch in batches:
        for requests, quarantine in zip(batch["requests"], batch["quarantine"], strict=True):
            value, schema = (requests, PARSED_REQUESTS) if requests.is_valid else (quarantine, PARSED_QUARANTINE)
            yield pa.ipc.read_record_batch(value.as_buffer(), schema)


def parsed(options: IngestOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[Parsed]:
    """Read lines in `LINES`."""
    counts: dict[tuple[str, int], int] = {}
    for lines in _pieces(batches):
        file, start = (lines.column(name)[0].as_py() for name in ("file", "start"))
        numbers = lines.column("number")
        if start is not None:
            # no line before it has a greater number: each has a byte
            first = counts.get((file, start), start) + 1
            counts[file, start] = first - 1 + lines.num_rows
            numbers = pa.array(np.arange(first, first + lines.num_rows))
        if file.startswith("file:/"):
            # of this machine: its path, as one process names it
            file = unquote(path_here(file))
        source = replace(options.source(file), numbered=not start)
        yield parse_lines(lines.column("line").to_pylist(), numbers.to_pylist(), source)


def staged(tables: IngestTables, batches: Iterable[pa.RecordBatch]) -> Staged:
    """
    Write the rows of `TOGETHER` that are new, in the memory of some rows and of the identities beside them.

    The rows of a part have to come together. Raises `TableError`.
    """
    held = gathered(unpacked(batches), PIECE, PIECE_BYTES)
    return Ingest(tables).stage((Parsed.of(each).combined() for each in held), of_many=True)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As many lines of one piece of one file as are read at once."""
    for held in gathered(batches, READ, READ_BYTES):
        (lines,) = pa.Table.from_batches(held).combine_chunks().to_batches()
        runs: Any = (pc.call_function("run_end_encode", [lines.column(name)]) for name in ("file", "start"))
        ends = chain.from_iterable(each.run_ends.to_pylist() for each in runs)
        for begin, end in pairwise(sorted({0, *ends})):
            yield lines.slice(begin, end - begin)


def _check_links(spark: "SparkSession", paths: Sequence[str], options: IngestOptions) -> None:
    """Refuse folders of this machine with links out of them, which Spark would follow."""
    folders = [path for path in paths if os.path.isdir(path_here(path))]  # noqa: PTH112 - a Path raises where a folder may not be entered
    if folders and not options.follow_links:
        default = spark.conf.get("spark.hadoop.fs.defaultFS", "file:///") or ""
        here = default.startswith("file:")
        local = [path_here(path) for path in folders if here or path.startswith("file:/")]
        for path, why in log_files(local, options.names)[1].items():
            if why is LINK_OUT:
                raise UnreadableLog(path, why)


def _unreadable(error: BaseException | None) -> str | None:
    """What Spark says of files that are not there, or that it cannot read to their end; None of anything else."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - as late as can be

    lines = [line.strip(" :") for line in str(error).splitlines()]
    if not isinstance(error, AnalysisException):
        lines = [f"Spark cannot read it to its end: {line}" for word in _DAMAGED for line in lines if word in line]
    return lines[0] if lines else None
