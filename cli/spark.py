"""`quotascope spark`: reports on Spark jobs, and the files that jobs need for the listener."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from . import options, outputs
from .app import App

spark = App("spark", "Spark jobs: their throttle times, and the files that jobs need to report them.")

_REPORT = """
Examples:

  quotascope spark report /var/log/spark/application_1700000000000_0042

  quotascope spark report eventlog_v2_app-20260101120000-0001 --html report.html --svg report.svg

  quotascope spark report app-20260101120000-0001.zstd --summary summary.json --json | jq .throttles
"""
_PY_FILES = """
Examples:

  quotascope spark py-files quotascope.zip

  spark-submit --py-files quotascope.zip job.py
"""
_JAR = """
Examples:

  quotascope spark jar quotascope.jar

  spark-submit --jars quotascope.jar --conf spark.plugins=io.quotascope.spark.ThrottlePlugin job.py
"""
_RUNNER = """
Examples:

  spark-submit --conf spark.quotascope.enabled=true "$(quotascope spark runner)" job.py arguments
"""


_SUBMIT = """
Examples:

  spark-submit --master yarn "$(quotascope spark submit-script)" whatif hdfs:///kafka/usage --candidates candidates.yaml
"""


Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="Event log: a file, plain or zstd, or a folder of rolled files. The application may still run.",
    ),
]
Summary = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=(
            "Summary that the listener wrote (spark.quotascope.summaryFile): throttle times of successful attempts, "
            "which no event log has."
        ),
    ),
]
Svg = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the timeline as an SVG image.")]
Written = Annotated[Path, typer.Argument(metavar="FILE", help="A file there is replaced.")]


@spark.command(epilog=_REPORT)
@options.grouped
def report(log: Log, *, summary: Summary = None, svg: Svg = None, results: outputs.Results) -> None:
    """
    Show which clients were throttled, and which tasks failed and were repeated, and why.

    Reads the event log of an application.
    """
    from quotascope.spark_listener import report as question

    outputs.check(*results.files, svg)
    with outputs.bar("reading") as progress:
        application = question.read_application(log, summary, progress)
    if svg is not None:
        outputs.put(svg, question.image(application))
    outputs.write(
        results,
        svg,
        report=partial(question.report, application),
        document=partial(question.document, application),
        csv=partial(question.as_csv, application),
    )


@spark.command("py-files", epilog=_PY_FILES)
def py_files(file: Written) -> None:
    """Write the zip of what tasks import, for executors where quotascope is not installed."""
    from quotascope.spark_listener.task.py_files import write_py_files

    archive = BytesIO()
    write_py_files(archive)
    outputs.put(file, archive.getvalue())
    typer.echo(file)


@spark.command(epilog=_JAR)
def jar(file: Written) -> None:
    """Write the jar of the executor plugin, for spark.jars."""
    from quotascope.spark_listener.jvm import write_jar

    write_jar(file)
    typer.echo(file)


@spark.command(epilog=_RUNNER)
def runner() -> None:
    """Print the path of the script that runs a job with the listener, for spark-submit."""
    from quotascope.spark_listener import run

    typer.echo(run.__file__)


@spark.command("submit-script", epilog=_SUBMIT)
def submit_script() -> None:
    """Print the path of the script that runs commands such as ingest, whatif and recommend as a Spark application."""
    typer.echo(Path(__file__).with_name("submit.py"))
