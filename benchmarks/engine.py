"""
Times the engine against Kafka's own classes, side by side in one run: `make bench`.

Each round asks the JVM, then us, then the JVM again, and compares our time with the mean of the two: on a shared machine
ratios mean more than times. All windows hold something before the first round, and both sides are warm. Nothing here
is a test: a goal that is missed is shown, not an error.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.kafka import Kafka
from benchmarks.memory import ENTITIES, MEMORY, per_entity
from benchmarks.scenarios import SCENARIOS, Loop, Scenario
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.cluster.provision import libs

from quotascope.metrics import compiled

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

    @property
    def reached(self) -> bool | None:
        """Whether the median ratio keeps to the goal, None without one."""
        return None if self.goal is None else self.ratio <= self.goal

    @property
    def ratio(self) -> float:
        """The median of ours to Kafka's."""
        return statistics.median(self.ratios)


def timed(loop: Loop, records: int) -> float:
    """Return ns per record."""
    start = time.perf_counter_ns()
    loop(records)
    return (time.perf_counter_ns() - start) / records


def compare(kafka: Kafka, scenario: Scenario, rounds: int, records: int) -> Result:
    """Run one scenario on both sides."""
    loop = scenario.make()
    theirs = scenario.kafka or scenario.name
    for _ in range(WARM_UP):
        kafka.ask(theirs, records)
    loop(records)
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        before = kafka.ask(theirs, records)
        ours = timed(loop, records)
        times.append(((before + kafka.ask(theirs, records)) / 2, ours))
    return Result(
        name=scenario.name,
        kafka=statistics.median(kafkas for kafkas, _ in times),
        ours=statistics.median(ours for _, ours in times),
        ratios=tuple(ours / kafkas for kafkas, ours in times),
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
    with Kafka(libs()) as kafka, Progress(console=Console(stderr=True)) as progress:
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
    shown = Table(title=title)
    shown.add_column("")
    for heading in ("Kafka", "ours", "ratio", "min", "max", "goal"):
        shown.add_column(heading, justify="right")
    for result in results:
        color = {True: "green", False: "red", None: "default"}[result.reached]
        shown.add_row(
            result.name,
            f"{result.kafka:.0f}",
            f"{result.ours:.0f}",
            f"[{color}]{result.ratio:.2f}[/]",
            f"{min(result.ratios):.2f}",
            f"{max(result.ratios):.2f}",
            "" if result.goal is None else f"{result.goal:.1f}",
        )
    return shown


def main() -> int:
    """Print the table and perhaps write it as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--records", type=int, default=200_000, help="per round")
    parser.add_argument("--only", default="", help="part of the scenarios' names")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    options = parser.parse_args()
    results = run(options.rounds, options.records, options.only)
    Console().print(table(results))
    if options.json:
        content = {"compiled": compiled, "results": [asdict(each) for each in results]}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
