"""Recommendations by Spark's workers are those of one process."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.pipeline.recommend.rows import history, mutated

from quotascope.pipeline.history import History
from quotascope.pipeline.recommend.need import needs
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy, RuleShape
from quotascope.pipeline.spark.recommend import needs_of_clients
from quotascope.pipeline.table.layout import bucket_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.real

CLIENTS = [f"app{number}" for number in range(3)]


def test_requests_of_one_millisecond_stay_in_their_order(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """A token bucket checks a mutation before it is charged, so that the one that comes last in a burst needs no room for itself."""
    table = History.create(str(tmp_path), buckets=4).detail
    names = [f"{letter}{number}" for letter in "zyxw" for number in range(99)]
    # the first bucket has the last names: no worker's order is that of all of them
    users = {
        name: place + 1
        for place, name in enumerate(names)
        if bucket_of(name, 4) == "zyxw".index(name[0])
    }
    for batch in range(2):  # later appends are files of their own
        rows = [
            mutated(0, size + 500 * batch, user=user, client_id=client)
            for user, size in users.items()
            for client in CLIENTS
        ]
        table.append(f"{batch}", history(rows))
    policy = Policy(share=0.0, shape=RuleShape.CLIENT)
    ordered = pa.Table.from_batches(list(table.batches(table.files())))
    here = {need.entity: need for need in needs(ordered, policy, ClusterWindows())}
    backwards = ordered.take(list(range(len(ordered)))[::-1])
    assert {
        need.steps for need in needs(backwards, policy, ClusterWindows())
    }.isdisjoint(need.steps for need in here.values())
    found = needs_of_clients(table, policy, ClusterWindows(), spark)
    assert {need.entity: need for need in found} == here
    assert len(found) == len(CLIENTS)
