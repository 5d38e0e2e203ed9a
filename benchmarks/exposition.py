"""
Times scrapes from what the agents answered to the bytes, beside prometheus_client: `make bench-exposition`.

Each round lets a cluster change, joins its tables of numbers with the limits, and writes the text as `/metrics` does
and by `generate_latest`, which has to give the same bytes; the join counts on both sides, and ours comes first, so that
it makes what both need. Then what else a scrape does: a cap of 2,000 entities, the maxima between scrapes, and the
memory of a process that does nothing but write. Times are CPU times: what else runs on the machine matters less. A goal
that is missed is shown, not an error.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.clusters import CONFIGURED, TAKEN_AT, Cluster
from benchmarks.collector import exposition
from benchmarks.output import STDERR, say, write_json
from benchmarks.process import peak_mib
from benchmarks.timing import cpu_timed, judged, spread
from rich.console import Console
from rich.progress import track
from rich.table import Table

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer, gzipped
from quotascope.exporter.join.join import Join
from quotascope.exporter.limits import LimitsHealth
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.mapping import BeanTable
from quotascope.exporter.snapshot import OwnHealth, Sampling

NOW = TAKEN_AT + 1
CHANGES = {
    "a tenth of the values": (0.1, 0.0, 80),
    "a tenth, and a hundredth of the entities": (0.1, 0.01, 25),
    "all values": (1.0, 0.0, 25),
    "nothing": (0.0, 0.0, 200),
}
"""Shares of values and entities that change between two scrapes, and how many times faster is the goal."""
SIZES = (100_000, 1_000_000)
MEMORY_SIZES = (1_000, 10_000, *SIZES)
CAP = 2_000
WARM_UP = 2
"""Rounds before any counts."""

Times = dict[str, list[float]]
"""CPU seconds, or ratios, of each round by what they are of."""


def compare(series: int, name: str, rounds: int) -> Times:
    """Let a cluster change in one way, round by round."""
    cluster, join, renderer = Cluster(series), Join(), Renderer()
    times: Times = {"join": [], "text": [], "prometheus_client": [], "ratio": []}
    for number in track(range(rounds + WARM_UP), name, console=STDERR):
        cluster.step(*CHANGES[name][:2])
        reads = cluster.reads()
        joining, joined = cpu_timed(lambda: join.snapshot(reads, CONFIGURED, LimitsHealth(), TAKEN_AT))  # noqa: B023
        writing, text = cpu_timed(lambda: renderer.render(joined, NOW))  # noqa: B023
        theirs, expected = cpu_timed(lambda: exposition(joined, NOW))  # noqa: B023
        assert text == expected
        ratio = (joining + theirs) / (joining + writing)
        if number >= WARM_UP:
            for key, value in zip(times, (joining, writing, theirs, ratio), strict=True):
                times[key].append(value)
    return times


def capped(series: int, rounds: int) -> Times:
    """Return the costs of the cap, beside the text of all entities and of those that it leaves."""
    cluster, join = Cluster(series), Join()
    cap, whole, remaining = Cardinality(CardinalityConfig(max_entities=CAP)), Renderer(), Renderer()
    names = f"cap of {CAP:,}", "text of all", "text of those shown"
    times: Times = {name: [] for name in names}
    for number in range(rounds + WARM_UP):
        cluster.step(0.1, 0.0)
        joined = join.snapshot(cluster.reads(), CONFIGURED, LimitsHealth(), TAKEN_AT)
        capping, capped_snapshot = cpu_timed(partial(cap.apply, joined))
        texts = [
            cpu_timed(partial(renderer.render, snapshot, NOW))[0]
            for renderer, snapshot in ((whole, joined), (remaining, capped_snapshot))
        ]
        if number >= WARM_UP:
            for name, value in zip(names, (capping, *texts), strict=True):
                times[name].append(value)
    return times


class Answered:
    """A source that has answered already."""

    name, dialect, node_id = "broker-1", "jolokia", None

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.table: BeanTable | None = None

    async def read(self) -> BeanTable:
        """Return the last table of the cluster."""
        assert self.table is not None
        return self.table

    async def close(self) -> None:
        """Close nothing."""


async def sampled(series: int, rounds: int) -> Times:
    """Return the times of a whole collection of a tenth of other values, with maxima and without."""
    source = Answered(Cluster(series))
    times: Times = {"collection with maxima": [], "without": []}
    sides = {
        name: Collection([source], LimitsRefresh(), 0.0, own_health=lambda health=health: health)  # type: ignore[misc]
        for name, health in zip(times, (OwnHealth(sampling=Sampling()), OwnHealth()), strict=True)
    }  # fmt: skip
    for number in range(rounds + WARM_UP):
        source.cluster.step(0.1, 0.0)
        source.table = source.cluster.reads()[0].table
        for name, collection in sides.items():
            gc.collect()
            start = time.process_time()
            await collection.snapshot(60.0)
            if number >= WARM_UP:
                times[name].append(time.process_time() - start)
    return times


def measure(series: int) -> dict[str, float]:
    """Write snapshots of a size; a tenth of its values changes, and a hundredth of its entities."""
    cluster, renderer, seconds, text = Cluster(series), Renderer(), [], b""
    for _ in range(5):
        snapshot = cluster.snapshot()
        spent, text = cpu_timed(lambda: renderer.render(snapshot, NOW))  # noqa: B023
        seconds.append(spent)
        cluster.step(0.1, 0.01)
    return {
        "series": sum(not line.startswith(b"#") for line in text.splitlines()),
        "first ms": seconds[0] * 1e3,
        "next ms": statistics.median(seconds[1:]) * 1e3,
        "gzip ms": cpu_timed(lambda: gzipped(text))[0] * 1e3,
        "MiB": peak_mib(os.getpid()),
    }


def measured_apart(series: int) -> dict[str, float]:
    """Return the same of a process of its own, which has its memory to itself."""
    command = [sys.executable, "-m", "benchmarks", "exposition", "--measure", str(series)]
    results: dict[str, float] = json.loads(subprocess.check_output(command))
    return results


def comparison(series: int, results: dict[str, Times]) -> Table:
    """Return the comparisons as people read them."""
    result_table = Table(title=f"{series:,} series: CPU ms, min / median / max")
    for heading in ("between two scrapes", "join", "text", "generate_latest", "times faster", "goal"):
        result_table.add_column(heading)
    for name, times in results.items():
        goal = CHANGES[name][2]
        cells = [spread(times[part], scale=1e3) for part in ("join", "text", "prometheus_client")]
        result_table.add_row(name, *cells, judged(times["ratio"], goal, ".3g", at_least=True), f"{goal}")
    return result_table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--series", type=int, nargs="*", default=SIZES)
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--measure", type=int, help="memory of one size, as JSON")


def main(options: argparse.Namespace) -> int:
    """Print the tables and perhaps write them as JSON."""
    if options.measure:
        say(json.dumps(measure(options.measure)))  # read by the process that started this one
        return 0
    console, content = Console(width=150), {}
    for series in options.series:
        results = {name: compare(series, name, options.rounds) for name in CHANGES}
        console.print(comparison(series, results))
        figures = {
            **capped(series, options.rounds),
            **asyncio.run(sampled(series, options.rounds)),
        }
        for name, values in figures.items():
            console.print(f"{name}: {spread(values, scale=1e3)} ms")
        content[str(series)] = results | {"beside": figures}
    sizes = [measured_apart(series) for series in MEMORY_SIZES]
    for size in sizes:
        console.print(", ".join(f"{name} {value:,.4g}" for name, value in size.items()))
    write_json(options.json, {"scrapes": content, "sizes": sizes})
    return 0
