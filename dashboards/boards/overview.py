"""Quota overview: who is throttled now, by which rule, and who is next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import above, both, but_not, call, either, highest
from quotascope.alerts.thresholds import NEAR_LIMIT, THROTTLED
from quotascope.metrics import catalog

from .. import columns, steps
from ..expressions import (
    ENTITY,
    RULE,
    cause,
    count_by_callback,
    count_of_sources_down,
    deciding_rule,
    of_entities,
    predicted,
    refused,
    row_key,
    steady_top,
    throttled,
    throttled_by_callback,
    top,
    total,
    utilization,
)
from ..links import runbooks, to_dashboard
from ..panels import Line, Panel, Row, dashboard, episodes, graph, side_by_side, stat, table
from ..scope import Scope
from ..variables import common, owners

_ROWS = 50
_LINES = 10
_AT_MOST = f"At most {_ROWS} of each cluster."


def board(scope: Scope) -> dict[str, Any]:
    """The dashboard to open first."""
    scope = replace(scope, by_owner=True)
    return dashboard(
        scope,
        Dashboard.OVERVIEW,
        title="Kafka quotas / Overview",
        description="Which clients are throttled now, and by which rule, which are next, and which quotas were changed.",
        variables=(*common(scope), owners()),
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
    """Of all clients of a cluster together: Grafana lays the red of each mark over that of others, and over the lines of graphs."""
    clients = call("label_replace", scope.by("count", throttled(scope)), '"what"', '"clients"', '""', '""')
    return episodes(scope, clients, "what")


def right_now(scope: Scope) -> Row:
    """Six numbers that show whether to read on."""
    count = stat(
        scope,
        "Throttled",
        f"Users and client-ids that Kafka throttled within the last minute; for a custom quota callback, those on the broker with most. The brokers' averages linger for 30 to 60 s after the last delay. The alert counts those delayed by more than {scope.site.value(THROTTLED):g} s on average.",
        "short",
        scope.or_zero(
            highest(scope.keys(), clients=_count(scope, throttled(scope)), callback=count_by_callback(scope))
        ),
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
    near_limit = scope.site.value(NEAR_LIMIT)
    near = stat(
        scope,
        f"Above {near_limit * 100:g}% of the limit",
        "Users and client-ids near their limit or above it at this moment, throttled or not. Without known limits there is no number.",
        "short",
        scope.or_zero(
            _count(scope, above(utilization(scope), near_limit)),
            known=both(scope.of(catalog.LIMITS_AGE_SECONDS), above(scope.of(catalog.SOURCE_UP), 0), scope.keys()),
        ),
        steps=steps.ANY,
    )
    refusals = stat(
        scope,
        "Refused (error 89)",
        "Answers with THROTTLING_QUOTA_EXCEEDED per second, of the request that is refused most: creating or deleting topics, adding partitions. KRaft counts each twice, on the broker and on the controller.",
        "cps",
        refused(scope),
        to_dashboard(Dashboard.MUTATIONS, "Controller mutations"),
        *runbooks(scope.site, "KafkaQuotaRefusalsRising"),
        steps=steps.REFUSED,
    )
    down = stat(
        scope,
        "Sources down",
        "Brokers and controllers that the exporter cannot read: clients that are throttled there are missing on this page.",
        "short",
        count_of_sources_down(scope),
        to_dashboard(Dashboard.EXPORTER, "Which, and why"),
        *runbooks(scope.site, "KafkaQuotaSourceDown"),
        steps=steps.DOWN,
    )
    panels = side_by_side(count, muted, longest, near, refusals, down)
    return Row(title="Right now", panels=panels)


def _count(scope: Scope, expression: str) -> str:
    """How many users and client-ids: one under several quotas counts once, as in the alerts."""
    return scope.by("count", scope.by("group", expression, "user", "client_id"))


def who_is_throttled(scope: Scope) -> Row:
    """The table that names them."""
    chosen = top(scope, _ROWS, throttled(scope))
    found = table(
        "Throttled now, by which rule",
        f"Which clients are throttled, for how long, and by which of Kafka's eight levels of rules (1 is the strongest). If the cause of a throttle of request time is *controller mutation*, the controller imposed it: raise that quota, not the request quota. {_AT_MOST}",
        map(
            row_key,
            (
                chosen,
                of_entities(scope, utilization(scope), chosen),
                deciding_rule(scope, chosen),
                cause(scope, chosen),
            ),
        ),
        columns.quota_type(),
        *columns.entity(scope.site),
        columns.delay("A"),
        columns.used("B"),
        columns.rule(),
        columns.cause(),
        columns.cluster(scope.site),
        sort="Delay",
        links=runbooks(scope.site, "KafkaQuotaSystemUserThrottledByDefault", "KafkaQuotaThrottleBeyondClientTimeout"),
    )
    return Row(title="Who is throttled", panels=side_by_side(found))


def who_is_next(scope: Scope) -> Row:
    """Those that will be throttled when they grow."""
    on = scope.keys(*ENTITY)
    chosen = top(scope, _ROWS, but_not(utilization(scope), throttled(scope), on))
    closest = table(
        "Closest to the limit, not throttled yet",
        f"Share of the limit that is used on the busiest broker; each broker applies the limit separately. Above 100 %, Kafka throttles. In 3 hours: by the trend of the last six hours, of which at least four are needed. {_AT_MOST}",
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
    """The biggest users of each kind, with and without limit."""
    heavy = "KafkaQuotaHeavyClientWithoutLimit"
    names = ("user", "client_id")

    def biggest(kind: str, usage: catalog.Family, bound: catalog.Family, unit: str, *alerts: str) -> Panel:
        chosen = top(scope, _ROWS, scope.of_owners(scope.by("max", scope.of(usage), *names)))
        limits = scope.by("max", scope.of(bound), *names)
        return table(
            f"{kind}: most on one broker",
            f"{usage.help} Each on its busiest broker. No quota throttles clients without a limit. {_AT_MOST}",
            map(row_key, (chosen, both(limits, chosen, scope.keys(*names)))),
            *columns.entity(scope.site),
            columns.number("Usage", "A", unit, 100),
            columns.number("Limit", "B", unit, 100),
            columns.cluster(scope.site),
            sort="Usage",
            links=runbooks(scope.site, *alerts),
        )

    produce = biggest("Produce", catalog.PRODUCE_BYTES_PER_SECOND, catalog.PRODUCE_LIMIT, "Bps", heavy)
    fetch = biggest("Fetch", catalog.FETCH_BYTES_PER_SECOND, catalog.FETCH_LIMIT, "Bps", heavy)
    threads = biggest("Request time", catalog.REQUEST_THREADS, catalog.REQUEST_LIMIT, "short")
    nearest = graph(
        scope,
        f"The {_LINES} of each cluster that use most of their limit",
        "Share of the limit on the busiest broker, of those that are highest at the end of the chosen time.",
        "percentunit",
        Line(steady_top(scope, _LINES), "{{quota_type}} {{user}} / {{client_id}}"),
        steps=steps.USED,
        links=runbooks(scope.site, "KafkaQuotaNearLimit"),
    )
    panels = ((12, each) for each in (produce, fetch, threads, nearest))
    return Row(title="Who uses most", panels=panels)


def over_time(scope: Scope) -> Row:
    """How it came to this."""
    entities = graph(
        scope,
        "Throttled users and client-ids",
        "How many were throttled, by quota.",
        "short",
        Line(
            scope.or_zero(
                scope.by("count", throttled(scope), "quota_type"),
                "quota_type",
                known=scope.of(catalog.DELAY_QUEUE_SIZE),
            ),
            "{{quota_type}}",
        ),
        Line(count_by_callback(scope, "quota_type"), "{{quota_type}} of a custom callback"),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaCallbackThrottled"),
    )
    connections = graph(
        scope,
        "Connections waiting",
        "Connections that brokers have muted, by quota.",
        "short",
        Line(total(scope, catalog.DELAY_QUEUE_SIZE, "quota_type"), "{{quota_type}}"),
        stacked=True,
    )
    delays = graph(
        scope,
        "Throttle time",
        "Seconds of delay per second, by request: about the number of connections that do nothing but wait. Every delay counts, however short.",
        "short",
        Line(total(scope, catalog.REQUEST_THROTTLED_SECONDS, "request"), "{{request}}"),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaThrottleSpike"),
    )
    panels = side_by_side(entities, connections, delays)
    return Row(title="Over time", panels=panels)


def configured_rules(scope: Scope) -> Row:
    """The configured rules, used or not."""
    limits = (
        ("Produce", catalog.RULE_PRODUCE_LIMIT, "Bps"),
        ("Fetch", catalog.RULE_FETCH_LIMIT, "Bps"),
        ("Threads", catalog.RULE_REQUEST_LIMIT, "short"),
        ("Controller mutations/s", catalog.RULE_CONTROLLER_MUTATION_LIMIT, "short"),
    )
    found = table(
        "Rules and their limits",
        "Every configured rule for users and client-ids, used or not. Each broker applies the limits separately; those of controller mutations are the controller's.",
        (row_key(scope.by("max", scope.of(family), *RULE), *RULE) for _, family, _ in limits),
        columns.rule(),
        *(
            columns.number(title, letter, unit, 190 if letter == "D" else 120)
            for letter, (title, _, unit) in zip("ABCD", limits, strict=True)
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
    )
    panels = ((24, found), (24, counts))
    return Row(title="Configured rules", panels=panels, collapsed=True)
