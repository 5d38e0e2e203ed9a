"""A history that Spark keeps beside that of a single process."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.builders.requests import START_MS
from tests.pipeline.history.requests import ORDER, requests
from tests.pipeline.table.rows import append

from quotascope.pipeline.columns import added
from quotascope.pipeline.history import ROLLUP, History
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.spark.engine import Spark
from quotascope.pipeline.table import Table, TableLayout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _source(folder: Path) -> Table:
    layout = TableLayout(shard_of="user", shards=2, day_of="timestamp")
    return Table.create(str(folder / "requests"), REQUESTS, layout)


def job(spark: "SparkSession", folder: str) -> list[int]:
    """Take over a batch, then late rows, with a compaction, then nothing; return what each step did."""
    source, map_items = _source(Path(folder)), Spark(spark).map
    history = History.create(f"{folder}/spark", 2)
    done = []
    for number in range(2):
        rows: list[dict[str, Any]] = [
            {
                "user": f"user {index % 11}",
                "api_key": 0,
                "produce_bytes": index,
                "traffic": [{"topic": f"t{index % 3}", "id": None, "bytes": index}],
                "timestamp": START_MS + index * 777 - number * 5_000,
                "completed": START_MS + index * 777 + 3,
            }
            for index in range(500)
        ]
        append(source, f"{number}", requests(*rows))
        done.append(history.update(source, map_items))
    replaced = sum(table.compact(map_items=map_items) for table in (history.detail, history.seconds))
    return [*done, replaced, history.update(source, map_items)]


def is_kept(folder: Path, done: list[int]) -> None:
    """Assert that detail and sums are equal to the last digit, and every request is taken over once."""
    first, second, replaced, third = done
    assert (first, second, third) == (500, 500, 0)
    assert replaced > 0
    here = History.create(str(folder / "here"), shards=2)
    here.update(_source(folder))
    kept = History.open(str(folder / "spark"))
    assert _sums(kept.seconds) == _sums(here.seconds)
    key = ["user", "kind", "topic", "start"]
    topics = [
        _sorted(
            Table.open(str(folder / name / "topics"))
            .read()
            .group_by(key)
            .aggregate([("bytes", "sum"), ("requests", "sum")]),
            *key,
        )
        for name in ("spark", "here")
    ]
    assert len(topics[0])
    assert topics[0] == topics[1]
    details = [_sorted(history.detail.read(), *ORDER, "produce_bytes") for history in (kept, here)]
    assert details[0] == details[1]


def _sorted(table: pa.Table, *names: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in names])


def _sums(seconds: Table) -> pa.Table:
    key = ROLLUP.names[: ROLLUP.names.index("requests")]
    return _sorted(added(seconds.read(), key), *key)
