"""Moments at which limits changed: marked on every dashboard."""

from __future__ import annotations

from quotascope.alerts.promql import above, increase
from quotascope.metrics.catalog import LIMIT_CHANGES

from ..model import Query
from ..scope import RATE_INTERVAL, Scope


def limit_changes(scope: Scope) -> Query:
    """When a configured limit was set, changed or removed."""
    changes = increase(LIMIT_CHANGES, RATE_INTERVAL, scope.chosen, extra=scope.cluster)
    expr = above(scope.by("max", changes, "quota_key"), 0)
    return Query(expr=expr, legend=f"{{{{quota_key}}}} {{{{{scope.cluster}}}}}")
