"""Series of the token buckets."""

from __future__ import annotations

from quotascope.alerts.promql import grouped, operation
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ...expressions import RULE, ratio
from ...scope import Scope
from ...variables import contains

NAMES = ("user", "client_id")
MUTATION = 'quota_type="controller_mutation"'
CHOSEN = (contains("user"), contains("client_id"))


def of(scope: Scope, family: Family, operator: str = "max") -> str:
    """The highest, or lowest, for each chosen user and client-id."""
    return scope.by(operator, scope.of(family, *CHOSEN), *NAMES)


def rules(scope: Scope) -> str:
    """The rules that decide."""
    rules = scope.of(catalog.RULE_INFO, MUTATION, *CHOSEN)
    return scope.by("max", rules, *NAMES, *RULE)


def seconds_until_full(scope: Scope) -> str:
    """How long buckets take to fill up, when nothing is changed meanwhile."""
    burst = of(scope, catalog.CONTROLLER_MUTATION_BURST)
    tokens = of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    missing = operation(burst, "-", tokens, scope.keys(*NAMES))
    return _at_the_pace(scope, grouped(missing))


def seconds_until_allowed(scope: Scope) -> str:
    """How long those in debt wait for the next change."""
    tokens = of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    return _at_the_pace(scope, f"-({tokens} < 0)")


def _at_the_pace(scope: Scope, tokens: str) -> str:
    pace = of(scope, catalog.CONTROLLER_MUTATION_LIMIT)
    return ratio(tokens, pace, scope.keys(*NAMES))
