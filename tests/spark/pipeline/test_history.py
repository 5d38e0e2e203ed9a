"""A history that Spark keeps is the one that a single process keeps."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.pipeline.history.requests import ORDER, START_MS, requests
from tests.pipeline.table.rows import append
from tests.spark.process import run_with
from tests.spark.versions import CONNECTOR

from quotascope.pipeline.history import ROLLUP, History
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.spark.run import SparkRun
from quotascope.pipeline.table import Table, TableLayout
from quotascope.pipeline.table.layout import added

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real


BUCKETS = 2


def _source(folder: Path) -> Table:
    layout = TableLayout(bucket_of="user", buckets=BUCKETS, day_of="timestamp")
    return Table.create(str(folder / "requests"), REQUESTS, layout)


def _rows(number: int) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "user": f"user {each % 11}",
            "api_key": 0,
            "produce_bytes": each,
            "traffic": [{"topic": f"t{each % 3}", "id": None, "bytes": each}],
            "timestamp": START_MS + each * 777 - number * 5_000,
            "completed": START_MS + each * 777 + 3,
        }
        for each in range(500)
    ]
    return requests(*rows)


def job(spark: "SparkSession", folder: str) -> list[int]:
    """Take over a batch, then late rows, with a compaction, then nothing; return what each step did."""
    source, run = _source(Path(folder)), SparkRun(spark)
    history = History.create(f"{folder}/spark", BUCKETS)
    append(source, "0", _rows(0))
    first = history.update(source, run)
    append(source, "1", _rows(1))
    second = history.update(source, run)
    replaced = sum(each.compact(run=run) for each in (history.detail, history.seconds))
    return [first, second, replaced, history.update(source, run)]


def _is_kept(folder: Path, done: list[int]) -> None:
    first, second, replaced, third = done
    assert (first, second, third) == (500, 500, 0)
    assert replaced > 0
    here = History.create(str(folder / "here"), buckets=BUCKETS)
    here.update(_source(folder))
    kept = History.open(str(folder / "spark"))
    assert _sums(kept.seconds) == _sums(here.seconds)
    topics = [
        Table.open(str(folder / name / "topics"))
        .read()
        .group_by(["user", "kind", "topic", "start"])
        .aggregate([("bytes", "sum"), ("requests", "sum")])
        for name in ("spark", "here")
    ]
    by: Any = [(name, "ascending") for name in ("user", "kind", "topic", "start")]
    assert len(topics[0])
    assert topics[0].sort_by(by) == topics[1].sort_by(by)
    order: Any = [(name, "ascending") for name in (*ORDER, "produce_bytes")]
    assert kept.detail.read().sort_by(order) == here.detail.read().sort_by(order)


def _sums(seconds: Table) -> pa.Table:
    key = ROLLUP.names[: ROLLUP.names.index("requests")]
    return added(seconds.read(), key).sort_by([(name, "ascending") for name in key])


def test_spark_keeps_the_same_history(spark: "SparkSession", tmp_path: Path) -> None:
    """Detail and sums are equal to the last digit, and every request is taken over once."""
    _is_kept(tmp_path, job(spark, str(tmp_path)))


def test_an_older_spark_keeps_the_same_history(tmp_path: Path) -> None:
    """So does the Spark that Delta Lake is released for."""
    _is_kept(tmp_path, run_with(CONNECTOR, job, tmp_path / "driver", str(tmp_path)))
