"""
Time of blame by rows, beside a plain read and sort of the same rows.

`python -m benchmarks blame-scale --millions 1 5 20`.

The rows are those of four brokers with one handler thread each, busy for 80 % of the time: 200 clients wait in one
queue, first in first out.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.output import say
from benchmarks.timing import in_turns, ratios, spread, timed
from pyspark.sql import SparkSession

from quotascope.pipeline.blame import intervals
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.runs.blame import blame
from quotascope.pipeline.runs.engine import EngineChoice
from quotascope.pipeline.spark.session import session
from quotascope.pipeline.table import Table

COLUMNS = (*intervals.COLUMNS, "traffic")
BROKERS, CLIENTS, TOPICS = 4, 200, 20
BEGIN_MS = 1_795_392_000_000
HELD_MS, BUSY = 0.4, 0.8
AT_ONCE = 1_000_000


def requests(broker: int, count: int, begin_ms: float) -> tuple[pa.Table, float]:
    """Requests of a broker from a time on, and when the last has arrived, ms."""
    random = np.random.default_rng([broker, round(begin_ms)])
    arrived = begin_ms + np.cumsum(random.exponential(HELD_MS / BUSY, count))
    held_ms = random.exponential(HELD_MS, count).round(3)
    held_before = np.cumsum(held_ms) - held_ms
    dequeued = np.maximum.accumulate(arrived - held_before) + held_before
    clients = random.zipf(1.3, count) % CLIENTS
    topics: Any = pa.array([[{"topic": f"topic-{n}", "id": None, "bytes": 100}] for n in range(TOPICS)])
    columns: dict[str, Any] = {
        "timestamp": (dequeued + held_ms).astype(np.int64),
        "completed": (dequeued + held_ms).astype(np.int64),
        "broker": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [str(broker)]).cast(pa.string()),
        "listener": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["PLAINTEXT"]).cast(pa.string()),
        "user": pa.DictionaryArray.from_arrays((clients % 50).astype(np.int32), [f"user-{n}" for n in range(50)]).cast(pa.string()),
        "client_id": pa.DictionaryArray.from_arrays(clients.astype(np.int32), [f"client-{n}" for n in range(CLIENTS)]).cast(pa.string()),
        "api_key": random.integers(0, 4, count).astype(np.int16),
        "queue_time_ms": (dequeued - arrived).round(3),
        "thread_time_ms": held_ms,
        **dict.fromkeys(("remote_time_ms", "response_queue_time_ms", "network_time_ms"), np.zeros(count)),
        "traffic": topics.take(pa.array(clients % TOPICS)),
    }  # fmt: skip
    rows = [
        pa.array(columns[field.name]).cast(field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in REQUESTS
    ]
    return pa.Table.from_arrays(rows, schema=REQUESTS), float(arrived[-1])


def written(folder: Path, millions: int) -> Table:
    """Return a table with a number of rows, a quarter of a million a commit; the existing one, if it has as many."""
    table = IngestTables.create(str(folder)).requests
    if sum(file.rows for file in table.files()) == millions * AT_ONCE:
        return table
    begin = [float(BEGIN_MS)] * BROKERS
    for number in range(millions):
        for broker in range(BROKERS):
            rows, begin[broker] = requests(broker, AT_ONCE // BROKERS, begin[broker])
            table.advance(f"{number}-{broker}", table.stage(rows), after_epoch=None, epoch=0)
    return table


def sorted_here(table: Table) -> None:
    """Read the same columns, and sort them in this process."""
    table.read(COLUMNS).sort_by([("broker", "ascending"), ("completed", "ascending")])


def sorted_by_spark(table: Table) -> None:
    """Read and sort the same by Spark, and discard it."""
    files = [f"{table.storage.uri}/{file.path}" for file in table.files()]
    frame = session().read.parquet(*files).select(*COLUMNS)
    frame.sort("broker", "completed").write.format("noop").mode("overwrite").save()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--engines", nargs="+", default=["local", "spark"])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a folder for the tables")


def main(options: argparse.Namespace) -> int:
    """Print a line for each size and engine."""
    plain = {"local": sorted_here, "spark": sorted_by_spark}
    if "spark" in options.engines:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # the plain sort of all columns, again and again in one session, has no room in the default
        SparkSession.builder.config("spark.driver.memory", "3g").getOrCreate()
    for millions in options.millions:
        with tempfile.TemporaryDirectory() as passing:
            folder = str((options.keep or Path(passing)) / f"{millions}")
            table = written(Path(folder), millions)
            for engine in options.engines:
                work = partial(blame, folder, threads=1, engine=EngineChoice(engine))
                plain[engine](table)  # files are in memory, and kernels are compiled
                jobs: dict[str, Callable[[], object]] = {"base": partial(plain[engine], table), "blame": work}
                sides = {name: partial(timed, job) for name, job in jobs.items()}
                base, ours = ([seconds for seconds, _ in runs] for runs in in_turns(sides, options.times).values())
                say(
                    f"{millions} M, {engine}: read and sort {spread(base, '.1f')} s, blame {spread(ours, '.1f')} s, "
                    f"ratio {spread(ratios(ours, base), '.2f')}, {median(ours) / millions:.2f} s a million"
                )
    return 0
