"""Dashboard about one user and client-id, on all brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from string import ascii_uppercase
from typing import Any, Final

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.kafka.entities import QuotaType

from .. import columns, steps
from ..columns import BoardColumn
from ..expressions import (
    ENTITY,
    RULE,
    cause,
    latest,
    limit_for_a_hundredth,
    row_key,
    share_of_range_throttled,
    share_throttled,
    throttled,
    top,
    utilization,
)
from ..job_clients import behind, keyed
from ..links import runbooks, to_job
from ..panels import ENTITY as ENTITY_LEGEND
from ..panels import Line, Panel, Row, below_each_other, dashboard, episodes, graph, limit, side_by_side, table
from ..promql import call, either
from ..scope import Scope
from ..variables import NOTE, backtick_note, common, contains, exactly_or_none, text

SELECTED: Final = (exactly_or_none("user"), exactly_or_none("client_id"))
"""Matchers of the pair, the user alone and the client-id alone: a quota can apply to each."""
_NAMES = ("user", "client_id")
_OF_UNITS: Final = {
    ("B/s", "Limit B/s", "Bps"): (QuotaType.PRODUCE, QuotaType.FETCH),
    ("Thread", "Limit thread", "percentunit"): (QuotaType.REQUEST,),
}
"""
Quota types by the titles of their usage and limit and their unit, as Grafana has one unit for a column.

There is no room for controller mutations, which have a row of their own.
"""
_HEAD, _LETTER = 34, 7
"""Pixels of the padding and the filter of a column's head, and of a letter."""
_FIRST_NUMBER: Final = 5
"""Number of the query of the first of these columns."""
_ROWS = 50
_SHORT: Final = 7
"""Height of a table of the few quotas of a user and client-id, which has room for four, in Grafana's steps."""
_SHORTEST: Final = 5
"""Height of a table with room for two rows."""


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard to which tables link."""
    return dashboard(
        scope,
        Dashboard.ENTITY,
        title="Kafka quotas / User and client-id",
        description=(
            "One user and client-id on all brokers: usage against limit, delay, and the rules that apply. A quota "
            "can apply to the pair or to one of the two: all that apply are shown."
        ),
        variables=(
            *common(scope),
            text("user", "User"),
            text("client_id", "Client-id"),
            text("find", "Find"),
            backtick_note("user", "client_id", "find"),
        ),
        rows=(
            quotas(scope),
            needed_limits(scope),
            utilization_and_delay(scope),
            bytes_used(scope),
            request_time(scope),
            topic_changes(scope),
            jobs(scope),
            others(scope),
        ),
        marks=(episodes(scope, throttled(scope, *SELECTED), *ENTITY),),
    )


def quotas(scope: Scope) -> Row:
    """Return the row of the rules that apply and their utilization."""
    delayed = throttled(scope, *SELECTED)
    rules = table(
        "Quotas that apply, by which rule",
        "Each quota of this user, of this client-id and of both together: the rule that applies, the share of the "
        "limit used on the busiest broker, usage and limit of bytes and request time, the part of the last 15 minutes "
        "in which Kafka throttled it, and the average delay. Controller mutations have a row of their own below.",
        map(
            row_key,
            (
                scope.by("max", scope.of(catalog.RULE_INFO, *SELECTED), *ENTITY, *RULE),
                utilization(scope, *SELECTED),
                delayed,
                cause(scope, delayed, *SELECTED),
                share_throttled(scope, *SELECTED),
                *(expression for kinds in _OF_UNITS.values() for expression in _usage_and_limit(scope, kinds)),
            ),
        ),
        columns.quota_type(),
        *columns.entity(scope.site),
        replace(columns.rule(), width=175, least=None),
        replace(columns.used("B"), width=100),
        *_numbers(),
        columns.throttled_for("E"),
        replace(columns.delay("C"), width=72),
        replace(columns.cause(), width=145, least=None),
        columns.cluster(scope.site),
        sort="Used",
    )
    return Row(title=f"Quotas{NOTE}", panels=side_by_side(rules), height=_SHORT)


def _usage_and_limit(scope: Scope, kinds: Sequence[QuotaType]) -> tuple[str, str]:
    """Return the usages and the limits of quotas with one unit, on the broker with most; the quota type is a label."""
    usage = _of_types(kinds, lambda kind: scope.by("max", scope.of(catalog.USAGE[kind], *SELECTED), *_NAMES))
    return usage, _of_types(kinds, lambda kind: _bound(scope, catalog.LIMIT[kind]))


def _numbers() -> Iterator[BoardColumn]:
    """Yield a column of usages and one of limits for each unit; Grafana leaves out those without a value."""
    letters = iter(ascii_uppercase[_FIRST_NUMBER:])
    for usage_title, limit_title, unit in _OF_UNITS:
        for head, least in ((usage_title, 80), (limit_title, 97)):
            yield columns.number(head, next(letters), unit, max(least, _HEAD + _LETTER * len(head)))


def needed_limits(scope: Scope) -> Row:
    """Return the row of limits, each beside the one that would throttle for 1 % of the active time."""
    of_bytes = _needed_limits(scope, "Limits of bytes, and what would do", "Bps", QuotaType.PRODUCE, QuotaType.FETCH)
    of_time = _needed_limits(scope, "Limits of request time, and what would do", "percentunit", QuotaType.REQUEST)
    return Row(title="Limits that would do", panels=((24, of_bytes), (24, of_time)), height=_SHORTEST)


def _needed_limits(scope: Scope, title: str, unit: str, *quota_types: QuotaType) -> Panel:
    return table(
        title,
        "The limit, and the lowest one that would throttle for at most 1 % of the active time (usage above 0) of the "
        "range chosen above, on the broker that needs most; of a client that was throttled meanwhile, it is a lower "
        "bound. Choose a day or more. Scraped every 10 s or more often, it is within 10 % of what quotascope recommend "
        "finds in the request log, but for bursts shorter than a minute: these need a scrape every 5 s.",
        (
            row_key(_of_types(quota_types, expression))
            for expression in (
                lambda kind: latest(scope, catalog.USAGE[kind], *SELECTED),
                lambda kind: _bound(scope, catalog.LIMIT[kind]),
                lambda kind: limit_for_a_hundredth(scope, catalog.USAGE[kind], *SELECTED),
                lambda kind: share_of_range_throttled(scope, kind, *SELECTED),
            )
        ),
        columns.quota_type(),
        *columns.entity(scope.site),
        columns.number("Usage", "A", unit, width=100),
        columns.number("Limit", "B", unit, width=100),
        columns.number("Limit for 1 % of the time", "C", unit, width=220),
        columns.throttled_for("D"),
        columns.cluster(scope.site),
        sort="Limit for 1 % of the time",
    )


def _of_types(kinds: Sequence[QuotaType], expression: Callable[[QuotaType], str]) -> str:
    """Return an expression for some quota types, with the type as a label."""
    labeled = (call("label_replace", expression(kind), '"quota_type"', f'"{kind.label}"', '""', '""') for kind in kinds)
    return "\nor\n".join(labeled)


def utilization_and_delay(scope: Scope) -> Row:
    """Return the row of utilization and throttle times."""
    legend = f"{{{{quota_type}}}} {ENTITY_LEGEND} on {{{{broker}}}}"
    share = graph(
        scope,
        "Share of the limit, by broker",
        "Usage divided by limit on each broker: above 100 %, Kafka throttles. The peak is the most of the last "
        "minute where the exporter samples between scrapes.",
        "percentunit",
        Line(_per_broker(scope, catalog.UTILIZATION, "quota_type"), legend),
        Line(_per_broker(scope, catalog.UTILIZATION_MAX, "quota_type"), f"{legend}, peak"),
        steps=steps.USED,
        links=runbooks(scope.site, "KafkaQuotaNearLimit"),
    )
    delay = graph(
        scope,
        "Delay, by broker",
        "Average delay of the requests that were throttled in the last 30 to 60 s.",
        "s",
        Line(_per_broker(scope, catalog.THROTTLE_TIME_SECONDS, "quota_type"), legend),
        steps=steps.DELAY,
        links=runbooks(scope.site, "KafkaQuotaThrottleBeyondClientTimeout"),
    )
    return Row(title="Share of the limit, and delay", panels=below_each_other(share, delay))


def bytes_used(scope: Scope) -> Row:
    """Return the row of produced and fetched bytes, with their limits."""
    produced = _against_limit(
        scope,
        "Produced",
        QuotaType.PRODUCE,
        "KafkaQuotaProduceThrottled",
    )
    fetched = _against_limit(
        scope,
        "Fetched",
        QuotaType.FETCH,
        "KafkaQuotaFetchThrottled",
    )
    return Row(title="Bytes", panels=below_each_other(produced, fetched))


def request_time(scope: Scope) -> Row:
    """Return the row of request time, with its limit."""
    threads = _against_limit(
        scope,
        "Request time, percent of a thread",
        QuotaType.REQUEST,
        "KafkaQuotaRequestThrottled",
    )
    return Row(title="Request time", panels=below_each_other(threads))


def topic_changes(scope: Scope) -> Row:
    """Return the row of controller mutations, with their limit, and tokens left in the bucket."""
    changes = _against_limit(
        scope,
        "Controller mutations per second",
        QuotaType.CONTROLLER_MUTATION,
        "KafkaQuotaMutationThrottled",
    )
    tokens = graph(
        scope,
        "Tokens left, of the burst",
        "Partitions that may still be created, added or deleted at once. Below 0 Kafka refuses; the bucket refills "
        "at the rate of the limit.",
        "short",
        Line(_per_broker(scope, catalog.CONTROLLER_MUTATION_TOKENS), f"{ENTITY_LEGEND} on {{{{broker}}}}"),
        limit(_bound(scope, catalog.CONTROLLER_MUTATION_BURST), f"burst of {ENTITY_LEGEND}"),
        links=runbooks(scope.site, "KafkaQuotaMutationTokensExhausted"),
        axis="partitions",
    )
    panels = below_each_other(changes, tokens)
    return Row(title="Controller mutations", panels=panels, collapsed=True)


def _against_limit(scope: Scope, title: str, kind: QuotaType, alert: str) -> Panel:
    usage, unit = catalog.USAGE[kind], columns.UNITS.get(kind.unit, "short")
    return graph(
        scope,
        title,
        f"{usage.help} The dashed line is the limit, which each broker applies separately.",
        unit,
        Line(_per_broker(scope, usage), f"{ENTITY_LEGEND} on {{{{broker}}}}"),
        limit(_bound(scope, catalog.LIMIT[kind]), f"limit of {ENTITY_LEGEND}"),
        axis=columns.axis_of(kind),
        links=runbooks(scope.site, alert, "KafkaQuotaClientThrottled"),
    )


def _per_broker(scope: Scope, family: Family, *labels: str) -> str:
    selected = scope.of(family, *SELECTED)
    return scope.by("max", selected, *labels, "broker", "user", "client_id")


def _bound(scope: Scope, family: Family) -> str:
    return scope.by("max", scope.of(family, *SELECTED), "user", "client_id")


def jobs(scope: Scope) -> Row:
    """Return the row of jobs with clients under the quotas of this dashboard."""
    selected = partial(utilization, scope, *SELECTED)
    waiting_jobs = table(
        "Spark jobs behind it",
        "Jobs with a Spark listener that have Kafka clients under the quotas above, and how long these wait: 1 means "
        "that one task does nothing else. The link leads to the job.",
        [keyed(behind(scope, selected))],
        BoardColumn(title="Job", source="app", least=110, links=(to_job(),)),
        BoardColumn(title="Query", source="query", least=110),
        BoardColumn(title="Side", source="side", width=80),
        BoardColumn(title="User", source="user", least=110),
        BoardColumn(title="Client-id", source="client_id", least=110),
        columns.waiting("A"),
        sort="Waiting",
    )
    return Row(title="Spark jobs", panels=side_by_side(waiting_jobs), collapsed=True)


def others(scope: Scope) -> Row:
    """Return the row of links to entities with the same user or client-id, and to any other."""

    def links_to(title: str, description: str, *matchers: tuple[str, ...]) -> Panel:
        by_user, by_client_id = (utilization(scope, *selection) for selection in matchers)
        return table(
            title,
            description,
            [row_key(top(scope, _ROWS, either(by_user, by_client_id)))],
            columns.quota_type(),
            *columns.entity(scope.site),
            columns.used("A"),
            columns.cluster(scope.site),
            sort="Used",
        )

    related = links_to(
        "Quotas of the same user or client-id",
        f"Other entities with the user or the client-id of this page. At most {_ROWS} of each cluster.",
        ("user=`${user:raw}`", 'user!=""'),
        ("client_id=`${client_id:raw}`", 'client_id!=""'),
    )
    any_other = links_to(
        "Find a user or client-id",
        "All entities with the text of the field Find above in their user or client-id, the highest utilization "
        f"first. At most {_ROWS} of each cluster.",
        (contains("user", "find"),),
        (contains("client_id", "find"),),
    )
    return Row(title="Others", panels=side_by_side(related, any_other))
