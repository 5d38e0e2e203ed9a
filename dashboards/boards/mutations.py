"""Dashboard about the quota of controller mutations and its token bucket."""

from __future__ import annotations

from typing import Any

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.kafka.entities import QuotaType

from .. import columns, steps
from ..expressions import ratio, refused, row_key, throttled, top, total
from ..links import runbooks
from ..panels import Line, Row, below_each_other, dashboard, graph, limit, side_by_side, stat, table
from ..promql import above, both, compare, either, grouped, operation
from ..scope import Scope
from ..variables import NOTE, backtick_note, common, contains, text

NAMES = ("user", "client_id")
MUTATION = 'quota_type="controller_mutation"'
CHOSEN = (contains("user"), contains("client_id"))
_LEGEND = "{{entity}}"
_ROWS = 50


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard about creating and deleting topics and adding partitions."""
    return dashboard(
        scope,
        Dashboard.MUTATIONS,
        title="Kafka quotas / Controller mutations",
        description=(
            "The quota of controller mutations: partitions created, added or deleted. A token bucket allows bursts; "
            "when it is empty, Kafka refuses requests (error 89) or delays them until it has refilled at the rate of "
            "the limit."
        ),
        variables=(
            *common(scope),
            text("user", "User"),
            text("client_id", "Client-id"),
            backtick_note("user", "client_id"),
        ),
        rows=(
            now(scope),
            buckets(scope),
            over_time(scope),
            refusals(scope),
            controller(scope),
        ),
    )


def now(scope: Scope) -> Row:
    """Return the row of four numbers about all users."""
    tokens = _of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    rules = scope.of(catalog.RULES, 'quota_key="controller_mutation_rate"')
    # with a rule and without a bucket, the controllers may not be read, or nothing was changed yet
    no_rule = compare(rules, "==", 0)
    evidence = either(scope.of(catalog.CONTROLLER_MUTATION_TOKENS), no_rule)
    held_back = stat(
        scope,
        "Throttled",
        "Users and client-ids with controller mutations that were throttled within the last minute.",
        "short",
        scope.or_zero(scope.by("count", _delayed(scope)), evidence=evidence),
        steps=steps.ANY,
        nothing="no bucket seen",
    )
    in_debt = stat(
        scope,
        "Buckets in debt",
        "Users and client-ids with tokens below 0: the next change is refused.",
        "short",
        scope.or_zero(scope.by("count", compare(tokens, "<", 0)), evidence=evidence),
        steps=steps.ANY,
        nothing="no bucket seen",
    )
    longest = stat(
        scope,
        "Wait for the next change",
        "The longest time until a bucket that is in debt holds a token again.",
        "s",
        scope.or_zero(scope.by("max", _seconds_until_allowed(scope)), evidence=evidence),
        *runbooks(scope.site, "KafkaQuotaMutationThrottled"),
        steps=steps.DELAY,
        nothing="no bucket seen",
    )
    refusals = stat(
        scope,
        "Refused per second",
        "Answers with THROTTLING_QUOTA_EXCEEDED, of the request that is refused most. KRaft counts each twice, on "
        "the broker and on the controller.",
        "short",
        refused(scope),
        *runbooks(scope.site, "KafkaQuotaRefusalsRising"),
        steps=steps.REFUSED,
    )
    panels = side_by_side(held_back, in_debt, longest, refusals)
    return Row(title=f"Right now{NOTE}", panels=panels)


def buckets(scope: Scope) -> Row:
    """Return the row of token buckets, the emptiest first."""
    chosen = top(scope, _ROWS, _of(scope, catalog.BURST_USED))
    burst = _of(scope, catalog.CONTROLLER_MUTATION_BURST)
    tokens = _of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    missing = operation(burst, "-", tokens, scope.keys(*NAMES))
    rules = scope.of(catalog.RULE_INFO, MUTATION, *CHOSEN)
    figures = (
        _of(scope, catalog.USAGE[QuotaType.CONTROLLER_MUTATION]),
        _of(scope, catalog.LIMIT[QuotaType.CONTROLLER_MUTATION]),
        tokens,
        burst,
        _seconds_at_the_pace(scope, grouped(missing)),
        _seconds_until_allowed(scope),
        scope.by("max", rules, *NAMES, "rule"),
    )
    emptiest = table(
        "Buckets, the emptiest first",
        "Share of the burst that is used up (1 is empty, more is debt), the rate and its limit, the tokens left, "
        "and how long the bucket takes to be full again, or to allow the next change, when nothing is changed "
        f"meanwhile. At most {_ROWS} of each cluster.",
        map(row_key, (chosen, *(both(figure, chosen, scope.keys(*NAMES)) for figure in figures))),
        *columns.entity(scope.site),
        columns.bar("Burst used", "A", steps.BURST, 140),
        columns.number("Usage/s", "B", "short", 90),
        columns.number("Limit/s", "C", "short", 85),
        columns.number("Tokens", "D", "short", 80),
        columns.number("Burst", "E", "short", 75),
        columns.number("Full again in", "F", "s", 126),
        columns.number("Next allowed in", "G", "s", 140),
        columns.rule(),
        columns.cluster(scope.site),
        sort="Burst used",
        links=runbooks(scope.site, "KafkaQuotaMutationTokensExhausted"),
    )
    return Row(title="Token buckets", panels=side_by_side(emptiest), height=9)


def over_time(scope: Scope) -> Row:
    """Return the row of rates with their limits, and tokens with their burst."""
    pace = graph(
        scope,
        "Changes per second, against the limit",
        f"{catalog.USAGE[QuotaType.CONTROLLER_MUTATION].help} Short bursts above the limit are allowed while there "
        "are tokens.",
        "short",
        Line(_of(scope, catalog.USAGE[QuotaType.CONTROLLER_MUTATION]), _LEGEND),
        limit(_of(scope, catalog.LIMIT[QuotaType.CONTROLLER_MUTATION]), f"limit of {_LEGEND}"),
        axis="partitions/s",
    )
    tokens = graph(
        scope,
        "Tokens, against the burst",
        "Partitions that may still be changed at once. Below 0 further changes are refused.",
        "short",
        Line(_of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min"), _LEGEND),
        limit(_of(scope, catalog.CONTROLLER_MUTATION_BURST), f"burst of {_LEGEND}"),
        axis="partitions",
    )
    used = graph(
        scope,
        "Share of the burst that is used up",
        "1 is an empty bucket, more is debt; and the most of the last minute where the exporter samples between "
        "scrapes.",
        "percentunit",
        Line(_of(scope, catalog.BURST_USED), _LEGEND),
        Line(_of(scope, catalog.BURST_USED_MAX), f"{_LEGEND}, peak"),
        steps=steps.BURST,
        links=runbooks(scope.site, "KafkaQuotaMutationTokensExhausted"),
    )
    return Row(title="Over time", panels=below_each_other(pace, tokens, used))


def refusals(scope: Scope) -> Row:
    """Return the row of refusals and delays."""
    errors = graph(
        scope,
        "Refused per second, by request",
        "Answers with THROTTLING_QUOTA_EXCEEDED (error 89), by node and request. Clients that know the error wait "
        "and retry by themselves.",
        "cps",
        Line(total(scope, catalog.THROTTLING_ERRORS, "broker", "request"), "{{request}} on {{broker}}"),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaRefusalsRising"),
    )
    delays = graph(
        scope,
        "Delay",
        "Average throttle time of controller mutations.",
        "s",
        Line(_delayed(scope), _LEGEND),
        steps=steps.DELAY,
        links=runbooks(scope.site, "KafkaQuotaMutationThrottled"),
    )
    return Row(title="Refused and delayed", panels=below_each_other(errors, delays))


def controller(scope: Scope) -> Row:
    """Return the row of the controller, which the quota protects."""
    seconds = total(scope, catalog.CONTROLLER_EVENT_QUEUE_SECONDS, "broker")
    events = total(scope, catalog.CONTROLLER_EVENTS, "broker")
    waits = graph(
        scope,
        "How long the controller's events wait",
        "Average time in the active controller's queue. While it stays low, the quota can be raised; if it grows, "
        "controller mutations arrive faster than the controller handles them.",
        "s",
        Line(ratio(seconds, events, scope.keys("broker")), "controller {{broker}}"),
    )
    pace = graph(
        scope,
        "Events of the controller per second",
        "What the active controller handles, controller mutations among them.",
        "cps",
        Line(events, "controller {{broker}}"),
    )
    panels = side_by_side(waits, pace)
    return Row(title="The controller", panels=panels, collapsed=True)


def _of(scope: Scope, family: Family, operator: str = "max") -> str:
    """Return the highest, or lowest, series for each chosen user and client-id."""
    return scope.by(operator, scope.of(family, *CHOSEN), *NAMES)


def _delayed(scope: Scope) -> str:
    """
    Return the throttle time of controller mutations, above 0.

    Under KRaft, the broker that forwards a change counts its delay as request throttle, and only the cause that the
    exporter found distinguishes it from a lack of request time. A delay of a measured entity is in its throttle time
    already.
    """
    if scope.recorded:
        return throttled(scope, MUTATION, *CHOSEN)

    def delays(quota_type: str) -> str:
        times = scope.of(catalog.THROTTLE_TIME_SECONDS, quota_type, *CHOSEN)
        return above(scope.by("max", times, *NAMES), 0)

    request = 'quota_type="request"'
    by_mutations = 'cause="controller_mutation"'
    forwarded = scope.of(catalog.THROTTLE_CAUSE_INFO, request, by_mutations, 'by_broker=""', *CHOSEN)
    caused = scope.by("max", forwarded, *NAMES)
    of_requests = both(delays(request), caused, scope.keys(*NAMES))
    return operation(grouped(delays(MUTATION)), "or", grouped(of_requests))


def _seconds_until_allowed(scope: Scope) -> str:
    """Return the time for which entities in debt wait for the next change."""
    tokens = _of(scope, catalog.CONTROLLER_MUTATION_TOKENS, "min")
    return _seconds_at_the_pace(scope, f"-({tokens} < 0)")


def _seconds_at_the_pace(scope: Scope, tokens: str) -> str:
    """Return the seconds until a bucket has gained some tokens, if nothing is changed meanwhile."""
    pace = _of(scope, catalog.LIMIT[QuotaType.CONTROLLER_MUTATION])
    return ratio(tokens, pace, scope.keys(*NAMES))
