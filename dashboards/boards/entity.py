"""Entity: one user and client-id, on all brokers."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import either
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import columns, steps
from ..columns import BoardColumn
from ..expressions import ENTITY, RULE, cause, row_key, throttled, top, utilization
from ..job_clients import behind, keyed
from ..links import runbooks, to_job
from ..panels import Line, Panel, Row, dashboard, episodes, graph, limit, side_by_side, table
from ..scope import Scope
from ..variables import common, contains, exactly_or_none, text

SELECTED: Final = (exactly_or_none("user"), exactly_or_none("client_id"))
"""The pair, the user alone and the client-id alone: a quota can be about each of them."""
_NAMES = "{{user}} / {{client_id}}"
_ROWS = 50


def board(scope: Scope) -> dict[str, Any]:
    """The dashboard that tables lead to."""
    return dashboard(
        scope,
        Dashboard.ENTITY,
        title="Kafka quotas / User and client-id",
        description="One user and client-id on all brokers: usage against limit, delay, and the rules that apply. A quota can apply to the pair or to one of the two: all that apply are shown.",
        variables=(
            *common(scope),
            text("user", "User"),
            text("client_id", "Client-id"),
            text("find", "Find"),
        ),
        rows=(
            quotas(scope),
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
    """The rules that apply, and how much of them is used."""
    delayed = throttled(scope, *SELECTED)
    found = table(
        "Quotas that apply, by which rule",
        "Each quota of this user, of this client-id and of both together: the rule that applies, the share of the limit used on the busiest broker, and the average delay there.",
        map(
            row_key,
            (
                scope.by("max", scope.of(catalog.RULE_INFO, *SELECTED), *ENTITY, *RULE),
                utilization(scope, *SELECTED),
                delayed,
                cause(scope, delayed, *SELECTED),
            ),
        ),
        columns.quota_type(),
        *columns.entity(scope.site),
        columns.rule(),
        columns.used("B"),
        columns.delay("C"),
        columns.cause(),
        columns.cluster(scope.site),
        sort="Used",
    )
    return Row(title="Quotas", panels=side_by_side(found))


def utilization_and_delay(scope: Scope) -> Row:
    """How near the limit, and the price of reaching it."""
    legend = f"{{{{quota_type}}}} {_NAMES} on {{{{broker}}}}"
    share = graph(
        scope,
        "Share of the limit, by broker",
        "Usage divided by limit on each broker: above 100 %, Kafka throttles. The peak is the most of the last minute where the exporter samples between scrapes.",
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
    return Row(title="Share of the limit, and delay", panels=side_by_side(share, delay))


def bytes_used(scope: Scope) -> Row:
    """Produced and fetched bytes against their limits."""
    produced = _against_limit(
        scope, "Produced", catalog.PRODUCE_BYTES_PER_SECOND, catalog.PRODUCE_LIMIT, "Bps", "KafkaQuotaProduceThrottled"
    )
    fetched = _against_limit(
        scope, "Fetched", catalog.FETCH_BYTES_PER_SECOND, catalog.FETCH_LIMIT, "Bps", "KafkaQuotaFetchThrottled"
    )
    return Row(title="Bytes", panels=side_by_side(produced, fetched))


def request_time(scope: Scope) -> Row:
    """Request time against its limit."""
    threads = _against_limit(
        scope,
        "Request time in threads",
        catalog.REQUEST_THREADS,
        catalog.REQUEST_LIMIT,
        "short",
        "KafkaQuotaRequestThrottled",
    )
    return Row(title="Request time", panels=side_by_side(threads))


def topic_changes(scope: Scope) -> Row:
    """Controller mutations against their limit, and what is left in the bucket."""
    changes = _against_limit(
        scope,
        "Controller mutations per second",
        catalog.CONTROLLER_MUTATIONS_PER_SECOND,
        catalog.CONTROLLER_MUTATION_LIMIT,
        "short",
        "KafkaQuotaMutationThrottled",
    )
    tokens = graph(
        scope,
        "Tokens left, of the burst",
        "Partitions that may still be created, added or deleted at once. Below 0 Kafka refuses; the bucket refills at the rate of the limit.",
        "short",
        Line(_per_broker(scope, catalog.CONTROLLER_MUTATION_TOKENS), f"{_NAMES} on {{{{broker}}}}"),
        limit(_bound(scope, catalog.CONTROLLER_MUTATION_BURST), f"burst of {_NAMES}"),
        links=runbooks(scope.site, "KafkaQuotaMutationTokensExhausted"),
    )
    panels = side_by_side(changes, tokens)
    return Row(title="Controller mutations", panels=panels, collapsed=True)


def _against_limit(  # a panel has as many properties
    scope: Scope, title: str, usage: Family, bound: Family, unit: str, alert: str
) -> Panel:
    return graph(
        scope,
        title,
        f"{usage.help} The dashed line is the limit, which each broker applies separately.",
        unit,
        Line(_per_broker(scope, usage), f"{_NAMES} on {{{{broker}}}}"),
        limit(_bound(scope, bound), f"limit of {_NAMES}"),
        links=runbooks(scope.site, alert),
    )


def _per_broker(scope: Scope, family: Family, *labels: str) -> str:
    selected = scope.of(family, *SELECTED)
    return scope.by("max", selected, *labels, "broker", "user", "client_id")


def _bound(scope: Scope, family: Family) -> str:
    return scope.by("max", scope.of(family, *SELECTED), "user", "client_id")


def jobs(scope: Scope) -> Row:
    """The jobs with clients that count against the quotas of this page."""
    selected = partial(utilization, scope, *SELECTED)
    found = table(
        "Spark jobs behind it",
        "Jobs with a Spark listener that have Kafka clients under the quotas above, and how long these wait: 1 means that one task does nothing else. The link leads to the job.",
        [keyed(behind(scope, selected))],
        BoardColumn(title="Job", source="app", links=(to_job(),)),
        BoardColumn(title="Query", source="query"),
        BoardColumn(title="Side", source="side", width=80),
        BoardColumn(title="User", source="user"),
        BoardColumn(title="Client-id", source="client_id"),
        columns.waiting("A"),
        sort="Waiting",
    )
    return Row(title="Spark jobs", panels=side_by_side(found), collapsed=True)


def others(scope: Scope) -> Row:
    """Links to entities with the same user or client-id, and to any other."""

    def way_to(title: str, description: str, *matchers: tuple[str, ...]) -> Panel:
        first, second = (utilization(scope, *each) for each in matchers)
        return table(
            title,
            description,
            [row_key(top(scope, _ROWS, either(first, second)))],
            columns.quota_type(),
            *columns.entity(scope.site),
            columns.used("A"),
            columns.cluster(scope.site),
            sort="Used",
        )

    near = way_to(
        "Quotas of the same user or client-id",
        f"Other entities with the user or the client-id of this page. At most {_ROWS} of each cluster.",
        ("user=`${user:raw}`", 'user!=""'),
        ("client_id=`${client_id:raw}`", 'client_id!=""'),
    )
    any_other = way_to(
        "Find a user or client-id",
        f"All entities with the text of the field Find above in their user or client-id, the highest utilization first. At most {_ROWS} of each cluster.",
        (contains("user", "find"),),
        (contains("client_id", "find"),),
    )
    return Row(title="Others", panels=side_by_side(near, any_other))
