"""Which clients of which jobs wait, and as what the brokers know them."""

from __future__ import annotations

from functools import partial

from quotascope.alerts.promql import select
from quotascope.metrics import catalog

from ... import columns
from ...expressions import throttled, utilization
from ...job_clients import CLIENT, SEEN_AS, beside, keyed, seen_as, waits
from ...links import to_entity_in_chosen_clusters
from ...model import Column, Query, Row, Table
from ...scope import Scope
from .series import APP, QUERY

_ABOUT = """\
One row for each Kafka client of a job, whoever waits longest first. Waiting: seconds of throttle time that brokers told it per \
second, over ten minutes; 1 means that one task does nothing but wait. Longest: of the last minute or two. \
Brokers' delay and Used are what the exporter knows of the same client: of the user, of the client-id or of both, \
as the rule says (Seen as); of the quota that its side runs into, or of request time. Not seen: no rule applies to it, the job does not say its user, its cluster is not chosen above, or no \
exporter watches it. A link leads to the brokers' view."""


def clients_of_jobs(scope: Scope) -> Row:
    """Both sides of every client in one line: also the way from a throttled client-id to the jobs behind it."""
    return Row(title="Jobs that wait", panels=((24, _table(scope)),), height=9)


def _table(scope: Scope) -> Table:
    longest = select(catalog.SPARK_THROTTLE_MAX_SECONDS, APP, QUERY)
    exprs = (
        waits(scope, APP, QUERY),
        scope.by("max", longest, *CLIENT),
        beside(scope, partial(throttled, scope), APP, QUERY),
        beside(scope, partial(utilization, scope), APP, QUERY),
        seen_as(scope, APP, QUERY),
    )
    return Table(
        title="Jobs that wait for Kafka",
        description=_ABOUT,
        queries=tuple(Query(expr=keyed(expr)) for expr in exprs),
        columns=(
            Column(title="Job", source="app"),
            Column(title="Query", source="query"),
            Column(title="Side", source="side", width=80),
            *columns.named(to_entity_in_chosen_clusters()),
            columns.waiting("A"),
            columns.number("Longest", "B", "s", 90),
            Column(title="Seen as", source="E", width=140, texts=SEEN_AS),
            columns.delayed("C"),
            columns.used("D"),
        ),
        sort="Waiting",
    )
