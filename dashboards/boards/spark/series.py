"""Series of the chosen jobs and queries."""

from __future__ import annotations

from quotascope.alerts.job_waits import growth
from quotascope.alerts.promql import rate, select
from quotascope.metrics.catalog import Family

from ...model import Query
from ...scope import RATE_INTERVAL, Scope
from ...shortcuts import line
from ...variables import one_of

APP, QUERY = one_of("app"), one_of("query")


def of_query(scope: Scope, family: Family, what: str = "") -> Query:
    """The worst of each query."""
    return line(
        worst(scope, family, "app", "query"), f"{{{{app}}}} {{{{query}}}}{what}"
    )


def worst(scope: Scope, family: Family, *labels: str) -> str:
    """The highest of the chosen jobs."""
    return scope.by("max", select(family, *chosen(family)), *labels)


def pace(scope: Scope, family: Family) -> str:
    """How fast a counter of each job grows, per second."""
    return scope.by("sum", rate(family, RATE_INTERVAL, *chosen(family)), "app")


def grown(scope: Scope, family: Family, *labels: str) -> str:
    """How much a counter of the chosen jobs grew."""
    return scope.by("sum", growth(family, RATE_INTERVAL, *chosen(family)), *labels)


def chosen(family: Family) -> tuple[str, ...]:
    """The matchers of the chosen jobs, and queries where there are any."""
    return (APP, QUERY) if "query" in family.labels else (APP,)
