"""From request logs to a usage history on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ..history.store import BUCKETS, History
from ..ingest import Options, Report, Tables, ingest
from ..ingest.files import STANDARD_INPUT, log_files
from ..table.run import run_here
from .engine import MOST_LOCAL_BYTES, Engine, chosen, run_of
from .parts import Progress


def ingest_logs(
    paths: Sequence[str],
    into: str,
    options: Options,
    *,
    buckets: int = BUCKETS,
    engine: Engine = Engine.AUTO,
    progress: Progress = lambda _done, _all: None,
) -> Report:
    """
    Read logs into the folder's tables of requests, and take the new ones over into its history.

    Args:
        paths: files and folders; `-` is standard input.
        into: a folder, or a URI for Spark.
        options: how logs are read.
        buckets: into how many parts users are spread, if the history is new.
        engine: who does the work.
        progress: is told how much is done, and of how much.

    Raises:
        PipelineError: something cannot be read or written; what was committed before stays, and another run goes on from there.

    """
    run = run_of(chosen(engine, _size(paths, options), MOST_LOCAL_BYTES))
    if run is run_here:
        report = ingest(paths, into, options, progress)
    else:
        report = _by_spark(paths, into, options)
    History.create(into, buckets).update(Tables.create(into).requests, run)
    return report


def _by_spark(paths: Sequence[str], into: str, options: Options) -> Report:
    from ..spark.ingest import ingest as ingest_by_spark  # noqa: PLC0415 - brings Spark in
    from ..spark.session import session  # noqa: PLC0415 - as above

    # what can be a program of its own imports absolutely: to mypy its classes are others
    given: Any = options
    report: Any = ingest_by_spark(session(), paths, into, given)
    return cast("Report", report)


def _size(paths: Sequence[str], options: Options) -> int:
    """Bytes of local files; a URI is taken for more than this process should read."""
    if any("://" in path for path in paths):
        return MOST_LOCAL_BYTES + 1
    files = log_files(paths, options.names)
    return sum(Path(file).stat().st_size for file in files if file != STANDARD_INPUT)
