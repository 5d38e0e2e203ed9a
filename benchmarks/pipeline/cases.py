"""
Times the pipeline on generated logs and histories: `make bench-pipeline`.

*ingest*: 5 M lines of request logs become tables, on Spark (beside Spark that reads the text and drops it) and in one
process (beside a loop of orjson). *replay*: 20 M requests through one candidate and through 20, on Spark (beside Spark
that reads and shuffles the same rows) and in one process (beside sums by second in NumPy). *growth*, *entities*,
*skew*: replays of 1 M to 100 M rows, of 2,000 to 100,000 entities, with one giant entity, each in a driver of its own.
Sides of a comparison work in turns; a ratio is to the other side in the same round. Memory is the kernel's own peak of
each process; CPU is that of all of them.

`--beside FOLDER` compares with another checkout instead, such as the last release's, which stores its own tables and
works in its own processes: `make bench-pipeline ARGS='--only ingest replay growth --beside ../before'`.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.output import write_json
from benchmarks.pipeline.ingest import ingest
from benchmarks.pipeline.options import Options, declare, options_of
from benchmarks.pipeline.replay import replay
from benchmarks.pipeline.runs import Outcome, table
from benchmarks.pipeline.shapes import entities, growth, skew
from benchmarks.pipeline.space import NoRoom
from rich.console import Console

CASES: Final[dict[str, Callable[[Options], Iterator[Outcome]]]] = {
    "ingest": ingest,
    "replay": replay,
    "growth": growth,
    "entities": entities,
    "skew": skew,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    declare(parser, tuple(CASES))


def main(arguments: argparse.Namespace) -> int:
    """Print the tables and perhaps write them as JSON."""
    options = options_of(arguments)
    console = Console(width=190)
    try:
        for case in arguments.only:
            for outcome in CASES[case](options):
                load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
                console.print(table(f"{outcome.title}; {load}", outcome.sides))
                console.print(*(f"{name}: {value:,.4g}" for name, value in outcome.facts.items()), sep="\n")
                if arguments.json:
                    _add(
                        arguments.json,
                        f"{outcome.title}, before and after" if options.beside else outcome.title,
                        outcome,
                    )
    except NoRoom as error:
        console.print(error)
        return 1
    return 0


def _add(path: Path, title: str, outcome: Outcome) -> None:
    """Write it at once: a later case may fail."""
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    results[title] = outcome.plain()
    write_json(path, results)
