"""
Files that jobs need, for drivers that have `quotascope-spark` alone.

`python -m quotascope.spark_listener jar FILE`, `py-files FILE` or `runner`.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from quotascope.pages.files import put

from .errors import SparkListenerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the same subcommands as `quotascope spark`; return the exit code."""
    parser = argparse.ArgumentParser(
        "python -m quotascope.spark_listener",
        description=(
            "The files that Spark jobs need to report their throttle times. "
            "Reports on jobs are in the distribution quotascope: quotascope spark report."
        ),
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in {
        "jar": "Write the jar of the executor plugin, for spark.jars.",
        "py-files": "Write the zip of what tasks import, for executors where quotascope is not installed.",
    }.items():
        commands.add_parser(name, help=text, description=text).add_argument("file", type=Path, metavar="FILE")
    text = "Print the path of the script that runs a job with the listener, for spark-submit."
    commands.add_parser("runner", help=text, description=text)
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(f"{_done(options)}\n")
    except (SparkListenerError, OSError) as error:
        sys.stderr.write(f"quotascope: {error}\n")
        return 1
    return 0


def _done(options: argparse.Namespace) -> str:
    """Do what the subcommand asks for, and return the path of the file."""
    if options.command == "runner":
        return str(Path(__file__).with_name("run.py"))
    if options.command == "jar":
        from .jvm import write_jar  # noqa: PLC0415 - only what is asked for

        write_jar(options.file)
    else:
        from .task.py_files import write_py_files  # noqa: PLC0415 - as above

        archive = io.BytesIO()
        write_py_files(archive)
        put(options.file, archive.getvalue())
    return str(options.file)


if __name__ == "__main__":
    sys.exit(main())
