"""Topic changes: the quota of controller mutations and its token bucket."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import both
from quotascope.metrics import catalog

from ... import steps
from ...columns import cluster, gauge, number, rule, who
from ...expressions import ratio, top, total
from ...model import Board, Graph, Row
from ...scope import Scope
from ...shortcuts import WHO, graph, limit, line, table
from ...variables import common, text
from ..changes import limit_changes
from .now import now
from .series import (
    NAMES,
    delayed,
    of,
    rules,
    seconds_until_allowed,
    seconds_until_full,
)

_ROWS = 50


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


def buckets(scope: Scope) -> Row:
    """Every bucket: the emptiest first."""
    chosen = top(_ROWS, of(scope, catalog.BURST_USED))
    on = scope.keys(*NAMES)
    emptiest = table(
        "Buckets, the emptiest first",
        "Share of the burst that is used up (1 is empty, more is debt), the pace and its limit, the tokens left, and how long the bucket takes to be full again, or to allow the next change, when nothing is changed meanwhile.",
        (chosen, *(both(each, chosen, on) for each in _figures(scope))),
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


def _figures(scope: Scope) -> tuple[str, ...]:
    return (
        of(scope, catalog.CONTROLLER_MUTATIONS_PER_SECOND),
        of(scope, catalog.CONTROLLER_MUTATION_LIMIT),
        of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min"),
        of(scope, catalog.CONTROLLER_MUTATION_BURST),
        seconds_until_full(scope),
        seconds_until_allowed(scope),
        rules(scope),
    )


def over_time(scope: Scope) -> Row:
    """Pace against limit, tokens against burst."""
    return Row(
        title="Over time",
        panels=tuple(
            (8, each) for each in (_pace(scope), _tokens(scope), _burst_used(scope))
        ),
    )


def _pace(scope: Scope) -> Graph:
    return graph(
        "Changes per second, against the limit",
        f"{catalog.CONTROLLER_MUTATIONS_PER_SECOND.help} Short bursts above the limit are allowed while there are tokens.",
        "short",
        line(of(scope, catalog.CONTROLLER_MUTATIONS_PER_SECOND), WHO),
        limit(of(scope, catalog.CONTROLLER_MUTATION_LIMIT), f"limit of {WHO}"),
    )


def _tokens(scope: Scope) -> Graph:
    return graph(
        "Tokens, against the burst",
        "Partitions that may still be changed at once. Below 0 further changes are refused.",
        "short",
        line(of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min"), WHO),
        limit(of(scope, catalog.CONTROLLER_MUTATION_BURST), f"burst of {WHO}"),
    )


def _burst_used(scope: Scope) -> Graph:
    return graph(
        "Share of the burst that is used up",
        "1 is an empty bucket, more is debt; and the most of the last minute where the exporter samples between scrapes.",
        "percentunit",
        line(of(scope, catalog.BURST_USED), WHO),
        line(of(scope, catalog.BURST_USED_MAX), f"{WHO}, peak"),
        steps=steps.BURST,
    )


def refusals(scope: Scope) -> Row:
    """What was refused, and who was delayed."""
    errors = graph(
        "Refused per second, by request",
        "Answers with THROTTLING_QUOTA_EXCEEDED (error 89), by node and request. Clients that know the error wait and try again by themselves.",
        "cps",
        line(
            total(scope, catalog.THROTTLING_ERRORS, "broker", "request"),
            "{{request}} on {{broker}}",
        ),
        line(
            total(scope, catalog.REJECTED_MUTATIONS, "broker"),
            "partitions on {{broker}}, by an embedded engine",
        ),
        stacked=True,
    )
    delays = graph(
        "Delay",
        "Average delay that was told to those whose topic changes were throttled.",
        "s",
        line(delayed(scope), WHO),
        steps=steps.DELAY,
    )
    return Row(title="Refused and delayed", panels=((12, errors), (12, delays)))


def controller(scope: Scope) -> Row:
    """What the quota protects."""
    seconds = total(scope, catalog.CONTROLLER_EVENT_QUEUE_SECONDS, "broker")
    events = total(scope, catalog.CONTROLLER_EVENTS, "broker")
    wait = ratio(seconds, events, scope.keys("broker"))
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
        line(events, "controller {{broker}}"),
    )
    return Row(title="The controller", panels=((12, waits), (12, pace)))
