"""
Request logs into tables on Spark: what `quotascope ingest` does in one process, for paths of any size that Spark can read.

::

    spark-submit pipeline/spark/ingest.py s3a://logs/kafka/2026-11-21/ --into /data/quota --broker-pattern '/broker-([0-9]+)/'
"""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from quotascope.pipeline.errors import PipelineError, UnreadableLog
from quotascope.pipeline.ingest import Options, Report, Tables
from quotascope.pipeline.ingest.committing import Committer, next_run
from quotascope.pipeline.ingest.parts import Staged
from quotascope.pipeline.request_log.mutations import MutationLedger
from quotascope.pipeline.spark.lines import lines_of_files, staged_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_ZSTD: Final = "native zStandard library"
_DAMAGED: Final = ("FAILED_READ_FILE", "EOFException", "ZipException", "Unexpected end of input", "incorrect data check", _NO_ZSTD)  # fmt: skip
"""What Spark says of files that it cannot read to their end."""


def ingest(
    spark: "SparkSession",
    paths: Sequence[str],
    into: str,
    options: Options | None = None,
) -> Report:
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
        LostCommit: another run was quicker; run this again.
        TableError: the tables cannot be read or written.

    """
    options = options or Options()
    tables = Tables.create(into)
    committer = Committer(tables, MutationLedger(options.topics()))
    requests, quarantine = next_run(tables.requests), next_run(tables.quarantine)
    parts = _staged(spark, list(paths), tables, options)
    return committer.commit(parts, requests, quarantine)


def _staged(
    spark: "SparkSession", paths: list[str], tables: Tables, options: Options
) -> list[Staged]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with Spark
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415

    try:
        lines = lines_of_files(spark, paths, options.names)
        return staged_lines(lines, tables, options)
    except AnalysisException as error:
        raise UnreadableLog(", ".join(paths), _first_line(error)) from error
    except (PySparkException, Py4JError) as error:
        if not any(word in str(error) for word in _DAMAGED):
            raise
        raise UnreadableLog(", ".join(paths), f"Spark cannot read it to its end: {_first_line(error)}") from error  # fmt: skip


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    told = [line for line in lines if any(word in line for word in _DAMAGED)]
    causes = [line for line in told if _NO_ZSTD in line]
    return (causes or told or lines)[0].strip(" :")


def told(report: Report) -> str:
    """One line about a run."""
    return (
        f"{report.read} lines read: {report.kept} requests kept, {report.duplicates} there before, {report.forwarded} told twice by a controller, "
        f"{report.quarantined} put in quarantine, {report.quarantined_before} in quarantine before"
    )


def log_options(parser: argparse.ArgumentParser) -> None:
    """Add the options about logs."""
    parser.add_argument("--into", required=True, metavar="FOLDER", help="folder of the tables, made if need be")  # fmt: skip
    parser.add_argument("--broker", metavar="NAME", help="the broker, when all lines are of one")  # fmt: skip
    parser.add_argument("--broker-pattern", metavar="REGEX", help="one group: the broker's name in a file's path, or in TOPIC-PARTITION")  # fmt: skip
    parser.add_argument("--log-time-zone", default="UTC", metavar="NAME", help="zone of the lines' times (%(default)s)")  # fmt: skip
    parser.add_argument("--topics", metavar="FILE", help="JSON of partitions by topic before the first line")  # fmt: skip


def options_of(given: argparse.Namespace, **more: Any) -> Options:  # noqa: ANN401 - fields of Options
    """What was said about logs. Raises `BadOption`."""
    return Options(
        broker=given.broker,
        broker_pattern=given.broker_pattern,
        zone=given.log_time_zone,
        snapshot=given.topics,
        **more,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program of its own, as spark-submit does; return the exit code."""
    parser = argparse.ArgumentParser(description="Read Kafka request logs into tables.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or patterns that Spark can read")  # fmt: skip
    parser.add_argument("--names", default="*", metavar="PATTERN", help="which files of a folder are logs (%(default)s)")  # fmt: skip
    log_options(parser)
    given = parser.parse_args(arguments)
    from quotascope.pipeline.spark.session import session  # noqa: PLC0415 - `--help` is quick without

    spark = session()
    try:
        report = ingest(spark, given.paths, given.into, options_of(given, names=given.names))  # fmt: skip
    except PipelineError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        spark.stop()
    sys.stdout.write(told(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
