"""
Times the engine against Kafka's own classes, side by side in one run: `make bench`.

Each round asks the JVM, then us, then the JVM again, and compares our time with the mean of the two: on a shared
machine ratios mean more than times. All windows hold something before the first round, and both sides are warm. Nothing
here is a test: a goal that is missed is shown, not an error.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from benchmarks.kafka import Kafka
from benchmarks.memory import ENTITIES, MEMORY, per_entity
from benchmarks.output import STDERR, write_json
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.timing import judged, ratios, timed
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.cluster.provision import libs

from quotascope.metrics.engine.native import compiled

WARM_UP = 4
"""Rounds of the JVM before any counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Both sides of one comparison; times in ns per record, memory in bytes per entity."""

    name: str
    kafka: float
    ours: float
    ratios: tuple[float, ...]
    goal: float | None


def compare(kafka: Kafka, scenario: Scenario, rounds: int, records: int) -> Result:
    """Run one scenario on both sides."""
    loop = scenario.make()
    theirs = scenario.kafka or scenario.name
    for _ in range(WARM_UP):
        kafka.ask(theirs, records)
    loop(records)
    kafkas: list[float] = []
    ours: list[float] = []
    for _ in range(rounds):
        first_time = kafka.ask(theirs, records)
        ours.append(timed(partial(loop, records))[0] * 1e9 / records)
        kafkas.append((first_time + kafka.ask(theirs, records)) / 2)
    return Result(
        name=scenario.name,
        kafka=statistics.median(kafkas),
        ours=statistics.median(ours),
        ratios=tuple(ratios(ours, kafkas)),
        goal=scenario.goal,
    )


def weigh(kafka: Kafka, name: str) -> Result:
    """Compare the memory of entities."""
    theirs, ours = kafka.ask(name, ENTITIES), per_entity(MEMORY[name])
    return Result(name=name, kafka=theirs, ours=ours, ratios=(ours / theirs,), goal=1.0)


def run(rounds: int, records: int, only: str) -> list[Result]:
    """Run everything whose name contains `only`."""
    scenarios = [scenario for scenario in SCENARIOS if only in scenario.name]
    weights = [name for name in MEMORY if only in name]
    results = []
    with Kafka(libs()) as kafka, Progress(console=STDERR) as progress:
        task = progress.add_task("", total=len(scenarios) + len(weights))
        for scenario in scenarios:
            progress.update(task, description=scenario.name)
            results.append(compare(kafka, scenario, rounds, records))
            progress.advance(task)
        for name in weights:
            progress.update(task, description=name)
            results.append(weigh(kafka, name))
            progress.advance(task)
    return results


def table(results: Sequence[Result]) -> Table:
    """Return the results as people read them."""
    form = "compiled" if compiled else "interpreted"
    title = f"The {form} engine beside Kafka's: ns per record, bytes per entity"
    result_table = Table(title=title)
    result_table.add_column("")
    for heading in ("Kafka", "ours", "ratio: min / median / max", "goal"):
        result_table.add_column(heading, justify="right")
    for result in results:
        result_table.add_row(
            result.name,
            f"{result.kafka:.0f}",
            f"{result.ours:.0f}",
            judged(result.ratios, result.goal),
            "" if result.goal is None else f"{result.goal:.1f}",
        )
    return result_table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--records", type=int, default=200_000, help="per round")
    parser.add_argument("--only", default="", help="part of the scenarios' names")
    parser.add_argument("--json", type=Path, help="file to write the results to")


def main(options: argparse.Namespace) -> int:
    """Print the table and perhaps write it as JSON."""
    results = run(options.rounds, options.records, options.only)
    Console().print(table(results))
    write_json(options.json, {"compiled": compiled, "results": [asdict(result) for result in results]})
    return 0
