"""From request logs to a usage history on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..history import History
from ..ingest import IngestOptions, IngestReport, IngestTables
from ..ingest.committing import Batch, Ingest
from ..ingest.files import STANDARD_INPUT, as_private_as, log_files, path_here, size_of
from ..losses import losses_of
from ..table import Progress
from ..table.storage import SHARDS
from .engine import MOST_LOCAL_BYTES, EngineChoice, chosen, engine_of, on_spark


def ingest_logs(
    paths: Sequence[str],
    into: str,
    options: IngestOptions,
    *,
    shards: int = SHARDS,
    engine: EngineChoice = EngineChoice.AUTO,
    progress: Progress = lambda _done, _all: None,
) -> IngestReport:
    """
    Read logs into the folder's tables of requests, and take the new requests over into its history.

    Files of this process have the permissions of the logs (`as_private_as`). Without a line no table is made.

    Args:
        paths: files and folders; `-` is standard input.
        into: a folder, or a URI for Spark.
        options: options for reading the logs.
        shards: number of shards that users are spread over, if the tables are new.
        engine: the engine that does the work.
        progress: called with the amount of done work, and of all: bytes of the logs, and tasks on Spark.

    Raises:
        PipelineError: a log or table cannot be read or written; earlier commits stay, and another run continues from
            there.

    """
    local_paths = [path_here(path) for path in paths]
    files: list[str] = []
    size = MOST_LOCAL_BYTES + 1  # a URI is expected to hold more than this process should read
    if not any("://" in path for path in local_paths):
        files, _ = log_files(local_paths, options.names, follow_links=options.follow_links)
        size = sum(map(size_of, files))
    if STANDARD_INPUT in files and engine is EngineChoice.AUTO:
        engine = EngineChoice.LOCAL  # workers of Spark do not have it
    workers = engine_of(chosen(engine, size, MOST_LOCAL_BYTES))
    with as_private_as(files):
        report = workers.ingest(paths, into, options, shards=shards, progress=progress)
        if report.read:
            History.create(into, shards).update(IngestTables.create(into, shards).requests, workers.map)
            if report.span_ms is not None:
                report.losses = losses_of(into, report.span_ms)
    return report


def ingest_topic(  # noqa: PLR0913 - a source, a sink, and what lies between
    source: Mapping[str, str],
    into: str,
    checkpoint: str,
    options: IngestOptions,
    *,
    shards: int = SHARDS,
    every: str | None = None,
    done: Callable[[int, IngestReport], None],
) -> None:
    """
    Read logs from a Kafka topic, each message a line, by a stream of Spark.

    Each batch goes into the folder's tables, and then into its history.

    An interrupted batch comes again: its commits are found in the tables, and the history takes over each commit once.

    Args:
        source: options of Spark's Kafka source.
        into: a folder, or a URI.
        checkpoint: folder of the stream's own state, of no other stream.
        options: options for reading the logs.
        shards: number of shards that users are spread over, if the tables are new.
        every: interval of batches, such as `1 minute`; None reads the messages that there are, and ends.
        done: called with the number of each batch and its report.

    Raises:
        NoSpark: Spark is not installed.
        PipelineError: a message or table cannot be read or written; earlier commits stay, and another run continues
            from there.

    """
    workers = on_spark()
    from ..spark.ingest import lines_of_topic, staged_lines, stream  # noqa: PLC0415 - brings Spark in

    adding = Ingest(IngestTables.create(into, shards), options.topics())
    history = History.create(into, shards)

    def add(lines: Any, batch: Batch) -> None:  # noqa: ANN401 - a frame of Spark
        """Add the lines of a batch to the tables and to the history."""
        stage = partial(staged_lines, lines, adding.tables, options)
        report = adding.add(stage, batch)
        history.update(adding.tables.requests, workers.map)
        if report.span_ms is not None:
            report.losses = losses_of(into, report.span_ms)
        done(batch.number, report)

    stream(lines_of_topic(workers.spark, source), checkpoint, add, every)
