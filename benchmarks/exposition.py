"""
Times our exposition beside prometheus_client's, side by side in one run: `make bench-exposition`.

Each round lets a cluster change, hands the new snapshot to both, and sees that both write the same bytes. `snapshot`
is from the snapshot to the bytes; `values` from values that are ready: for prometheus_client families filled with
samples, for us lists of numbers. Times are CPU times: what else runs on the machine matters less. A goal that is missed
is shown, not an error.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.clusters import Cluster
from benchmarks.prepared import PreparedFamilies, PreparedLines
from rich.console import Console
from rich.progress import track
from rich.table import Table

from quotascope.exporter.exposition import Renderer, exposition, gzipped

NOW = 1_795_251_781.0
GOAL = 50.0
SERIES = 100_000
CHANGES = {
    "a tenth of values, a hundredth of entities": (0.1, 0.01),
    "a tenth of values": (0.1, 0.0),
    "all values": (1.0, 0.0),
    "nothing": (0.0, 0.0),
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
WARM_UP = 2
"""Rounds before any counts."""
SCRAPES = 5
"""Scrapes of each size; the first of them finds nothing prepared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One comparison: CPU seconds of each side, and how often ours fit into theirs."""

    name: str
    theirs: float
    ours: float
    ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Our scrapes of a number of series, in CPU seconds, and the memory of the whole process in bytes."""

    series: int
    first: float
    next: float
    packed: float
    memory: int


def timed(work: Callable[[], bytes]) -> tuple[float, bytes]:
    """Return CPU seconds, and what came out."""
    gc.collect()
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


def compare(name: str, series: int, rounds: int) -> list[Result]:
    """Let a cluster change in one way, round by round."""
    values, entities = CHANGES[name]
    cluster, renderer = Cluster(series), Renderer()
    lines, families = PreparedLines(), PreparedFamilies()
    whole: list[tuple[float, float]] = []
    ready: list[tuple[float, float]] = []
    for _ in track(range(rounds + WARM_UP), name, console=Console(stderr=True)):
        cluster.step(values, entities)
        snapshot = cluster.snapshot()
        theirs, expected = timed(lambda: exposition(snapshot, NOW))  # noqa: B023
        ours, written = timed(lambda: renderer.render(snapshot, NOW))  # noqa: B023
        assert written == expected
        whole.append((theirs, ours))
        lines.prepare(snapshot)
        families.prepare(snapshot, NOW)
        theirs, expected = timed(families.text)
        ours, written = timed(lines.text)
        assert written == expected
        ready.append((theirs, ours))
    return [
        result(f"{name}: snapshot", whole[WARM_UP:]),
        result(f"{name}: values", ready[WARM_UP:]),
    ]


def result(name: str, times: Sequence[tuple[float, float]]) -> Result:
    """Sum rounds up."""
    return Result(
        name=name,
        theirs=statistics.median(theirs for theirs, _ in times),
        ours=statistics.median(ours for _, ours in times),
        ratios=tuple(theirs / ours for theirs, ours in times),
    )


def measure(series: int) -> Size:
    """Scrape a cluster of a size; a tenth of its values changes, and a hundredth of its entities."""
    cluster, renderer = Cluster(series), Renderer()
    times = []
    for _ in range(SCRAPES):
        snapshot = cluster.snapshot()
        seconds, text = timed(lambda: renderer.render(snapshot, NOW))  # noqa: B023
        times.append(seconds)
        cluster.step(*CHANGES["a tenth of values, a hundredth of entities"])
    packed, _ = timed(lambda: gzipped(text))
    return Size(
        series=sum(not line.startswith(b"#") for line in text.splitlines()),
        first=times[0],
        next=statistics.median(times[1:]),
        packed=packed,
        memory=most_memory(),
    )


def most_memory() -> int:
    """Return the most bytes that this process had resident."""
    status = Path("/proc/self/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measured_apart(series: int) -> Size:
    """The same in a process of its own, whose memory is nobody else's."""
    command = [sys.executable, "-m", "benchmarks.exposition", "--measure", str(series)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Size(**json.loads(done.stdout))


def table(results: Sequence[Result]) -> Table:
    """Return the comparisons as people read them."""
    shown = Table(title=f"{SERIES:,} series: CPU ms, and times faster (goal {GOAL:g})")
    shown.add_column("")
    for heading in ("prometheus_client", "ours", "median", "min", "max"):
        shown.add_column(heading, justify="right")
    for each in results:
        median = statistics.median(each.ratios)
        colour = "green" if median >= GOAL else "red"
        shown.add_row(
            each.name,
            f"{each.theirs * 1e3:.0f}",
            f"{each.ours * 1e3:.1f}",
            f"[{colour}]{median:.0f}[/]",
            f"{min(each.ratios):.0f}",
            f"{max(each.ratios):.0f}",
        )
    return shown


def growth(sizes: Sequence[Size]) -> Table:
    """Return the sizes as people read them."""
    shown = Table(title="ours by size: CPU time of a scrape, memory of the process")
    for heading in ("series", "first ms", "next ms", "ns each", "gzip ms", "MiB"):
        shown.add_column(heading, justify="right")
    for size in sizes:
        shown.add_row(
            f"{size.series:,}",
            f"{size.first * 1e3:.0f}",
            f"{size.next * 1e3:.1f}",
            f"{size.next / size.series * 1e9:.0f}",
            f"{size.packed * 1e3:.1f}",
            f"{size.memory / (1 << 20):.0f}",
        )
    return shown


def main() -> int:
    """Print the tables and perhaps write them as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--measure", type=int, help="one size only, as JSON")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(asdict(measure(options.measure))))  # noqa: T201 - read by the process that started this one
        return 0
    results = [
        each for name in CHANGES for each in compare(name, SERIES, options.rounds)
    ]
    sizes = [measured_apart(series) for series in SIZES]
    for shown in (table(results), growth(sizes)):
        Console().print(shown)
    if options.json:
        content = {
            "results": [asdict(each) for each in results],
            "sizes": [asdict(each) for each in sizes],
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
