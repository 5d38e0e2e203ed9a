"""Topic changes: the quota of controller mutations and its token bucket."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import both, grouped, operation
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import steps
from ..columns import cluster, gauge, number, rule, who
from ..expressions import RULE, counter_rate, ratio, throttled, top
from ..model import Board, Row
from ..scope import Scope
from ..shortcuts import WHO, graph, limit, line, stat, table
from ..variables import common, contains, text
from .changes import limit_changes

_ROWS = 50
_NAMES = ("user", "client_id")
_MUTATION = 'quota_type="controller_mutation"'
_FILTER = (contains("user"), contains("client_id"))


def board(scope: Scope) -> Board:
    """The dashboard about creating and deleting topics and adding partitions."""
    return Board(
        uid=Dashboard.MUTATIONS.uid,
        title="Kafka quotas / Topic changes",
        description="The quota of controller mutations: partitions created, added or deleted. A token bucket allows bursts; when it is empty, Kafka refuses (error 89) or delays until it has filled up at the pace of the limit.",
        variables=(
            *common(scope),
            text("user", "User", "Part of the user; empty for all."),
            text("client_id", "Client-id", "Part of the client-id; empty for all."),
        ),
        annotation=limit_changes(scope),
        rows=(
            now(scope),
            buckets(scope),
            over_time(scope),
            refusals(scope),
            controller(scope),
        ),
    )


def now(scope: Scope) -> Row:
    """Four numbers."""
    tokens = _of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    numbers = (
        stat(
            scope,
            "Throttled",
            "Users and client-ids whose topic changes were held back within the last minute.",
            "short",
            scope.by("count", throttled(scope, _MUTATION, *_FILTER)),
            steps=steps.ENTITIES,
        ),
        stat(
            scope,
            "Buckets empty",
            "Users and client-ids without tokens: the next change is refused.",
            "short",
            scope.by("count", f"{tokens} <= 0"),
            steps=steps.ANY,
        ),
        stat(
            scope,
            "Longest wait for the next change",
            "How long whoever is deepest in debt waits until the bucket holds a token again.",
            "s",
            scope.by("max", _seconds_until_allowed(scope)),
            steps=steps.DELAY,
            nothing="none",
        ),
        stat(
            scope,
            "Refused per second",
            "Answers with THROTTLING_QUOTA_EXCEEDED. KRaft counts each twice, on the broker and on the controller.",
            "cps",
            scope.by("sum", counter_rate(scope, catalog.THROTTLING_ERRORS)),
            steps=steps.REFUSED,
        ),
    )
    return Row(title="Right now", panels=tuple((6, each) for each in numbers), height=4)


def buckets(scope: Scope) -> Row:
    """Every bucket: the emptiest first."""
    chosen = top(_ROWS, _of(scope, catalog.BURST_USED))
    on = scope.keys(*_NAMES)
    restricted = (
        _of(scope, catalog.CONTROLLER_MUTATIONS_PER_SECOND),
        _of(scope, catalog.CONTROLLER_MUTATION_LIMIT),
        _of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min"),
        _of(scope, catalog.CONTROLLER_MUTATION_BURST),
        _seconds_until_full(scope),
        _seconds_until_allowed(scope),
        _rules(scope),
    )
    emptiest = table(
        "Buckets, the emptiest first",
        "Share of the burst that is used up (1 is empty, more is debt), the pace and its limit, the tokens left, and how long the bucket takes to be full again, or to allow the next change, when nothing is changed meanwhile.",
        (chosen, *(both(each, chosen, on) for each in restricted)),
        *who(scope.site),
        gauge("Burst used", "A", steps.BURST, 190),
        number("Changes/s", "B", "short", 100),
        number("Limit/s", "C", "short", 90),
        number("Tokens", "D", "short", 90),
        number("Burst", "E", "short", 90),
        number("Full again in", "F", "s"),
        number("Next allowed in", "G", "s"),
        *rule(),
        cluster(scope.site),
        sort="Burst used",
    )
    return Row(title="Token buckets", panels=((24, emptiest),), height=8)


def over_time(scope: Scope) -> Row:
    """Pace against limit, tokens against burst."""
    pace = graph(
        "Changes per second, against the limit",
        f"{catalog.CONTROLLER_MUTATIONS_PER_SECOND.help} Short bursts above the limit are allowed while there are tokens.",
        "short",
        line(_of(scope, catalog.CONTROLLER_MUTATIONS_PER_SECOND), WHO),
        limit(_of(scope, catalog.CONTROLLER_MUTATION_LIMIT), f"limit of {WHO}"),
    )
    tokens = graph(
        "Tokens, against the burst",
        "Partitions that may still be changed at once. Below 0 further changes are refused.",
        "short",
        line(_of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min"), WHO),
        limit(_of(scope, catalog.CONTROLLER_MUTATION_BURST), f"burst of {WHO}"),
    )
    return Row(title="Over time", panels=((12, pace), (12, tokens)))


def refusals(scope: Scope) -> Row:
    """What was refused, and who was delayed."""
    errors = graph(
        "Refused per second, by request",
        "Answers with THROTTLING_QUOTA_EXCEEDED (error 89), by node and request. Clients that know the error wait and try again by themselves.",
        "cps",
        line(
            scope.by(
                "sum",
                counter_rate(scope, catalog.THROTTLING_ERRORS),
                "broker",
                "request",
            ),
            "{{request}} on {{broker}}",
        ),
        stacked=True,
    )
    delays = graph(
        "Delay",
        "Average delay that was told to those whose topic changes were throttled.",
        "s",
        line(throttled(scope, _MUTATION, *_FILTER), WHO),
        steps=steps.DELAY,
    )
    return Row(title="Refused and delayed", panels=((12, errors), (12, delays)))


def controller(scope: Scope) -> Row:
    """What the quota protects."""
    seconds = counter_rate(scope, catalog.CONTROLLER_EVENT_QUEUE_SECONDS)
    events = counter_rate(scope, catalog.CONTROLLER_EVENTS)
    wait = ratio(
        scope.by("sum", seconds, "broker"),
        scope.by("sum", events, "broker"),
        scope.keys("broker"),
    )
    waits = graph(
        "How long the controller's events wait",
        "Average time in the active controller's queue. While it stays low, the quota can be raised; when it grows, topic changes come faster than the controller handles them.",
        "s",
        line(wait, "controller {{broker}}"),
    )
    pace = graph(
        "Events of the controller per second",
        "What the active controller handles, topic changes among them.",
        "cps",
        line(scope.by("sum", events, "broker"), "controller {{broker}}"),
    )
    return Row(title="The controller", panels=((12, waits), (12, pace)))


def _of(scope: Scope, family: Family, operator: str = "max") -> str:
    return scope.by(operator, scope.of(family, *_FILTER), *_NAMES)


def _rules(scope: Scope) -> str:
    rules = scope.of(catalog.RULE_INFO, _MUTATION, *_FILTER)
    return scope.by("max", rules, *_NAMES, *RULE)


def _seconds_until_full(scope: Scope) -> str:
    burst = _of(scope, catalog.CONTROLLER_MUTATION_BURST)
    tokens = _of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    missing = operation(burst, "-", tokens, scope.keys(*_NAMES))
    return _at_the_pace(scope, grouped(missing))


def _seconds_until_allowed(scope: Scope) -> str:
    tokens = _of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    return _at_the_pace(scope, f"-({tokens} < 0)")


def _at_the_pace(scope: Scope, tokens: str) -> str:
    pace = _of(scope, catalog.CONTROLLER_MUTATION_LIMIT)
    return ratio(tokens, pace, scope.keys(*_NAMES))
