"""What entities need when rules are for client-ids of any user: Spark brings the requests of each client-id together."""

import pickle
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from quotascope.pipeline.recommend.need import Need, needs
from quotascope.pipeline.recommend.policy import ClusterWindows, Policy
from quotascope.pipeline.replay.frame import whole_groups
from quotascope.pipeline.spark.arrow import collected, map_in_arrow
from quotascope.pipeline.spark.whatif import PLACE, rows_of
from quotascope.pipeline.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLIENT: Final = "client_id"
_ORDER: Final = (_CLIENT, "timestamp", "user", PLACE)
"""As one process reads them: a sensor measures requests of one millisecond one after the other, and a shuffle brings them in any order."""
_ROWS: Final = 1 << 20


def needs_of_clients(
    history: Table, policy: Policy, windows: ClusterWindows, spark: "SparkSession"
) -> list[Need]:
    """
    What each client-id needs, with all of its users. A worker holds the requests of one client-id in memory.

    Args:
        history: `History.detail`; workers must reach its path.
        policy: with a shape for client-ids.
        windows: of the quotas.
        spark: the session.

    Raises:
        PipelineError: what keeps a worker from reading the table.

    """
    grouped = rows_of(history, spark).repartition(_CLIENT).sortWithinPartitions(*_ORDER)
    work = partial(_needs, policy, windows)
    rows = collected(map_in_arrow(grouped, work, "answer binary"))
    return [need for row in rows for need in pickle.loads(row.answer)]  # noqa: S301 - of our own workers


def _needs(
    policy: Policy, windows: ClusterWindows, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    for table in whole_groups(tables, _ROWS, _CLIENT):
        found = list(needs(table, policy, windows))
        yield pa.RecordBatch.from_pydict({"answer": [pickle.dumps(found)]})
