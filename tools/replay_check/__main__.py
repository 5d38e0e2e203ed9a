"""`python -m tools.replay_check LOG QUOTAS`: 0 when every total holds, 1 when one does not, 2 when nothing could be compared."""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from quotascope.metrics import KafkaRelease, MalformedName
from quotascope.pipeline.errors import PipelineError

from . import check, read_log, read_rules
from .report import show

_WIDTH = 130
"""Columns where there is no terminal."""


def _given(path: str) -> Path:
    """A path. Raises `argparse.ArgumentTypeError` for an empty one, which make passes on for a variable that is not set."""
    if not path:
        raise argparse.ArgumentTypeError(
            "no file is given; say make replay-check LOG=FILE QUOTAS=FILE"
        )
    return Path(path)


def _release(version: str) -> KafkaRelease:
    """The release of a version. Raises `argparse.ArgumentTypeError`."""
    try:
        return KafkaRelease.parse(version)
    except MalformedName as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(arguments: list[str] | None = None) -> int:
    """Compare one log and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="replay-check",
        description="Replay a request log under the quotas that were in force, and compare the throttles with those that the broker reported.",
    )
    parser.add_argument("log", type=_given, help="a request log, gzipped or not")
    parser.add_argument("quotas", type=_given, help="the rules in force, as JSON")
    parser.add_argument(
        "--as-logged",
        action="store_true",
        help="infer nothing of what the log leaves out",
    )
    parser.add_argument(
        "--kafka-version",
        type=_release,
        metavar="VERSION",
        help="the broker's release, such as 4.3; else what the log reports, else the newest",
    )
    given = parser.parse_args(arguments)
    try:
        result = check(
            read_log(given.log),
            read_rules(given.quotas),
            infer=not given.as_logged,
            release=given.kafka_version,
        )
    except PipelineError as error:
        Console(stderr=True).print(
            f"replay-check: {error}", markup=False, soft_wrap=True
        )
        return 2
    console = Console()
    show(result, console if console.is_terminal else Console(width=_WIDTH))
    return 0 if result.holds else 1


if __name__ == "__main__":
    sys.exit(main())
