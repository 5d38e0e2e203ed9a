"""
Request logs on Spark: lines of files, or of a Kafka topic as they come.

Rows cross into Python twice: as `LINES`, which `parsed` reads where they come, and as `TOGETHER`, which `staged`
writes. Between the two Spark brings those of one part together, because only they can be the same line. The driver
commits.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BufferedReader, BytesIO
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import Numbers, bounded, by_number, gathered
from ..errors import SparkFailed, UnreadableLog
from ..ingest import IngestOptions, IngestReport, IngestTables
from ..ingest.committing import Batch, Ingest, Staged
from ..ingest.files import LINK_OUT, log_files, path_here, printable
from ..ingest.local import DAMAGED, lines_in
from ..request_log.joining import Joiner
from ..request_log.parsing import LONGEST, LogSource, Parsed, parse_lines, parse_rest
from ..request_log.schema import PARSED_QUARANTINE, PARSED_REQUESTS
from ..table.storage import SHARDS, shards_of
from .arrow import ANSWER, answer_of, answers_in, collected, ddl, errors_marked, errors_restored, map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_AT_ONCE: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MOST_AT_ONCE: Final = 250
"""Number of lines, or values with rows (`TOGETHER`), that cross into Python at once."""
_NO_ZSTD: Final = "native zStandard library"
MOST_DAMAGED_BYTES: Final = 256 << 20
"""Size of the largest damaged compressed file that is read."""
_DAMAGED: Final = (
    _NO_ZSTD,
    "FAILED_READ_FILE",
    "EOFException",
    "ZipException",
    "Unexpected end of input",
    "incorrect data check",
)
"""Texts in Spark's errors about files that it cannot read to their end, specific ones first."""
_NO_CONNECTOR: Final = (
    "this Spark has no Kafka connector: run it with spark-submit --packages "
    "org.apache.spark:spark-sql-kafka-0-10_2.13:{}; where there is none of its version, use an older Spark"
)

_OF_LINES: Final[Any] = {"line": pa.binary(), "file": pa.string(), "start": pa.int64(), "number": pa.int64()}
LINES: Final = pa.schema(_OF_LINES)
"""
Lines in their order: text, file, begin of the file's piece in bytes, and the line's number.

Begin and number are null if they are unknown.
"""
_VALUES: Final[Any] = {"part": pa.int64(), "place": pa.int64(), "requests": pa.binary(), "quarantine": pa.binary()}
TOGETHER: Final = pa.schema(_VALUES)
"""
Some requests, or some unreadable lines, of a part in one value (Arrow's IPC), and the place of the first in its log.

Each column of each row costs the JVM time, and a value as much as one: so ingest takes a tenth less CPU time.
"""
TOGETHER_BYTES: Final = 256 << 10
"""Size of a value; Spark counts values where it counts rows."""
SLICE_MS: Final = 600_000
"""Time of a part: the requests of a shard in so much time, which one worker holds in memory."""
PIECE: Final = 200_000
"""Number of rows that a worker holds and writes at once, if they have no more than `PIECE_BYTES`."""
PIECE_BYTES: Final = 64 << 20
"""Size of these rows; work on them takes several times as much."""
READ: Final = 1 << 16
"""Number of lines that are read at once, if they have no more than `READ_BYTES`."""
READ_BYTES: Final = 8 << 20
"""Size of these lines."""


def ingest(
    spark: "SparkSession",
    paths: Sequence[str],
    into: str,
    options: IngestOptions | None = None,
    *,
    shards: int = SHARDS,
) -> IngestReport:
    """
    Ingest as `pipeline.ingest.ingest`, with one commit for each table. Raises `SparkFailed` as well.

    Spark names one file that it cannot read to its end, and stops there. That file is read as a single process reads
    it, so that the same lines count, up to `MOST_DAMAGED_BYTES`, and all files are read again.

    Args:
        spark: the session; its workers need this package with the extra `pipeline`, and must reach the tables.
        paths: files, folders and patterns that Spark can read: plain, gzip and, since Spark 4.1 or with Hadoop's native
            library, zstd.
        into: folder of the tables, as the workers see it.
        options: broker, zone and other facts about the logs.
        shards: number of shards that users are spread over, if the tables are new.

    """
    options = options or IngestOptions()
    _check_links(spark, paths, options)
    topics = options.topics()
    damaged: dict[str, str] = {}
    while True:
        try:
            with errors_restored():  # such as a scheme without a file system, or missing credentials
                lines = lines_of_files(spark, list(paths), options.names, list(damaged))
                report = IngestReport()
                if not lines.isEmpty():
                    adding = Ingest(IngestTables.create(into, shards), topics)
                    report = adding.add(partial(staged_lines, lines, adding.tables, options))
                report.broken |= {printable(unquote(path_here(file))): reason for file, reason in damaged.items()}
                return report
        except SparkFailed as error:
            if (reason := _unreadable(error.__cause__)) is None:
                raise
            file = _named_in(error.__cause__)
            if file is None or file in damaged or _NO_ZSTD in reason:
                raise UnreadableLog(", ".join(paths), reason) from error
            damaged[file] = DAMAGED.format("Spark cannot read it to its end")


def stream(
    lines: "DataFrame", checkpoint: str, add: Callable[["DataFrame", Batch], None], every: str | None = None
) -> None:
    """
    Pass lines to `add` as they come, until the query ends or an exception, such as a keyboard interrupt, stops it.

    A batch that was interrupted comes again with the same lines and number after a restart.

    Args:
        lines: a stream of `LINES`; not of Spark Connect, where a batch does not know its query.
        checkpoint: folder of the query's own state; two queries must not share it.
        add: called with the lines of each batch.
        every: interval of batches, such as `1 minute`; None reads the lines that there are, and ends.

    Raises:
        PipelineError: an error of `add`; a query that is started again continues with the same batch.
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


def lines_of_files(
    spark: "SparkSession", paths: list[str], names: str = "*", damaged: Sequence[str] = ()
) -> "DataFrame":
    """
    Return the lines of files that Spark can read, as `LINES`.

    Only line feeds end a line. A compressed file is one task's work; zstd needs Spark 4.1 or Hadoop's native library. A
    file in `damaged`, which has URIs as Spark names them, yields the lines of its whole members.
    """
    files = spark.read.format("text").option("lineSep", "\n")
    texts = files.option("recursiveFileLookup", "true").option("pathGlobFilter", names).load(paths)
    if not damaged:
        return _as_lines(texts)
    undamaged = [_literal(file) for file in texts.inputFiles() if file not in damaged]
    contents = spark.read.format("binaryFile").load([*map(_literal, damaged)])
    contents = contents.where(f"length <= {MOST_DAMAGED_BYTES}")
    lines = map_in_arrow(contents.select("path", "content"), _whole_members, ddl(LINES))
    return lines.union(_as_lines(files.load(undamaged))) if undamaged else lines


def _literal(file: str) -> str:
    """
    Return a file's URI, as Spark names it, as a path to load.

    The path is no pattern, whatever characters the name has.
    """
    return re.sub(r"[\[\]{}*?\\]", r"\\\g<0>", unquote(file))


def _as_lines(texts: "DataFrame") -> "DataFrame":
    """Return the rows of Spark's text files as `LINES`."""
    return texts.selectExpr(
        "CAST(value AS BINARY) AS line",
        "_metadata.file_path AS file",
        "_metadata.file_block_start AS start",
        "CAST(NULL AS BIGINT) AS number",
    )


def _whole_members(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the lines of damaged files, given as path and content, as `LINES`."""
    for batch in batches:
        paths: list[Any] = batch["path"].to_pylist()
        for path, content in zip(paths, batch["content"], strict=True):
            file, raw = quote(path, safe="/:"), BufferedReader(BytesIO(content.as_buffer()))
            with suppress(UnreadableLog):  # the driver says so
                for lines, _ in lines_in(raw, path):
                    columns: list[Any] = [[file] * len(lines), [0] * len(lines), [None] * len(lines)]
                    yield pa.record_batch([lines, *columns], schema=LINES)


def lines_of_topic(spark: "SparkSession", source: Mapping[str, str]) -> "DataFrame":
    """
    Return a stream of a topic's messages with the columns `LINES`, a row for each message.

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
    """Return rows of Kafka's source as `LINES`: the file is topic and partition, the line's number is the offset."""
    return messages.selectExpr(
        "value AS line", "concat(topic, '-', partition) AS file", "CAST(NULL AS BIGINT) AS start", "offset AS number"
    )


def staged_lines(lines: "DataFrame", tables: IngestTables, options: IngestOptions) -> Staged:
    """
    Parse lines in `LINES`, and write the new ones; no row is part of the tables before `Ingest.add` commits it.

    Raises what `collected` raises.
    """
    columns, shards = lines.select(*LINES.names), tables.requests.layout.shards
    rows = map_in_arrow(
        columns, lambda batches: (packed(part, shards) for part in parsed(options, batches)), ddl(TOGETHER)
    )
    # one part after the other, so that a worker need not hold all that a task gets; each in the order of its logs
    together = rows.repartition("part").sortWithinPartitions("part", "place")
    answers = map_in_arrow(together, lambda batches: [answer_of(staged(tables, batches))], ANSWER)
    result, conf = Staged(), lines.sparkSession.conf
    # a row may have 100 kB, and before 4.1 Spark counts rows only
    rows_at_once = conf.get(_ROWS_AT_ONCE) or "0"
    conf.set(_ROWS_AT_ONCE, rows_at_once if 0 < int(rows_at_once) <= _MOST_AT_ONCE else str(_MOST_AT_ONCE))
    try:
        for part in answers_in(collected(answers)):
            result.add(part)
    finally:
        with suppress(Exception):  # of a JVM that is gone
            conf.set(_ROWS_AT_ONCE, rows_at_once)
    return result


def packed(lines: Parsed, shards: int = SHARDS) -> pa.RecordBatch:
    """
    Pack lines as `TOGETHER`. The part of a line depends on its content alone, and not on the worker that reads it.

    A part has the requests of one shard in `SLICE_MS`, or the unreadable lines whose identities begin with one byte.

    Args:
        lines: the parsed lines.
        shards: number of shards of the table of requests, so that a part is of one shard.

    """
    slices = np.asarray(lines.requests["timestamp"].to_numpy(), np.int64) // SLICE_MS
    parts_of_requests = slices * shards + shards_of(lines.requests["user"], shards)
    # negative, so that no part has both requests and unreadable lines
    identities: list[Any] = lines.quarantine["identity"].to_pylist()
    parts_of_unreadable = np.array([-1 - identity[0] for identity in identities], np.int64)
    requests = _values("requests", "position", lines.requests, parts_of_requests)
    unreadable = _values("quarantine", "line", lines.quarantine, parts_of_unreadable)
    return pa.RecordBatch.from_pylist([*requests, *unreadable], TOGETHER)


def _values(table: str, place: str, rows: pa.Table, parts: Numbers) -> Iterator[dict[str, Any]]:
    """
    Yield the rows of `TOGETHER` that have `rows` in the column `table`: of each part, pieces of `TOGETHER_BYTES`.

    `parts` has the part of each row, and `place` is the column of `rows` with the place in the log.
    """
    for part, of_part in by_number(rows, parts):
        for batch in of_part.combine_chunks().to_batches():
            for piece in bounded(batch, len(batch), TOGETHER_BYTES):
                yield {"part": part, "place": piece[place][0].as_py(), table: piece.serialize().to_pybytes()}


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `TOGETHER` as `PARSED_REQUESTS` and `PARSED_QUARANTINE`."""
    for batch in batches:
        for requests, quarantine in zip(batch["requests"], batch["quarantine"], strict=True):
            value, schema = (requests, PARSED_REQUESTS) if requests.is_valid else (quarantine, PARSED_QUARANTINE)
            yield pa.ipc.read_record_batch(value.as_buffer(), schema)


def parsed(options: IngestOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[Parsed]:
    """
    Parse lines in `LINES`.

    The lines of a file's piece come in order, but maybe in several batches, so the number of its last line and its
    `Joiner` are kept by piece.
    """
    counts: dict[tuple[str, int], int] = {}
    joiners: dict[tuple[str, int | None], tuple[LogSource, Joiner]] = {}
    for lines in _pieces(batches):
        file, start = (lines.column(name)[0].as_py() for name in ("file", "start"))
        numbers = lines.column("number")
        if start is not None:
            # no line before it has a greater number: each has a byte
            first_line = counts.get((file, start), start) + 1
            counts[file, start] = first_line - 1 + lines.num_rows
            numbers = pa.array(np.arange(first_line, first_line + lines.num_rows))
        if file.startswith("file:/"):
            # of this machine: its path, as one process names it
            file = unquote(path_here(file))
        source = replace(options.source(file), numbered=not start)
        _, joiner = joiners.setdefault((file, start), (source, Joiner(LONGEST)))
        yield parse_lines(lines.column("line").to_pylist(), numbers.to_pylist(), source, joiner)
    for source, joiner in joiners.values():
        yield parse_rest(joiner, source)


def staged(tables: IngestTables, batches: Iterable[pa.RecordBatch]) -> Staged:
    """
    Write the new rows of `TOGETHER`, in the memory of some rows and of the identities beside them.

    The rows of a part have to come together. Raises `TableError`.
    """
    pieces = gathered(unpacked(batches), PIECE, PIECE_BYTES)
    return Ingest(tables).stage((Parsed.of(batches_of_piece).combined() for batches_of_piece in pieces), of_many=True)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield as many lines of one piece of one file as are read at once."""
    for batches_at_once in gathered(batches, READ, READ_BYTES):
        (lines,) = pa.Table.from_batches(batches_at_once).combine_chunks().to_batches()
        # cut where the file or its piece changes
        runs: Any = (pc.call_function("run_end_encode", [lines.column(name)]) for name in ("file", "start"))
        ends = chain.from_iterable(run.run_ends.to_pylist() for run in runs)
        for begin, end in pairwise(sorted({0, *ends})):
            yield lines.slice(begin, end - begin)


def _check_links(spark: "SparkSession", paths: Sequence[str], options: IngestOptions) -> None:
    """Refuse folders of this machine with links out of them, which Spark would follow."""
    # a Path raises where a folder may not be entered
    folders = [path for path in paths if os.path.isdir(path_here(path))]  # noqa: PTH112
    if folders and not options.follow_links:
        default = spark.conf.get("spark.hadoop.fs.defaultFS", "file:///") or ""
        default_is_local = default.startswith("file:")
        local = [path_here(path) for path in folders if default_is_local or path.startswith("file:/")]
        for path, reason in log_files(local, options.names)[1].items():
            if reason is LINK_OUT:
                raise UnreadableLog(path, reason)


def _named_in(error: BaseException | None) -> str | None:
    """Return the URI of the file that Spark says it cannot read."""
    match = re.search(r"reading file (\S+?)\.?(?:\s|$)", str(error))
    return match[1] if match else None


def _unreadable(error: BaseException | None) -> str | None:
    """
    Return Spark's message about files that do not exist, or that it cannot read to their end.

    It is None for other errors.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - as late as can be

    lines = [line.strip(" :") for line in str(error).splitlines()]
    if not isinstance(error, AnalysisException):
        lines = [f"Spark cannot read it to its end: {line}" for word in _DAMAGED for line in lines if word in line]
    return lines[0] if lines else None
