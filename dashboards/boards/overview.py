"""Overview dashboard: throttled clients, their rules, and the next clients to be throttled."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_uppercase
from typing import Any

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import QuotaType

from .. import columns, steps
from ..expressions import (
    ENTITY,
    RULE,
    cause,
    count_by_callback,
    count_of_sources_down,
    deciding_rule,
    occurred,
    occurred_nowhere,
    of_entities,
    predicted,
    refused,
    row_key,
    share_throttled,
    steady_top,
    throttled,
    throttled_by_callback,
    top,
    total,
    utilization,
)
from ..links import runbooks, to_dashboard
from ..panels import Line, Panel, Row, dashboard, episodes, graph, side_by_side, stat, table
from ..promql import above, both, but_not, call, either, highest
from ..scope import Scope
from ..variables import common, teams

_ROWS = 50
_LINES = 10
_AT_MOST = f"At most {_ROWS} of each cluster."


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard to open first."""
    scope = replace(scope, by_team=True)
    return dashboard(
        scope,
        Dashboard.OVERVIEW,
        title="Kafka quotas / Overview",
        description=(
            "Which clients are throttled now, and by which rule, which are next, and which quotas were changed."
        ),
        variables=(*common(scope), teams()),
        rows=(
            right_now(scope),
            who_is_throttled(scope),
            who_is_next(scope),
            who_uses_most(scope),
            over_time(scope),
            configured_rules(scope),
        ),
        marks=(_episodes(scope),),
    )


def _episodes(scope: Scope) -> dict[str, Any]:
    """Return marks for all clients of a cluster together: red marks of single clients would hide the graphs."""
    clients = call("label_replace", scope.by("count", throttled(scope)), '"what"', '"clients"', '""', '""')
    return episodes(scope, clients, "what")


def right_now(scope: Scope) -> Row:
    """Return the row of six numbers that summarize a cluster."""
    count = stat(
        scope,
        "Throttled",
        "Users and client-ids that Kafka throttled within the last minute; for a custom quota callback, those on the "
        "broker with most. The brokers' averages linger for 30 to 60 s after the last delay. The alert counts those "
        "delayed by more than ${THROTTLED} s on average or for ${THROTTLED_SHARE_PERCENT} % of the last 15 minutes.",
        "short",
        scope.or_zero(
            highest(scope.keys(), clients=_count(scope, throttled(scope)), callback=count_by_callback(scope))
        ),
        to_dashboard(Dashboard.TEAMS, "Teams"),
        *runbooks(scope.site, "KafkaQuotaManyClientsThrottled", "KafkaQuotaThrottleStorm"),
        steps=steps.ENTITIES,
    )
    muted = stat(
        scope,
        "Connections waiting",
        "Connections that brokers have muted at this moment: the live signal of throttles.",
        "short",
        total(scope, catalog.DELAY_QUEUE_SIZE),
        to_dashboard(Dashboard.BROKERS, "On which brokers"),
        steps=steps.MUTED,
        nothing="not reported",
    )
    longest = stat(
        scope,
        "Longest delay",
        "Average delay of the entity that waits longest. Clients give up after their request timeout, often 30 s.",
        "s",
        scope.or_zero(scope.by("max", either(throttled(scope), throttled_by_callback(scope)))),
        *runbooks(scope.site, "KafkaQuotaThrottleBeyondClientTimeout"),
        steps=steps.DELAY,
    )
    near = stat(
        scope,
        "Above ${NEAR_LIMIT_PERCENT}% of the limit",
        "Users and client-ids near their limit or above it at this moment, throttled or not. Without known limits "
        "there is no number.",
        "short",
        scope.or_zero(
            _count(scope, above(utilization(scope), "${NEAR_LIMIT}")),
            evidence=both(scope.of(catalog.LIMITS_AGE_SECONDS), above(scope.of(catalog.SOURCE_UP), 0), scope.keys()),
        ),
        steps=steps.ANY,
    )
    refusals = stat(
        scope,
        "Refused (error 89)",
        "Answers with THROTTLING_QUOTA_EXCEEDED per second, of the request that is refused most: creating or "
        "deleting topics, adding partitions. KRaft counts each twice, on the broker and on the controller.",
        "cps",
        refused(scope),
        to_dashboard(Dashboard.MUTATIONS, "Controller mutations"),
        *runbooks(scope.site, "KafkaQuotaRefusalsRising"),
        steps=steps.REFUSED,
    )
    down = stat(
        scope,
        "Sources down",
        "Brokers and controllers that the exporter cannot read: clients that are throttled there are missing on this "
        "page.",
        "short",
        count_of_sources_down(scope),
        to_dashboard(Dashboard.EXPORTER, "Which, and why"),
        *runbooks(scope.site, "KafkaQuotaSourceDown"),
        steps=steps.DOWN,
    )
    panels = side_by_side(count, muted, longest, near, refusals, down)
    return Row(title="Right now", panels=panels)


def _count(scope: Scope, expression: str) -> str:
    """Return the number of users and client-ids: one under several quotas counts once, as in the alerts."""
    return scope.by("count", scope.by("group", expression, "user", "client_id"))


def who_is_throttled(scope: Scope) -> Row:
    """Return the row of throttled clients."""
    # a client with short throttles may wait for most of the time
    for_longest = of_entities(scope, throttled(scope), top(scope, _ROWS, share_throttled(scope)))
    chosen = either(top(scope, _ROWS, throttled(scope)), for_longest)
    clients = table(
        "Throttled now, by which rule",
        "Which clients are throttled, for which part of the last 15 minutes, by how much each time, and by which of "
        "Kafka's eight levels of rules (1 is the strongest). If the cause of a throttle of request time is "
        f"*controller mutation*, the controller imposed it: raise that quota, not the request quota. At most {_ROWS} "
        "of each cluster by delay, and as many by the time in which they were throttled.",
        map(
            row_key,
            (
                chosen,
                of_entities(scope, utilization(scope), chosen),
                deciding_rule(scope, chosen),
                cause(scope, chosen),
                of_entities(scope, share_throttled(scope), chosen),
            ),
        ),
        columns.quota_type(),
        *columns.entity(scope.site),
        columns.throttled_for("E"),
        columns.delay("A"),
        columns.used("B"),
        columns.rule(),
        columns.cause(),
        columns.cluster(scope.site),
        sort="Throttled",
        links=runbooks(scope.site, "KafkaQuotaSystemUserThrottledByDefault", "KafkaQuotaThrottleBeyondClientTimeout"),
    )
    return Row(title="Who is throttled", panels=side_by_side(clients))


def who_is_next(scope: Scope) -> Row:
    """Return the row of clients nearest to their limits."""
    on = scope.keys(*ENTITY)
    chosen = top(scope, _ROWS, but_not(utilization(scope), throttled(scope), on))
    closest = table(
        "Closest to the limit, not throttled yet",
        "Share of the limit that is used on the busiest broker; each broker applies the limit separately. Above 100 "
        "%, Kafka throttles. In 3 hours: by the trend of the last six hours, of which at least four are needed; a "
        f"lower bound for a client that was throttled in that time. {_AT_MOST}",
        map(
            row_key,
            (
                chosen,
                deciding_rule(scope, chosen),
                of_entities(scope, predicted(scope), chosen),
            ),
        ),
        columns.quota_type(),
        *columns.entity(scope.site),
        columns.used("A"),
        columns.bar("In 3 hours", "C", steps.PREDICTED, 140),
        columns.rule(),
        columns.cluster(scope.site),
        sort="Used",
        links=runbooks(scope.site, "KafkaQuotaNearLimit", "KafkaQuotaManyNearLimit", "KafkaQuotaLimitPredicted"),
    )
    return Row(title="Who is next", panels=side_by_side(closest))


def who_uses_most(scope: Scope) -> Row:
    """Return the row of the biggest clients by quota type, with and without a limit."""
    names = ("user", "client_id")

    def biggest(kind: QuotaType) -> Panel:
        usage, unit = catalog.USAGE[kind], columns.UNITS.get(kind.unit, "short")
        chosen = top(scope, _ROWS, scope.of_teams(scope.by("max", scope.of(usage), *names)))
        limits = scope.by("max", scope.of(catalog.LIMIT[kind]), *names)
        return table(
            f"{kind.title.capitalize()}: most on one broker",
            f"{usage.help} Each on its busiest broker. No quota throttles clients without a limit. {_AT_MOST}",
            map(row_key, (chosen, both(limits, chosen, scope.keys(*names)))),
            *columns.entity(scope.site),
            columns.number("Usage", "A", unit, 88),
            columns.number("Limit", "B", unit, 88),
            columns.cluster(scope.site),
            sort="Usage",
            links=runbooks(scope.site, *(["KafkaQuotaHeavyClientWithoutLimit"] if kind.of_bytes else [])),
        )

    nearest = graph(
        scope,
        f"The {_LINES} of each cluster that use most of their limit",
        "Share of the limit on the busiest broker, of those that are highest at the end of the chosen time.",
        "percentunit",
        Line(steady_top(scope, _LINES), "{{quota_type}} {{entity}}"),
        steps=steps.USED,
        links=runbooks(scope.site, "KafkaQuotaNearLimit"),
    )
    panels = (*((12, biggest(kind)) for kind in QuotaType), (24, nearest))
    return Row(title="Who uses most", panels=panels)


def over_time(scope: Scope) -> Row:
    """Return the row of throttles over time."""
    entities = graph(
        scope,
        "Throttled users and client-ids",
        "How many were throttled, by quota.",
        "short",
        Line(
            scope.or_zero(
                scope.by("count", throttled(scope), "quota_type"),
                "quota_type",
                evidence=scope.of(catalog.DELAY_QUEUE_SIZE),
            ),
            "{{quota_type}}",
        ),
        Line(count_by_callback(scope, "quota_type"), "{{quota_type}} of a custom callback"),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaCallbackThrottled"),
        axis="entities",
    )
    connections = graph(
        scope,
        "Connections waiting",
        "Connections that brokers have muted, by quota.",
        "short",
        Line(total(scope, catalog.DELAY_QUEUE_SIZE, "quota_type"), "{{quota_type}}"),
        stacked=True,
        axis="connections",
    )
    delays = graph(
        scope,
        "Throttle time",
        "Seconds of delay per second, by request: about the number of connections that do nothing but wait. Every "
        "delay counts, however short. Requests that had none are left out; a cluster without any has a line of 0.",
        "short",
        Line(
            occurred(
                scope,
                catalog.REQUEST_THROTTLED_SECONDS,
                total(scope, catalog.REQUEST_THROTTLED_SECONDS, "request"),
                "request",
            ),
            "{{request}}",
        ),
        Line(occurred_nowhere(scope, catalog.REQUEST_THROTTLED_SECONDS), "none"),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaThrottleSpike"),
        axis="s of delay per s",
    )
    panels = side_by_side(entities, connections, delays)
    return Row(title="Over time", panels=panels)


def _title_of_limit(kind: QuotaType) -> str:
    return kind.title.capitalize() if kind.unit in columns.UNITS else f"{kind.title.capitalize()}s/s"


def configured_rules(scope: Scope) -> Row:
    """Return the row of configured rules, used or not."""
    limits = [
        (_title_of_limit(kind), family, columns.UNITS.get(kind.unit, "short"))
        for kind, family in catalog.RULE_LIMIT.items()
    ]
    rules = table(
        "Rules and their limits",
        "Every configured rule for users and client-ids, used or not. Each broker applies the limits separately; "
        "those of controller mutations are the controller's.",
        (row_key(scope.by("max", scope.of(family), *RULE), *RULE) for _, family, _ in limits),
        columns.rule(),
        *(
            columns.number(title, letter, unit, 190 if unit == "short" else 120)
            for letter, (title, _, unit) in zip(ascii_uppercase, limits, strict=False)
        ),
        columns.cluster(scope.site),
        sort="Produce",
    )
    counts = graph(
        scope,
        "Configured rules",
        "How many rules there are, by what they limit. A line goes up or down when a rule is added or removed.",
        "short",
        Line(scope.by("max", scope.of(catalog.RULES), "quota_key"), "{{quota_key}}"),
        links=runbooks(scope.site, "KafkaQuotaRuleChanged"),
        axis="rules",
    )
    panels = ((24, rules), (24, counts))
    return Row(title="Configured rules", panels=panels, collapsed=True)
