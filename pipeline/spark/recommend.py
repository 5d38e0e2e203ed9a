"""What entities need when rules are for client-ids of any user: Spark brings the requests of each client-id together."""

import pickle
from functools import partial

import pyarrow as pa

from ..recommend.need import Need, needs
from ..recommend.policy import ClusterWindows, Policy
from ..table import Progress, Table
from .arrow import apply_in_arrow, collected
from .run import SparkRun, shown
from .whatif import GROUP, grouped_by, rows_of


def needs_of_clients(
    run: SparkRun,
    history: Table,
    policy: Policy,
    windows: ClusterWindows,
    progress: Progress | None = None,
) -> list[Need]:
    """
    What each client-id needs, with all of its users. A worker holds a group of client-ids in memory (`grouped_by`).

    Args:
        run: of the session.
        history: `History.detail`; workers must reach its path.
        policy: with a shape for client-ids.
        windows: of the quotas.
        progress: called with the tasks that are done, and of how many.

    Raises:
        PipelineError: what keeps a worker from reading the table.

    """
    work = partial(_needs, policy, windows)
    with shown(run.spark, "search for the limits of client-ids", progress):
        grouped = grouped_by(rows_of(history, run.spark), "client_id")
        rows = collected(apply_in_arrow(grouped, GROUP, work, "answer binary"))
    return [need for row in rows for need in pickle.loads(row.answer)]  # noqa: S301 - of our own workers


def _needs(policy: Policy, windows: ClusterWindows, rows: pa.Table) -> pa.Table:
    found = list(needs(rows, policy, windows))
    return pa.table({"answer": [pickle.dumps(found)]})
