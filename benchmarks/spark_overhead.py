"""
Times a Spark job of 10,000 tasks without a listener, with quotascope attached, and with callbacks into Python: `make bench-spark`.

All run in turns in one driver, another one first in each round. `no listener, again` is the noise: the same as `no listener`. The peer is a py4j
listener as PySpark programs write them: in a queue of its own, with a callback server that the JVM knows, whose onTaskEnd reads
what a count of retries needs. Seconds are those of the job. CPU is that of the driver's JVM, which runs the tasks, too, and of its
Python, until the last event was handled. Ratios are to `no listener` in the same round; in brackets the 95 % interval of the median (bootstrap).
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.callbacks import Callbacks
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tests.spark import sessions
from tests.spark.settling import settle

from quotascope.spark_listener import attach

TASKS = 10_000
WARM_UP = 2
"""Rounds before any counts: a JVM compiles what it does often."""
GOAL = 1.10
RESAMPLES = 10_000
TICKS = os.sysconf("SC_CLK_TCK")
UNWATCHED, OURS, PEER = "no listener", "quotascope", "py4j callbacks"
Watching = Callable[[SparkSession], AbstractContextManager[Callable[[], int]]]


@dataclass(frozen=True, slots=True)
class Run:
    """One job: its seconds, CPU ms of each task, seconds until the last event was handled, and the events that were lost."""

    seconds: float
    cpu: float
    behind: float
    lost: int


@dataclass(slots=True)
class Side:
    """What watches the job, and how that went."""

    watching: Watching
    runs: list[Run] = field(default_factory=list)


@contextmanager
def unwatched(_: SparkSession) -> Iterator[Callable[[], int]]:
    """Watch nothing."""
    yield lambda: 0


@contextmanager
def quotascope(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """Watch as `attach` does by default; the page for Prometheus is there, too."""
    with attach(spark) as listener:
        assert listener.source == "pull", listener.problems
        before = listener.collect().events

        def lost() -> int:
            books = listener.collect()
            # of each task its start and its end, whether or not they were of interest
            missing = max(0, 2 * TASKS - (books.events - before))
            return max(missing, books.lost_events)

        yield lost


@contextmanager
def callbacks(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """Watch as programs do that register a Python object."""
    listener = Callbacks(spark)
    try:
        yield lambda: TASKS - listener.task_ends
    finally:
        listener.remove()


def cpu(jvm: int) -> float:
    """CPU seconds of the JVM and of this process."""
    stat = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / TICKS + time.process_time()


def run(spark: SparkSession, watching: Watching, jvm: int) -> Run:
    """One job, watched."""
    rows = spark.range(0, TASKS, 1, TASKS)
    with watching(spark) as lost:
        used, start = cpu(jvm), time.perf_counter()
        rows.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - start
        with suppress(Exception):  # a peer may take longer than the bus waits
            settle(spark)
        missing = lost()
        behind = time.perf_counter() - start - seconds
        used = cpu(jvm) - used
    return Run(seconds, used / TASKS * 1e3, behind, missing)


def compare(rounds: int, *, busy: bool) -> dict[str, Side]:
    """Let all watch the same job in turns."""
    sides = {
        UNWATCHED: Side(unwatched),
        OURS: Side(quotascope),
        PEER: Side(callbacks),
        f"{UNWATCHED}, again": Side(unwatched),
    }
    with session() as spark, working(busy=busy):
        jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr] # noqa: SLF001
        steps = range(WARM_UP + rounds)
        for step in track(steps, "running jobs", console=Console(stderr=True)):
            turns = list(sides.values())
            first = step % len(turns)
            for side in (*turns[first:], *turns[:first]):
                side.runs.append(run(spark, side.watching, jvm))
    for side in sides.values():
        del side.runs[:WARM_UP]
    return sides


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local session, compiled as a cluster's would be."""
    with tempfile.TemporaryDirectory(prefix="quotascope-bench-") as name:
        folder = Path(name)
        os.environ.update(sessions.environment(folder))
        options = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "2g"}
        spark = sessions.start(folder, "local[2]", options)
        yield spark
        sessions.end(spark)


@contextmanager
def working(*, busy: bool) -> Iterator[None]:
    """With a thread of the driver that is busy in Python all the time, or without."""
    over = threading.Event()

    def work() -> None:
        while busy and not over.is_set():
            sum(range(100_000))

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join()


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by resampling."""
    chance = random.Random(7)  # noqa: S311 - no secrets here
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[int(RESAMPLES * 0.025)], medians[int(RESAMPLES * 0.975)]


def ratios(side: Side, base: Side, figure: Callable[[Run], float]) -> str:
    """Median, its interval, and the extremes."""
    pairs = zip(side.runs, base.runs, strict=True)
    found = [figure(run) / figure(base_run) for run, base_run in pairs]
    low, high = interval(found)
    middle = statistics.median(found)
    return f"{middle:.2f} [{low:.2f} - {high:.2f}], {min(found):.2f} - {max(found):.2f}"


def table(sides: dict[str, Side]) -> Table:
    """Return the results as people read them."""
    shown = Table(title=f"{TASKS:,} tasks; goal {GOAL:g} times the seconds without a listener")
    shown.add_column("")
    for heading in (
        "seconds",
        "ratio [95 %], min - max",
        "CPU ms a task",
        "ratio [95 %], min - max",
        "behind s",
        "lost events",
    ):
        shown.add_column(heading, justify="right")
    base = sides[UNWATCHED]
    for name, side in sides.items():
        compared = side is not base
        shown.add_row(
            name,
            f"{statistics.median(each.seconds for each in side.runs):.2f}",
            ratios(side, base, lambda each: each.seconds) if compared else "",
            f"{statistics.median(each.cpu for each in side.runs):.2f}",
            ratios(side, base, lambda each: each.cpu) if compared else "",
            f"{max(each.behind for each in side.runs):.1f}",
            f"{sum(each.lost for each in side.runs):,}",
        )
    return shown


def main() -> int:
    """Print the table and perhaps write it as JSON."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--busy", action="store_true", help="keep the driver busy in Python, too")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    options = parser.parse_args()
    sides = compare(options.rounds, busy=options.busy)
    Console(width=150).print(table(sides))
    if options.json:
        runs = {name: [asdict(each) for each in side.runs] for name, side in sides.items()}
        options.json.write_text(json.dumps(runs, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
