"""Which Spark jobs are behind a user and client-id."""

from __future__ import annotations

from functools import partial

from ... import columns
from ...expressions import utilization
from ...job_clients import behind, keyed
from ...links import to_job
from ...model import Column, Query, Row, Table
from ...scope import Scope
from .selected import SELECTED


def jobs(scope: Scope) -> Row:
    """The jobs whose clients count against the quotas of this page."""
    selected = partial(utilization, scope, *SELECTED)
    found = Table(
        title="Spark jobs behind it",
        description="Jobs with a Spark listener whose Kafka clients count against the quotas above, and how long brokers make them wait: 1 means that one task does nothing else. The link leads to the job.",
        queries=(Query(expr=keyed(behind(scope, selected))),),
        columns=(
            Column(title="Job", source="app", links=(to_job(),)),
            Column(title="Query", source="query"),
            Column(title="Side", source="side", width=80),
            Column(title="User", source="user"),
            Column(title="Client-id", source="client_id"),
            columns.waiting("A"),
        ),
        sort="Waiting",
    )
    return Row(title="Spark jobs", panels=((24, found),), height=6, collapsed=True)
