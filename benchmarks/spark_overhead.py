"""
Times a Spark job of 10,000 tasks without a listener, with quotascope attached, and with callbacks into Python.

`make bench-spark`.

All run in turns in one driver, every second round backwards. `no listener, again` is the noise: the same as `no
listener`. The peer is a py4j listener as PySpark programs write them: in a queue of its own, with a callback server
that the JVM knows, whose onTaskEnd reads what a count of retries needs. Seconds are those of the job. CPU is that of
the driver's JVM, which runs the tasks, too, and of its Python, until the last event was handled. Ratios are to `no
listener` in the same round; in brackets the 95 % interval of the median (bootstrap).
"""

import argparse
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.callbacks import Callbacks
from benchmarks.output import write_json
from benchmarks.process import cpu_seconds
from benchmarks.timing import in_turns, ratios, spread
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from tests.spark import sessions
from tests.spark.settling import settle

from quotascope.spark_listener import attach

TASKS = 10_000
WARM_UP = 2
"""Rounds before any counts: a JVM compiles what it does often."""
GOAL = 1.10
RESAMPLES = 10_000
UNWATCHED, OURS, PEER = "no listener", "quotascope", "py4j callbacks"
Watching = Callable[[SparkSession], AbstractContextManager[Callable[[], int]]]


@dataclass(frozen=True, slots=True)
class Run:
    """
    One job.

    Its seconds, CPU ms of each task, seconds until the last event was handled, and the events that were lost.
    """

    seconds: float
    cpu: float
    behind: float
    lost: int


@dataclass(slots=True)
class Side:
    """Watcher of the job, and its runs."""

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
        events_before = listener.collect().events

        def lost() -> int:
            books = listener.collect()
            # of each task its start and its end, whether or not they were of interest
            missing = max(0, 2 * TASKS - (books.events - events_before))
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
    return cpu_seconds(jvm) + time.process_time()


def run(spark: SparkSession, watching: Watching, jvm: int) -> Run:
    """Run one job, watched."""
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
        works = {name: partial(run, spark, side.watching, jvm) for name, side in sides.items()}
        for name, runs in in_turns(works, rounds, warm_up=WARM_UP, title="running jobs").items():
            sides[name].runs = runs
    return sides


@contextmanager
def session() -> Iterator[SparkSession]:
    """Yield a local session, compiled as a cluster's would be."""
    with tempfile.TemporaryDirectory(prefix="quotascope-bench-") as name:
        folder = Path(name)
        os.environ.update(sessions.environment(folder))
        options = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "2g"}
        spark = sessions.start(folder, "local[2]", options)
        yield spark
        sessions.end(spark)


@contextmanager
def working(*, busy: bool) -> Iterator[None]:
    """Keep a thread of the driver busy in Python within the block, if `busy`."""
    over = threading.Event()

    def work() -> None:
        while busy and not over.is_set():
            sum(range(100_000))

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join()


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median, by resampling."""
    chance = random.Random(7)  # noqa: S311 - no secrets here
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[int(RESAMPLES * 0.025)], medians[int(RESAMPLES * 0.975)]


def compared(side: Side, base: Side, figure: Callable[[Run], float]) -> str:
    """Return the least, the median and the greatest ratio, and the interval of the median."""
    values = ratios([figure(run) for run in side.runs], [figure(run) for run in base.runs])
    low, high = interval(values)
    return f"{spread(values, '.2f')} [{low:.2f} - {high:.2f}]"


def table(sides: dict[str, Side]) -> Table:
    """Return the results as people read them."""
    result_table = Table(title=f"{TASKS:,} tasks; goal {GOAL:g} times the seconds without a listener")
    result_table.add_column("")
    for heading in (
        "seconds",
        "ratio: min / median / max [95 %]",
        "CPU ms a task",
        "ratio: min / median / max [95 %]",
        "behind s",
        "lost events",
    ):
        result_table.add_column(heading, justify="right")
    base = sides[UNWATCHED]
    for name, side in sides.items():
        is_compared = side is not base
        result_table.add_row(
            name,
            f"{statistics.median(run.seconds for run in side.runs):.2f}",
            compared(side, base, lambda run: run.seconds) if is_compared else "",
            f"{statistics.median(run.cpu for run in side.runs):.2f}",
            compared(side, base, lambda run: run.cpu) if is_compared else "",
            f"{max(run.behind for run in side.runs):.1f}",
            f"{sum(run.lost for run in side.runs):,}",
        )
    return result_table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--busy", action="store_true", help="keep the driver busy in Python, too")
    parser.add_argument("--json", type=Path, help="file to write the results to")


def main(options: argparse.Namespace) -> int:
    """Print the table and perhaps write it as JSON."""
    sides = compare(options.rounds, busy=options.busy)
    Console(width=150).print(table(sides))
    write_json(options.json, {name: [asdict(run) for run in side.runs] for name, side in sides.items()})
    return 0
