"""Request logs into tables on Spark: what one process does, for paths of any size that Spark can read."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import SparkFailed, UnreadableLog
from ..ingest import IngestOptions, IngestReport, IngestTables
from ..ingest.committing import Committer, Staged
from ..ingest.files import LINK_OUT, log_files, path_here
from ..request_log.mutations import MutationLedger
from .lines import lines_of_files, staged_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_ZSTD: Final = "native zStandard library"
_DAMAGED: Final = ("FAILED_READ_FILE", "EOFException", "ZipException", "Unexpected end of input", "incorrect data check", _NO_ZSTD)  # fmt: skip
"""In Spark's errors about files that it cannot read to their end."""


def ingest(
    spark: "SparkSession",
    paths: Sequence[str],
    into: str,
    options: IngestOptions | None = None,
) -> IngestReport:
    """
    Read request logs into the tables of a folder; lines that are there already add nothing. One commit for each table.

    Args:
        spark: the session; its workers need this package with the extra `pipeline`, and must reach the tables.
        paths: files, folders and patterns that Spark can read: plain, gzip and, since Spark 4.1 or with Hadoop's native library, zstd.
        into: folder of the tables, as the workers see it.
        options: what has to be known about the logs.

    Raises:
        UnreadableLog: a path is not there, or a file is damaged; nothing was added.
        BadSnapshot: the topic snapshot cannot be read.
        LostCommit: other runs committed first each time; run this again.
        TableError: the tables cannot be read or written.
        SparkFailed: Spark gave up for another reason.

    """
    options = options or IngestOptions()
    _check_links(spark, paths, options)
    tables = IngestTables.create(into)
    committer = Committer(tables, MutationLedger(options.topics()))
    return committer.add(partial(_staged, spark, list(paths), tables, options))


def _check_links(
    spark: "SparkSession", paths: Sequence[str], options: IngestOptions
) -> None:
    """Refuse folders of this machine with links out of them, which Spark would follow."""
    folders = [path for path in paths if Path(path_here(path)).is_dir()]
    if options.follow_links or not folders:
        return
    default = spark.conf.get("spark.hadoop.fs.defaultFS", "file:///") or ""
    here = default.startswith("file:")
    local = [path_here(path) for path in folders if here or path.startswith("file:/")]
    if not local:
        return
    for path, why in log_files(local, options.names).left_out.items():
        if why is LINK_OUT:
            raise UnreadableLog(path, why)


def _staged(
    spark: "SparkSession",
    paths: list[str],
    tables: IngestTables,
    options: IngestOptions,
) -> list[Staged]:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - as late as can be

    try:
        lines = lines_of_files(spark, paths, options.names)
        return staged_lines(lines, tables, options)
    except AnalysisException as error:
        raise UnreadableLog(", ".join(paths), _first_line(error)) from error
    except SparkFailed as error:
        if not any(word in str(error.__cause__) for word in _DAMAGED):
            raise
        raise UnreadableLog(", ".join(paths), f"Spark cannot read it to its end: {_first_line(error.__cause__)}") from error  # fmt: skip


def _first_line(error: BaseException | None) -> str:
    lines = str(error).splitlines() or [""]
    found = [line for line in lines if any(word in line for word in _DAMAGED)]
    causes = [line for line in found if _NO_ZSTD in line]
    return (causes or found or lines)[0].strip(" :")
