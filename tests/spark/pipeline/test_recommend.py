"""Recommendations by Spark's workers are those of one process."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
import pytest
from tests.pipeline.recommend.rows import history, mutated
from tests.pipeline.table.rows import append
from tests.spark.versions import BY_GROUPS

from quotascope.pipeline.history import History
from quotascope.pipeline.recommend.need import needs
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, RuleShape
from quotascope.pipeline.spark.run import SparkRun
from quotascope.pipeline.spark.shuffled import needs_of_clients

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real

CLIENTS = [f"app{number}" for number in range(3)]


@BY_GROUPS
def test_requests_of_one_millisecond_stay_in_their_order(spark: "SparkSession", tmp_path: Path) -> None:
    """A token bucket checks a mutation before it is charged, so that the one that comes last in a burst needs no room for itself."""
    table = History.create(str(tmp_path), buckets=4).detail
    random = np.random.default_rng(7)
    places = random.permutation(2 * 99 * len(CLIENTS)).tolist()
    for batch in range(2):  # later appends are files of their own
        rows = [
            mutated(0, place + 1, user=f"user {user}", client_id=client, file="a.log", position=place)
            for user in range(99)
            for client in CLIENTS
            for place in [places.pop()]
        ]
        append(table, f"{batch}", history(rows))
    policy = Policy(share=0.0, shape=RuleShape.CLIENT)
    whole = table.read()
    here = {need.entity: need for need in needs(whole, policy, ClusterWindows())}
    place = whole.column_names.index("position")
    negated = pc.negate(whole.column("position"))
    backwards = whole.set_column(place, "position", negated)
    assert {need.steps for need in needs(backwards, policy, ClusterWindows())}.isdisjoint(
        need.steps for need in here.values()
    )
    found = needs_of_clients(SparkRun(spark), table, policy, ClusterWindows())
    assert {need.entity: need for need in found} == here
    assert len(found) == len(CLIENTS)
