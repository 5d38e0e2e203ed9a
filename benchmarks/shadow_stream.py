"""
Time of a step of shadows, beside the ingest of the same lines: `python -m benchmarks shadow-stream`.

Lines of several brokers come in batches, which Spark in `local[2]` reads into tables, and shadows decide on.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.output import say
from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.logs import BROKERS, write_logs
from benchmarks.pipeline.processes import watch
from benchmarks.pipeline.work import candidates
from benchmarks.timing import spread, timed
from tests.spark import sessions

from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions, IngestTables
from quotascope.pipeline.runs.shadow import ShadowStream
from quotascope.pipeline.spark.engine import Spark
from quotascope.pipeline.spark.ingest import ingest

OPTIONS = IngestOptions(broker_pattern="/broker-([0-9]+)/")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--lines", type=int, default=150_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--shadows", type=int, default=1)
    parser.add_argument("--entities", type=int, default=2_000)


def main(options: argparse.Namespace) -> int:
    """Measure each batch, and print the least, the median and the most."""
    timings: dict[str, list[tuple[float, float]]] = {"ingest": [], "step": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= sessions.environment(folder)
        spark: Any = sessions.start(folder / "spark", sessions.LOCAL)
        map_items, usage = Spark(spark).map, str(folder / "usage")
        written = write_logs(
            folder / "logs",
            options.lines * options.batches,
            Crowd(entities=options.entities),
            parts=BROKERS * options.batches,
        )
        history = History.create(usage)
        shadow = ShadowStream(usage, history, candidates(options.shadows), hold_ms=500)
        tables = IngestTables.create(usage)
        for batch in range(options.batches):
            files = [str(file) for file in written.files[batch * BROKERS : (batch + 1) * BROKERS]]

            def read(files: list[str] = files) -> int:
                rows = ingest(spark, files, usage, OPTIONS).kept
                history.update(tables.requests, map_items)
                return rows

            timings["ingest"].append(_measured(read))
            timings["step"].append(_measured(lambda: shadow.step(map_items).decided))
        late = shadow.late
        sessions.end(spark)
    for name, figures in timings.items():
        # the first batch compiles, and the second begins with what it had left
        paces, costs = zip(*figures[2:], strict=True)
        say(f"{name}: rows/s {spread(paces, ',.0f')}, CPU us/row {spread(costs, '.2f')}")
    say(f"late: {late}")
    return 0


def _measured(work: Callable[[], int]) -> tuple[float, float]:
    """Rows a second, and microseconds of CPU time for a row."""
    with watch(os.getpid()) as used:
        seconds, rows = timed(lambda: max(1, work()))
    return rows / seconds, used.cpu * 1e6 / rows
