"""Entity: one user and client-id, on all brokers."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ... import columns, steps
from ...columns import cluster, delayed, quota_type, rule, used, who
from ...expressions import ENTITY, RULE, cause, throttled, utilization
from ...model import Board, Graph, Row
from ...scope import Scope
from ...shortcuts import WHO, graph, limit, line, table
from ...variables import common, entity, text
from ..changes import limit_changes
from .jobs import jobs
from .others import others
from .selected import SELECTED


def board(scope: Scope) -> Board:
    """The dashboard that tables lead to."""
    return Board(
        uid=Dashboard.ENTITY.uid,
        title="Kafka quotas / User and client-id",
        description="One user and client-id on all brokers: usage against limit, delay, and the rules that decide. A quota may be about the pair or about one of the two: all that apply are shown.",
        variables=(
            *common(scope),
            *entity(),
            text("find", "Find", "Part of a user or client-id, for the last table."),
        ),
        annotation=limit_changes(scope),
        rows=(
            quotas(scope),
            utilization_and_delay(scope),
            bytes_used(scope),
            request_time(scope),
            topic_changes(scope),
            jobs(scope),
            others(scope),
        ),
    )


def quotas(scope: Scope) -> Row:
    """Which rules decide, and where they stand."""
    found = table(
        "Quotas that apply, by which rule",
        "Each quota of this user, of this client-id and of both together: the rule that decides, the share of the limit used on the busiest broker, and the average delay there.",
        (
            scope.by("max", scope.of(catalog.RULE_INFO, *SELECTED), *ENTITY, *RULE),
            utilization(scope, *SELECTED),
            throttled(scope, *SELECTED),
            cause(scope, throttled(scope, *SELECTED), *SELECTED),
        ),
        quota_type(),
        *who(scope.site),
        *rule(),
        used("B"),
        delayed("C"),
        columns.cause(),
        cluster(scope.site),
        sort="Used",
    )
    return Row(title="Quotas", panels=((24, found),), height=7)


def utilization_and_delay(scope: Scope) -> Row:
    """How near the limit, and the price of reaching it."""
    return Row(
        title="Share of the limit, and delay",
        panels=((12, _share(scope)), (12, _delay(scope))),
    )


def _share(scope: Scope) -> Graph:
    return graph(
        "Share of the limit, by broker",
        "Usage divided by limit on each broker: from 100 % on Kafka delays. The peak is the most of the last minute where the exporter samples between scrapes.",
        "percentunit",
        line(
            _per_broker(scope, catalog.UTILIZATION, "quota_type"),
            f"{{{{quota_type}}}} {WHO} on {{{{broker}}}}",
        ),
        line(
            _per_broker(scope, catalog.UTILIZATION_MAX, "quota_type"),
            f"{{{{quota_type}}}} {WHO} on {{{{broker}}}}, peak",
        ),
        steps=steps.USED,
    )


def _delay(scope: Scope) -> Graph:
    return graph(
        "Delay, by broker",
        "Average delay of the requests that were throttled in the last 30 to 60 s.",
        "s",
        line(
            _per_broker(scope, catalog.THROTTLE_TIME_SECONDS, "quota_type"),
            f"{{{{quota_type}}}} {WHO} on {{{{broker}}}}",
        ),
        steps=steps.DELAY,
    )


def bytes_used(scope: Scope) -> Row:
    """Produced and fetched bytes against their limits."""
    produced = _against_limit(
        scope,
        "Produced",
        catalog.PRODUCE_BYTES_PER_SECOND,
        catalog.PRODUCE_LIMIT,
        "Bps",
    )
    fetched = _against_limit(
        scope, "Fetched", catalog.FETCH_BYTES_PER_SECOND, catalog.FETCH_LIMIT, "Bps"
    )
    return Row(title="Bytes", panels=((12, produced), (12, fetched)))


def request_time(scope: Scope) -> Row:
    """Request time against its limit."""
    threads = _against_limit(
        scope,
        "Request time in threads",
        catalog.REQUEST_THREADS,
        catalog.REQUEST_LIMIT,
        "short",
    )
    return Row(title="Request time", panels=((24, threads),))


def topic_changes(scope: Scope) -> Row:
    """Topic changes against their limit, and what is left in the bucket."""
    changes = _against_limit(
        scope,
        "Topic changes per second",
        catalog.CONTROLLER_MUTATIONS_PER_SECOND,
        catalog.CONTROLLER_MUTATION_LIMIT,
        "short",
    )
    tokens = graph(
        "Tokens left, of the burst",
        "Partitions that may still be created, added or deleted at once. Below 0 Kafka refuses; the bucket fills up at the pace of the limit.",
        "short",
        line(
            _per_broker(scope, catalog.CONTROLLER_MUTATION_TOKENS),
            f"{WHO} on {{{{broker}}}}",
        ),
        limit(_limit(scope, catalog.CONTROLLER_MUTATION_BURST), f"burst of {WHO}"),
    )
    return Row(title="Topic changes", panels=((12, changes), (12, tokens)))


def _against_limit(
    scope: Scope, title: str, usage: Family, bound: Family, unit: str
) -> Graph:
    return graph(
        title,
        f"{usage.help} The dashed line is the limit, which each broker applies by itself.",
        unit,
        line(_per_broker(scope, usage), f"{WHO} on {{{{broker}}}}"),
        limit(_limit(scope, bound), f"limit of {WHO}"),
    )


def _per_broker(scope: Scope, family: Family, *labels: str) -> str:
    selected = scope.of(family, *SELECTED)
    return scope.by("max", selected, *labels, "broker", "user", "client_id")


def _limit(scope: Scope, family: Family) -> str:
    return scope.by("max", scope.of(family, *SELECTED), "user", "client_id")
