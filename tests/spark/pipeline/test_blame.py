"""Blame by Spark's workers is that of one process."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.blame.logs import BEGIN_MS, row, saturated, stored
from tests.spark.versions import BY_GROUPS

from quotascope.pipeline.blame import summing
from quotascope.pipeline.request_log.schema import TOPIC_ID
from quotascope.pipeline.runs.blame import blame
from quotascope.pipeline.runs.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real


@BY_GROUPS
def test_pieces_of_workers_add_up(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two brokers, over several pieces and files, with a wait across a cut, and a topic that another file names."""
    assert spark
    monkeypatch.setattr(summing, "_PIECE_ROWS", 1)
    by_id = {"traffic": [{"topic": None, "id": "QQ", "bytes": 1}]}
    first = [{**each, **by_id} for each in saturated(seconds=150)]
    across = row(70_000, 14_000.0, 3, "late", broker="3")
    named = row(0, 0.1, 1, "admin", broker="3", topic_ids=[{"topic": "orders", "id": "QQ"}])
    assert set(named["topic_ids"][0]) == {each.name for each in TOPIC_ID}
    folder = stored(tmp_path, first, [across, named, row(61_000, 0.1, 8_500, "slow", broker="3")])
    for span in ((None, None), (BEGIN_MS / 1_000 + 20.5, BEGIN_MS / 1_000 + 65.25)):
        compared(folder, span)


def compared(folder: str, span: tuple[float | None, float | None]) -> None:
    """Of all, or of a period that begins and ends within slots and pieces."""
    here, there = (blame(folder, span, engine=engine) for engine in (Engine.LOCAL, Engine.SPARK))
    assert there.plan.piece_us < 70_000_000
    assert here.plan.head.names == there.plan.head.names
    assert here.plan.threads == there.plan.threads
    assert {each.topic for each in here.plan.head.names} == {"", "orders"}
    for once, pieces in zip(here.sums, there.sums, strict=True):
        assert once.equals(pieces)
