"""A replay by Spark's workers gives what the local engine gives."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.pipeline.replay.histories import CROWD, candidate, crowd, sorted_rows

from quotascope.metrics import DEFAULT, QuotaEntity
from quotascope.pipeline.errors import DamagedFile
from quotascope.pipeline.history import History
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, RuleShape
from quotascope.pipeline.replay import RESULTS, Mode, ReplaySettings, replay
from quotascope.pipeline.spark.recommend import needs_of_clients
from quotascope.pipeline.spark.whatif import replay_frame, replay_table, rows_of
from quotascope.pipeline.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real

SHARED = candidate(
    {QuotaEntity(None, DEFAULT): {"producer_byte_rate": 50_000.0}}, name="shared"
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A committed history of nine users, appended in two batches."""
    table = History.create(str(tmp_path_factory.mktemp("history")), 4).detail
    rows = crowd(users=9, rows=500)
    table.append("first", rows.slice(0, 300))
    table.append("second", rows.slice(300))
    return table


@pytest.mark.parametrize(
    ("mode", "candidates"),
    [
        pytest.param(Mode.OPEN_LOOP, CROWD, id="open loop, bucket by bucket"),
        pytest.param(Mode.CLOSED_LOOP, [*CROWD, SHARED], id="closed loop, shuffled"),
    ],
)
def test_table(
    spark: "SparkSession", stored: Table, mode: Mode, candidates: list[Any]
) -> None:
    """Workers read the files of their buckets; where users share a limit, rows are brought together first."""
    found = replay_table(stored, candidates, mode, spark=spark)
    assert found.schema == RESULTS
    assert sorted_rows(found) == sorted_rows(replay(stored.read(), candidates, mode))


def test_frame(spark: "SparkSession", stored: Table) -> None:
    """Any frame with the columns of a history is replayed, groups carried over batches, and brokers kept apart on demand."""
    apart = ReplaySettings(per_broker=True, rows_at_once=50)
    frame = rows_of(stored, spark).orderBy("timestamp")
    found = replay_frame(frame, CROWD, settings=apart)
    rows = pa.Table.from_pylist([row.asDict() for row in found.collect()], RESULTS)
    whole = replay(stored.read(), CROWD, settings=apart)
    assert sorted_rows(rows) == sorted_rows(whole)


def _replayed(table: Table, spark: "SparkSession") -> object:
    return replay_table(table, [SHARED], spark=spark)


def _needed(table: Table, spark: "SparkSession") -> object:
    return needs_of_clients(
        table, Policy(shape=RuleShape.CLIENT), ClusterWindows(), spark
    )


@pytest.mark.parametrize("work", [_replayed, _needed])
def test_damage_where_users_share_a_limit(
    spark: "SparkSession", tmp_path: Path, work: Any
) -> None:
    """Rows are shuffled between workers then, and the error of the one that cannot read them arrives as it was raised."""
    table = History.create(str(tmp_path), 2).detail
    table.append("rows", crowd(users=3, rows=20))
    damaged = table.files()[0]
    Path(table.storage.uri, damaged.path).write_bytes(b"PAR1")
    with pytest.raises(DamagedFile, match="it has 4 bytes") as raised:
        work(table, spark)
    assert raised.value.file == damaged.path
    assert str(raised.value).startswith(f"table {table.storage.uri}: its file ")
