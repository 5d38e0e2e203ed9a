"""Quota overview: who is throttled now, by which rule, and who is next."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import both, but_not
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ... import columns, steps
from ...columns import cluster, delayed, gauge, number, quota_type, rule, used, who
from ...expressions import (
    ENTITY,
    cause,
    deciding_rule,
    of_entities,
    predicted,
    steady_top,
    throttled,
    top,
    total,
    utilization,
)
from ...model import Board, Graph, Row, Table
from ...scope import Scope
from ...shortcuts import WHO, graph, line, table
from ...variables import common
from ..changes import limit_changes
from .now import right_now
from .rules import configured_rules

_ROWS = 50
_LINES = 10


def board(scope: Scope) -> Board:
    """The dashboard to open first."""
    return Board(
        uid=Dashboard.OVERVIEW.uid,
        title="Kafka quotas / Overview",
        description="Who is throttled now and by which rule, who is next, and what was changed.",
        variables=common(scope),
        annotation=limit_changes(scope),
        rows=(
            right_now(scope),
            who_is_throttled(scope),
            who_is_next(scope),
            who_uses_most(scope),
            over_time(scope),
            configured_rules(scope),
        ),
    )


def who_is_throttled(scope: Scope) -> Row:
    """The table that names them."""
    chosen = top(_ROWS, throttled(scope))
    named = table(
        "Throttled now, by which rule",
        "Who waits, for how long, and which of Kafka's eight levels of rules decides (1 is the strongest). A delay of request time whose cause is topic changes was put there by the controller: raise that quota, not the one of request time.",
        (
            chosen,
            of_entities(scope, utilization(scope), chosen),
            deciding_rule(scope, chosen),
            cause(scope, chosen),
        ),
        quota_type(),
        *who(scope.site),
        delayed("A"),
        used("B"),
        *rule(),
        columns.cause(),
        cluster(scope.site),
        sort="Delay",
    )
    return Row(title="Who is throttled", panels=((24, named),), height=9)


def who_is_next(scope: Scope) -> Row:
    """Those that will be throttled when they grow."""
    on = scope.keys(*ENTITY)
    chosen = top(_ROWS, but_not(utilization(scope), throttled(scope), on))
    closest = table(
        "Closest to the limit, not throttled yet",
        "Share of the limit that is used on the busiest broker; each broker applies the limit by itself. At 100 % Kafka begins to delay. In 3 hours: if the trend of the last six goes on.",
        (
            chosen,
            deciding_rule(scope, chosen),
            of_entities(scope, predicted(scope), chosen),
        ),
        quota_type(),
        *who(scope.site),
        used("A"),
        gauge("In 3 hours", "C", steps.USED, 120),
        *rule()[:1],
        cluster(scope.site),
        sort="Used",
    )
    return Row(
        title="Who is next", panels=((14, closest), (10, _highest(scope))), height=9
    )


def _highest(scope: Scope) -> Graph:
    return graph(
        f"The {_LINES} that use most of their limit",
        "Share of the limit on the busiest broker, of those that are highest at the end of the chosen time.",
        "percentunit",
        line(steady_top(scope, _LINES), f"{{{{quota_type}}}} {WHO}"),
        steps=steps.USED,
    )


def who_uses_most(scope: Scope) -> Row:
    """The biggest users of each kind, with and without limit."""
    kinds = (
        ("Produce", catalog.PRODUCE_BYTES_PER_SECOND, catalog.PRODUCE_LIMIT, "Bps"),
        ("Fetch", catalog.FETCH_BYTES_PER_SECOND, catalog.FETCH_LIMIT, "Bps"),
        ("Request time", catalog.REQUEST_THREADS, catalog.REQUEST_LIMIT, "short"),
    )
    panels = tuple((8, _biggest(scope, *kind)) for kind in kinds)
    return Row(title="Who uses most", panels=panels, height=9)


def _biggest(scope: Scope, kind: str, usage: Family, limit: Family, unit: str) -> Table:
    names = ("user", "client_id")
    chosen = top(_ROWS, scope.by("max", scope.of(usage), *names))
    limits = scope.by("max", scope.of(limit), *names)
    return table(
        f"{kind}: most on one broker",
        f"{usage.help} The busiest broker of each. Whoever has no limit is held back by nothing.",
        (chosen, both(limits, chosen, scope.keys(*names))),
        *who(scope.site),
        number("Usage", "A", unit, 100),
        number("Limit", "B", unit, 100),
        cluster(scope.site),
        sort="Usage",
    )


def over_time(scope: Scope) -> Row:
    """How it came to this."""
    graphs = (_throttled(scope), _connections(scope), _told(scope))
    return Row(title="Over time", panels=tuple((8, each) for each in graphs))


def _throttled(scope: Scope) -> Graph:
    return graph(
        "Throttled users and client-ids",
        "How many were throttled, by quota.",
        "short",
        line(scope.by("count", throttled(scope), "quota_type"), "{{quota_type}}"),
        stacked=True,
    )


def _connections(scope: Scope) -> Graph:
    return graph(
        "Connections waiting",
        "Connections that brokers have muted, by quota.",
        "short",
        line(total(scope, catalog.DELAY_QUEUE_SIZE, "quota_type"), "{{quota_type}}"),
        stacked=True,
    )


def _told(scope: Scope) -> Graph:
    return graph(
        "Time that clients were told to wait",
        "Seconds of delay per second, by request: about the number of connections that do nothing but wait. Every delay counts, however short.",
        "short",
        line(total(scope, catalog.REQUEST_THROTTLED_SECONDS, "request"), "{{request}}"),
        stacked=True,
    )
