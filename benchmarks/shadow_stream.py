"""
What a step of shadows takes, beside the ingest of the same lines: `python -m benchmarks.shadow_stream`.

Lines of several brokers come in batches, which Spark in `local[2]` reads into tables, and shadows decide on.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.pipeline.crowd import Crowd
from benchmarks.pipeline.logs import BROKERS, write_logs
from benchmarks.pipeline.processes import watch
from benchmarks.pipeline.work import candidates
from rich.console import Console
from tests.spark import sessions

from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestOptions, IngestTables
from quotascope.pipeline.runs.shadow import ShadowStream
from quotascope.pipeline.spark.ingest import ingest
from quotascope.pipeline.spark.run import SparkRun

OPTIONS = IngestOptions(broker_pattern="/broker-([0-9]+)/")


def main() -> int:
    """Measure each batch, and print the least, the median and the most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=150_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--shadows", type=int, default=1)
    parser.add_argument("--entities", type=int, default=2_000)
    given = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"ingest": [], "step": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= sessions.environment(folder)
        spark: Any = sessions.start(folder / "spark", sessions.LOCAL)
        run, usage = SparkRun(spark), str(folder / "usage")
        written = write_logs(
            folder / "logs", given.lines * given.batches, Crowd(entities=given.entities), parts=BROKERS * given.batches
        )
        history = History.create(usage)
        shadow = ShadowStream(usage, history, candidates(given.shadows), hold_ms=500)
        tables = IngestTables.create(usage)
        for batch in range(given.batches):
            files = [str(each) for each in written.files[batch * BROKERS : (batch + 1) * BROKERS]]

            def read(files: list[str] = files) -> int:
                kept = ingest(spark, files, usage, OPTIONS).kept
                history.update(tables.requests, run)
                return kept

            found["ingest"].append(_measured(read))
            found["step"].append(_measured(lambda: shadow.step(run).decided))
        late = shadow.late
        sessions.end(spark)
    say = Console(highlight=False, soft_wrap=True).print
    for name, figures in found.items():
        # the first batch compiles, and the second begins with what it had left
        paces, costs = zip(*figures[2:], strict=True)
        say(f"{name}: rows/s {_three(paces, 0)}, CPU us/row {_three(costs, 2)}")
    say(f"late: {late}")
    return 0


def _measured(work: Callable[[], int]) -> tuple[float, float]:
    """Rows a second, and microseconds of CPU time for a row."""
    with watch(os.getpid()) as used:
        begin = time.perf_counter()
        rows = max(1, work())
        took = time.perf_counter() - begin
    return rows / took, used.cpu * 1e6 / rows


def _three(figures: tuple[float, ...], digits: int) -> str:
    return "/".join(f"{each:,.{digits}f}" for each in (min(figures), median(figures), max(figures)))


if __name__ == "__main__":
    sys.exit(main())
