"""Engines replay and recommend as one replay of all rows does."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as sql
from tests.builders.requests import CREATE_TOPICS, Request
from tests.pipeline.recommend import rows as requests
from tests.pipeline.replay.histories import CROWD, SHARED, candidate, crowd, history, sorted_rows
from tests.pipeline.table.rows import append
from tests.spark.versions import BY_GROUPS

from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.pipeline.engine import Engine
from quotascope.pipeline.errors import DamagedFile, PipelineError
from quotascope.pipeline.history import History
from quotascope.pipeline.recommend.need import needs
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, RuleShape
from quotascope.pipeline.replay import RESULTS, Mode, ReplaySettings, replay
from quotascope.pipeline.replay.frame import NEEDED
from quotascope.pipeline.runs.recommend import needs_of
from quotascope.pipeline.runs.whatif import replayed
from quotascope.pipeline.spark import replay_frame
from quotascope.pipeline.spark.arrow import collected, ddl
from quotascope.pipeline.spark.shuffled import rows_of
from quotascope.pipeline.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A committed history of nine users, appended in two batches."""
    table = History.create(str(tmp_path_factory.mktemp("history")), 4).detail
    rows = crowd(users=9, rows=500)
    append(table, "first", rows.slice(0, 300))
    append(table, "second", rows.slice(300))
    return table


@BY_GROUPS
@pytest.mark.parametrize(
    ("mode", "candidates"),
    [
        pytest.param(Mode.OPEN_LOOP, CROWD, id="open loop, shard by shard"),
        pytest.param(Mode.CLOSED_LOOP, [*CROWD, SHARED], id="closed loop, shuffled"),
    ],
)
def test_table(engine: Engine, stored: Table, mode: Mode, candidates: list[Any]) -> None:
    """An engine replays a history shard by shard; where users share a limit, it brings their rows together first."""
    results = replayed(stored, candidates, mode, engine)
    assert results.schema == RESULTS
    assert sorted_rows(results) == sorted_rows(replay(stored.read(), candidates, mode))


@pytest.mark.real
@BY_GROUPS
def test_frame(spark: "SparkSession", stored: Table) -> None:
    """Any frame with the columns of a history is replayed, in any order, and brokers are kept apart on demand."""
    apart = ReplaySettings(per_broker=True, rows_at_once=50)
    frame = rows_of(stored, NEEDED, spark).orderBy("timestamp", ascending=False)
    results = replay_frame(frame, CROWD, settings=apart)
    rows = pa.Table.from_pylist([row.asDict() for row in results.collect()], RESULTS)
    whole = replay(stored.read(), CROWD, settings=apart)
    assert sorted_rows(rows) == sorted_rows(whole)


@pytest.mark.real
@BY_GROUPS
def test_position(spark: "SparkSession") -> None:
    """The position of mutations in one millisecond decides which one exhausts the bucket and is refused."""
    asked = [1, 2, 500, 4, 8]
    rows = history([Request(api_key=CREATE_TOPICS, cost=cost) for cost in asked])
    tried = [candidate({QuotaEntity("alice", None): {"controller_mutation_rate": 2.0}})]

    def refused(positions: list[int]) -> int:
        placed = rows.set_column(rows.column_names.index("position"), "position", pa.array(positions))
        listed = [tuple(row.values()) for row in placed.to_pylist()]
        frame = spark.createDataFrame(listed, ddl(rows.schema))
        (results,) = replay_frame(frame.repartition(3), tried).collect()
        number: int = results.refused_mutations
        return number

    assert refused([1, 2, 3, 4, 5]) == 4 + 8
    assert refused([5, 4, 3, 2, 1]) == 1 + 2


@pytest.mark.real
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drop": "connection"}, "the frame lacks the columns connection;"),
        ({"timestamp": "CAST(timestamp AS TIMESTAMP)"}, "the frame's column timestamp is timestamp, not bigint;"),
        ({"refused": "CAST(refused AS INT)"}, "refused is int, not boolean;"),
        ({"position": "user"}, "position is string, not bigint;"),
    ],
)
def test_other_frames(spark: "SparkSession", stored: Table, change: dict[str, str], said: str) -> None:
    """A frame without the needed columns is refused before anything runs, also one with Spark's own times."""
    frame = rows_of(stored, NEEDED, spark).drop(change.pop("drop", ""))
    for name, made in change.items():
        frame = frame.withColumn(name, sql.expr(made))
    with pytest.raises(PipelineError, match=re.escape(said)):
        replay_frame(frame, CROWD)


@pytest.mark.real
@BY_GROUPS
@pytest.mark.parametrize("candidates", [CROWD, [SHARED]])
def test_nulls(spark: "SparkSession", stored: Table, candidates: list[Any]) -> None:
    """A row without a user is an error, never left out: no quota can be found for it."""
    frame = rows_of(stored, NEEDED, spark).withColumn("user", sql.expr("nullif(user, 'user 1')"))
    with pytest.raises(PipelineError, match=r"column user is null in \d+ of"):
        collected(replay_frame(frame, candidates))


def _replayed(table: Table, engine: Engine) -> object:
    return replayed(table, [SHARED], Mode.OPEN_LOOP, engine)


def _needed(table: Table, engine: Engine) -> object:
    return list(needs_of(table, Policy(shape=RuleShape.CLIENT), ClusterWindows(), engine))


@BY_GROUPS
@pytest.mark.parametrize("work", [_replayed, _needed])
def test_damage_where_users_share_a_limit(engine: Engine, tmp_path: Path, work: Any) -> None:
    """A damaged file of one worker is reported as such, also where workers shuffle rows."""
    table = History.create(str(tmp_path), 2).detail
    append(table, "rows", crowd(users=3, rows=20))
    damaged = table.files()[0]
    Path(table.storage.uri, damaged.path).write_bytes(b"PAR1")
    with pytest.raises(DamagedFile, match="it has 4 bytes") as raised:
        work(table, engine)
    assert raised.value.file == damaged.path
    assert str(raised.value).startswith(f"table {table.storage.uri}: its file ")


CLIENTS = [f"app{number}" for number in range(3)]


@BY_GROUPS
def test_requests_of_one_millisecond_stay_in_their_order(engine: Engine, tmp_path: Path) -> None:
    """A token bucket checks a mutation before it is charged, so that the last of a burst needs no room for itself."""
    table = History.create(str(tmp_path), shards=4).detail
    random = np.random.default_rng(7)
    places = random.permutation(2 * 99 * len(CLIENTS)).tolist()
    for batch in range(2):  # later appends are files of their own
        rows = [
            requests.mutated(0, place + 1, user=f"user {user}", client_id=client, file="a.log", position=place)
            for user in range(99)
            for client in CLIENTS
            for place in [places.pop()]
        ]
        append(table, f"{batch}", requests.history(rows))
    policy = Policy(share=0.0, shape=RuleShape.CLIENT)
    whole = table.read()
    here = {need.entity: need for need in needs(whole, policy, ClusterWindows())}
    place = whole.column_names.index("position")
    negated = pc.negate(whole.column("position"))
    backwards = whole.set_column(place, "position", negated)
    assert {need.steps for need in needs(backwards, policy, ClusterWindows())}.isdisjoint(
        need.steps for need in here.values()
    )
    found = list(needs_of(table, policy, ClusterWindows(), engine))
    assert {need.entity: need for need in found} == here
    assert len(found) == len(CLIENTS)
