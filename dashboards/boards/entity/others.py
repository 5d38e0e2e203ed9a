"""Ways from one user and client-id to others."""

from __future__ import annotations

from quotascope.alerts.promql import either

from ...columns import cluster, quota_type, used, who
from ...expressions import top, utilization
from ...model import Row, Table
from ...scope import Scope
from ...shortcuts import table
from ...variables import contains

_ROWS = 50


def others(scope: Scope) -> Row:
    """Ways to neighbours, and to anybody else."""
    neighbours = either(
        utilization(scope, *_same("user")), utilization(scope, *_same("client_id"))
    )
    found = either(
        utilization(scope, contains("user", "find")),
        utilization(scope, contains("client_id", "find")),
    )
    near = _way_to(
        scope,
        "Quotas of the same user or client-id",
        "Others that share the user or the client-id of this page.",
        neighbours,
    )
    any_other = _way_to(
        scope,
        "Find a user or client-id",
        "All whose user or client-id contains what is written in the field Find above, the fullest first.",
        found,
    )
    return Row(title="Others", panels=((12, near), (12, any_other)), height=9)


def _same(label: str) -> tuple[str, str]:
    return f"{label}=`${{{label}:raw}}`", f'{label}!=""'


def _way_to(scope: Scope, title: str, description: str, entities: str) -> Table:
    return table(
        title,
        description,
        (top(_ROWS, entities),),
        quota_type(),
        *who(scope.site),
        used("A"),
        cluster(scope.site),
        sort="Used",
    )
