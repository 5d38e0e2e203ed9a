"""
Work without quotascope: plain Spark, plain orjson, plain pyarrow and NumPy.

The jobs of Spark take its session first.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.pipeline.crowd import Floats, Integers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOWS: Final = 11
SECOND_MS: Final = 1_000
_SERIES: Final = ("user", "client_id", "broker")


def read_text(spark: "SparkSession", files: Sequence[str]) -> None:
    """Let Spark read lines and drop them."""
    spark.read.text(list(files)).write.format("noop").mode("overwrite").save()


def shuffle(spark: "SparkSession", files: Sequence[str]) -> None:
    """Let Spark read rows, bring those of each series together, sort them, and drop them."""
    rows = spark.read.parquet(*files).repartition(*_SERIES)
    ordered = rows.sortWithinPartitions(*_SERIES, "timestamp")
    ordered.write.format("noop").mode("overwrite").save()


def parse_json(files: Sequence[str]) -> int:
    """Parse every line's JSON, one after the other; how many have one."""
    parsed = 0
    for path in files:
        with Path(path).open("rb") as file:
            for line in file:
                end = line.rfind(b"}") + 1
                try:
                    orjson.loads(line[line.find(b"{") : end])
                except orjson.JSONDecodeError:
                    continue
                parsed += 1
    return parsed


def throttled_seconds(files: Sequence[str], limits: Sequence[float]) -> list[float]:
    """
    Add up how long a produce quota of each limit would have throttled, by whole seconds, in bytes/s.

    This is what a notebook would do, in one process: read, sort, sum by second, look at eleven seconds at a time. It is
    no quota of Kafka's, which looks at each request; it takes about as much reading and sorting.
    """
    table = pa.concat_tables(pq.read_table(path, columns=_COLUMNS) for path in files)
    series = _numbered(table)
    charged = np.nan_to_num(table["produce_bytes"].to_numpy()).astype(np.int64)
    second = table["timestamp"].to_numpy() // SECOND_MS
    second -= second.min()
    order = np.argsort(series * (second.max() + 1) + second, kind="stable")
    sums = _per_second(series[order], second[order], charged[order])
    return [_above(*sums, limit) for limit in limits]


_COLUMNS: Final = [*_SERIES, "timestamp", "produce_bytes"]


def _numbered(table: pa.Table) -> Integers:
    """Return a number for each series."""
    number = np.zeros(table.num_rows, np.int64)
    for name in _SERIES:
        encoded = table[name].combine_chunks().dictionary_encode()
        number *= len(encoded.dictionary)
        number += encoded.indices.to_numpy()
    return number


def _per_second(series: Integers, second: Integers, charged: Integers) -> tuple[Integers, Integers, Floats]:
    changes = (np.diff(series) != 0) | (np.diff(second) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    sums = np.add.reduceat(charged, starts).astype(np.float64)
    return series[starts], second[starts], sums


def _above(series: Integers, second: Integers, sums: Floats, limit: float) -> float:
    """Return the seconds that the sum of eleven seconds is worth above the limit, added up."""
    ends = np.concatenate(([0.0], np.cumsum(sums)))
    key = series * (second.max() + WINDOWS + 1) + second
    window_starts = np.searchsorted(key, key - (WINDOWS - 1))
    rate = (ends[1:] - ends[window_starts]) / WINDOWS
    return float(np.maximum(rate - limit, 0).sum() / limit)
