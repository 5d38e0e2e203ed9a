"""Series of the token buckets."""

from __future__ import annotations

from quotascope.alerts.promql import above, both, grouped, operation
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ...expressions import RULE, ratio, throttled
from ...scope import Scope
from ...variables import contains

NAMES = ("user", "client_id")
MUTATION = 'quota_type="controller_mutation"'
_REQUEST = 'quota_type="request"'
_BY_MUTATIONS = 'cause="controller_mutation"'
CHOSEN = (contains("user"), contains("client_id"))


def of(scope: Scope, family: Family, operator: str = "max") -> str:
    """The highest, or lowest, for each chosen user and client-id."""
    return scope.by(operator, scope.of(family, *CHOSEN), *NAMES)


def rules(scope: Scope) -> str:
    """The rules that decide."""
    rules = scope.of(catalog.RULE_INFO, MUTATION, *CHOSEN)
    return scope.by("max", rules, *NAMES, *RULE)


def delayed(scope: Scope) -> str:
    """
    Seconds by which topic changes are held back; only of those that are.

    Under KRaft the broker that forwards a change counts its delay as request throttle, and only the
    cause that the exporter found tells it from a lack of request time.
    """
    if scope.recorded:
        return throttled(scope, MUTATION, *CHOSEN)
    own = above(_throttle_time(scope, MUTATION), 0)
    requests = above(_throttle_time(scope, _REQUEST), 0)
    forwarded = scope.of(catalog.THROTTLE_CAUSE_INFO, _REQUEST, _BY_MUTATIONS, *CHOSEN)
    caused = scope.by("max", forwarded, *NAMES)
    of_requests = both(requests, caused, scope.keys(*NAMES))
    return operation(grouped(own), "or", grouped(of_requests))


def _throttle_time(scope: Scope, quota_type: str) -> str:
    times = scope.of(catalog.THROTTLE_TIME_SECONDS, quota_type, *CHOSEN)
    return scope.by("max", times, *NAMES)


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
