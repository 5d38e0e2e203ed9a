"""
Times scrapes from what the agents answered to the bytes, beside prometheus_client: `make bench-exposition`.

Each round lets a cluster change, joins its tables of numbers with the limits, and writes the text as `/metrics` does and by `generate_latest`, which has to
give the same bytes; the join counts on both sides, and ours comes first, so that it makes what both need. Then what else a scrape does: a cap of 2,000 entities, the maxima between scrapes, and the memory of a process
that does nothing but write. Times are CPU times: what else runs on the machine matters less. A goal that is missed is shown, not an error.
"""

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks.clusters import CONFIGURED, TAKEN_AT, Cluster
from benchmarks.collector import exposition
from rich.console import Console
from rich.progress import track
from rich.table import Table

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.exposition import Renderer, gzipped
from quotascope.exporter.join import Join
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

_Made = TypeVar("_Made")
Times = dict[str, list[float]]
"""CPU seconds, or ratios, of each round by what they are of."""


def timed(work: Callable[[], _Made]) -> tuple[float, _Made]:
    """Return CPU seconds, and what came out."""
    gc.collect()
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


def compare(series: int, name: str, rounds: int) -> Times:
    """Let a cluster change in one way, round by round."""
    cluster, join, renderer = Cluster(series), Join(), Renderer()
    times: Times = {"join": [], "text": [], "prometheus_client": [], "ratio": []}
    for number in track(range(rounds + WARM_UP), name, console=Console(stderr=True)):
        cluster.step(*CHANGES[name][:2])
        reads = cluster.reads()
        joining, joined = timed(lambda: join.snapshot(reads, CONFIGURED, LimitsHealth(), TAKEN_AT))  # noqa: B023
        writing, text = timed(lambda: renderer.render(joined, NOW))  # noqa: B023
        theirs, expected = timed(lambda: exposition(joined, NOW))  # noqa: B023
        assert text == expected
        ratio = (joining + theirs) / (joining + writing)
        if number >= WARM_UP:
            for what, value in zip(times, (joining, writing, theirs, ratio), strict=True):
                times[what].append(value)
    return times


def capped(series: int, rounds: int) -> Times:
    """What the cap costs, beside the text of all entities and of those that it leaves."""
    cluster, join = Cluster(series), Join()
    cap, whole, rest = Cardinality(CardinalityConfig(max_entities=CAP)), Renderer(), Renderer()
    names = f"cap of {CAP:,}", "text of all", "text of those shown"
    times: Times = {name: [] for name in names}
    for number in range(rounds + WARM_UP):
        cluster.step(0.1, 0.0)
        joined = join.snapshot(cluster.reads(), CONFIGURED, LimitsHealth(), TAKEN_AT)
        capping, shown = timed(lambda: cap.apply(joined))  # noqa: B023
        both = [timed(lambda: each[0].render(each[1], NOW))[0] for each in ((whole, joined), (rest, shown))]  # noqa: B023
        if number >= WARM_UP:
            for name, value in zip(names, (capping, *both), strict=True):
                times[name].append(value)
    return times


class Answered:
    """A source that has answered already."""

    name, dialect, node_id = "broker-1", "jolokia", None

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.table: BeanTable | None = None

    async def read(self) -> BeanTable:
        """The table that the cluster gave last."""
        assert self.table is not None
        return self.table

    async def close(self) -> None:
        """Nothing is open."""


async def sampled(series: int, rounds: int) -> Times:
    """A whole collection of a tenth of other values, with maxima and without."""
    source = Answered(Cluster(series))
    times: Times = {"collection with maxima": [], "without": []}
    sides = {
        name: Collection([source], LimitsRefresh(), 0.0, own=lambda own=own: own)  # type: ignore[misc]
        for name, own in zip(times, (OwnHealth(sampling=Sampling()), OwnHealth()), strict=True)
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
        spent, text = timed(lambda: renderer.render(snapshot, NOW))  # noqa: B023
        seconds.append(spent)
        cluster.step(0.1, 0.01)
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "series": sum(not line.startswith(b"#") for line in text.splitlines()),
        "first ms": seconds[0] * 1e3,
        "next ms": statistics.median(seconds[1:]) * 1e3,
        "gzip ms": timed(lambda: gzipped(text))[0] * 1e3,
        "MiB": int(peak.split()[1]) / 1024,
    }


def measured_apart(series: int) -> dict[str, float]:
    """The same in a process of its own, which has its memory to itself."""
    command = [sys.executable, "-m", "benchmarks.exposition", "--measure", str(series)]
    found: dict[str, float] = json.loads(subprocess.check_output(command))
    return found


def spread(values: Sequence[float], scale: float = 1e3) -> str:
    """Least, median and greatest."""
    found = (min(values), statistics.median(values), max(values))
    return " / ".join(f"{each * scale:.3g}" for each in found)


def comparison(series: int, results: dict[str, Times]) -> Table:
    """Return the comparisons as people read them."""
    shown = Table(title=f"{series:,} series: CPU ms, min / median / max")
    for heading in ("between two scrapes", "join", "text", "generate_latest", "times faster", "goal"):
        shown.add_column(heading)
    for name, times in results.items():
        goal = CHANGES[name][2]
        color = "green" if statistics.median(times["ratio"]) >= goal else "red"
        each = [spread(times[what]) for what in ("join", "text", "prometheus_client")]
        shown.add_row(name, *each, f"[{color}]{spread(times['ratio'], 1)}[/]", f"{goal}")
    return shown


def main() -> int:
    """Print the tables and perhaps write them as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--series", type=int, nargs="*", default=SIZES)
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--measure", type=int, help="memory of one size, as JSON")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))  # noqa: T201 - read by the process that started this one
        return 0
    console, content = Console(width=150), {}
    for series in options.series:
        results = {name: compare(series, name, options.rounds) for name in CHANGES}
        console.print(comparison(series, results))
        beside = {
            **capped(series, options.rounds),
            **asyncio.run(sampled(series, options.rounds)),
        }
        for name, values in beside.items():
            console.print(f"{name}: {spread(values)} ms")
        content[str(series)] = results | {"beside": beside}
    sizes = [measured_apart(series) for series in MEMORY_SIZES]
    for size in sizes:
        console.print(", ".join(f"{name} {value:,.4g}" for name, value in size.items()))
    if options.json:
        text = json.dumps({"scrapes": content, "sizes": sizes}, indent=2)
        options.json.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
