"""From request logs to a usage history on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..history import History
from ..ingest import IngestOptions, IngestReport, IngestTables, ingest
from ..ingest.committing import Batch, Ingest
from ..ingest.files import STANDARD_INPUT, as_private_as, log_files, path_here, size_of
from ..table import Progress
from ..table.storage import BUCKETS
from ..table.table import run_here
from .engine import MOST_LOCAL_BYTES, Engine, chosen, run_of


def ingest_logs(
    paths: Sequence[str],
    into: str,
    options: IngestOptions,
    *,
    buckets: int = BUCKETS,
    engine: Engine = Engine.AUTO,
    progress: Progress = lambda _done, _all: None,
) -> IngestReport:
    """
    Read logs into the folder's tables of requests, and take the new ones over into its history.

    What this process writes has the permissions of the logs (`as_private_as`). Without a line in them it makes nothing.

    Args:
        paths: files and folders; `-` is standard input.
        into: a folder, or a URI for Spark.
        options: how logs are read.
        buckets: into how many parts users are spread, if the history is new.
        engine: what does the work.
        progress: called with how much is done, and of how much: bytes of the logs, and tasks on Spark.

    Raises:
        PipelineError: something cannot be read or written; what was committed before stays, and another run continues from there.

    """
    here = [path_here(path) for path in paths]
    files: list[str] = []
    size = MOST_LOCAL_BYTES + 1  # a URI is taken for more than this process should read
    if not any("://" in path for path in here):
        files, _ = log_files(here, options.names, follow_links=options.follow_links)
        size = sum(map(size_of, files))
    if STANDARD_INPUT in files and engine is Engine.AUTO:
        engine = Engine.LOCAL  # workers of Spark do not have it
    run = run_of(chosen(engine, size, MOST_LOCAL_BYTES))
    with as_private_as(files):
        if run is run_here:
            report = ingest(here, into, options, progress)
        else:
            from ..spark.ingest import ingest as ingest_by_spark  # noqa: PLC0415 - brings Spark in
            from ..spark.run import session, shown  # noqa: PLC0415 - as above

            with shown(session(), "reading of request logs", progress):
                report = ingest_by_spark(session(), paths, into, options)
        if report.read:
            History.create(into, buckets).update(IngestTables.create(into).requests, run)
    return report


def ingest_topic(  # noqa: PLR0913 - a source, a sink, and what lies between
    source: Mapping[str, str],
    into: str,
    checkpoint: str,
    options: IngestOptions,
    *,
    buckets: int = BUCKETS,
    every: str | None = None,
    done: Callable[[int, IngestReport], None],
) -> None:
    """
    Read logs from a Kafka topic, each message a line, by a stream of Spark: each batch into the folder's tables, and then into its history.

    A batch that was interrupted anywhere comes again: what it had committed is found in the tables, and the history takes over each commit once.

    Args:
        source: options of Spark's Kafka source.
        into: a folder, or a URI.
        checkpoint: folder of the stream's own state, of no other stream.
        options: how logs are read.
        buckets: into how many parts users are spread, if the history is new.
        every: how often, such as `1 minute`; None reads what there is, and ends.
        done: called with the number of each batch and what became of it.

    Raises:
        NoSpark: it is not installed.
        PipelineError: something cannot be read or written; what was committed before stays, and another run continues from there.

    """
    run = run_of(Engine.SPARK)
    from ..spark.ingest import lines_of_topic, staged_lines, stream  # noqa: PLC0415 - brings Spark in
    from ..spark.run import session  # noqa: PLC0415 - as above

    adding = Ingest(IngestTables.create(into), options.topics())
    history = History.create(into, buckets)

    def add(lines: Any, batch: Batch) -> None:  # noqa: ANN401 - a frame of Spark
        stage = partial(staged_lines, lines, adding.tables, options)
        report = adding.add(stage, batch)
        history.update(adding.tables.requests, run)
        done(batch.number, report)

    stream(lines_of_topic(session(), source), checkpoint, add, every)
