"""Spark jobs: what a job waits for, beside what the broker says of the same client."""

from __future__ import annotations

from collections.abc import Callable

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import both, either, increase, rate, select
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import columns, steps
from ..expressions import throttled, utilization
from ..links import to_entity
from ..model import Board, Column, Look, Query, Row, Table
from ..scope import RATE_INTERVAL, Scope
from ..shortcuts import graph, line
from ..variables import common, one_of, values
from .changes import limit_changes

_APP, _QUERY = one_of("app"), one_of("query")
_CLIENT = ("user", "client_id")


def board(scope: Scope) -> Board:
    """The dashboard about jobs."""
    return Board(
        uid=Dashboard.SPARK.uid,
        title="Kafka quotas / Spark jobs",
        description="How long Spark jobs wait for Kafka, what that costs them, and what the brokers say of the same user and client-id.",
        variables=(
            *common(scope),
            values(catalog.SPARK_LISTENER_EVENTS, "app", "Job"),
            values(catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS, "query", "Query", _APP),
        ),
        annotation=limit_changes(scope),
        rows=(
            waiting(scope),
            both_sides(scope),
            failures(scope),
            queries(scope),
            listener(scope),
        ),
    )


def waiting(scope: Scope) -> Row:
    """Which jobs wait, as a share of their time."""
    told = _rate(catalog.SPARK_THROTTLED_SECONDS, _APP, _QUERY)
    labels = ("app", "query", "side", *_CLIENT)
    jobs = Table(
        title="Jobs that wait for Kafka",
        description="Seconds of delay that brokers told to the Kafka clients of each job, per second: 1 means that one task does nothing but wait. A link leads to the brokers' view.",
        queries=(
            Query(expr=scope.by("sum", told, *labels)),
            Query(
                expr=scope.by(
                    "max",
                    select(catalog.SPARK_THROTTLE_MAX_SECONDS, _APP, _QUERY),
                    *labels,
                )
            ),
        ),
        columns=(
            Column(title="Job", source="app"),
            Column(title="Query", source="query"),
            Column(title="Side", source="side", width=80),
            Column(
                title="Waiting",
                source="A",
                unit="short",
                look=Look.BACKGROUND,
                steps=steps.JOB_WAITS,
                width=100,
            ),
            columns.number("Longest", "B", "s", 90),
            *(
                Column(title=title, source=source, links=(to_entity(scope.site),))
                for title, source in (("User", "user"), ("Client-id", "client_id"))
            ),
        ),
        sort="Waiting",
    )
    over_time = graph(
        "Waiting, by job",
        "Seconds of delay per second.",
        "short",
        line(
            scope.by("sum", told, "app", "query", "side"), "{{app}} {{query}} {{side}}"
        ),
        steps=steps.JOB_WAITS,
    )
    return Row(title="Jobs that wait", panels=((14, jobs), (10, over_time)), height=9)


def both_sides(scope: Scope) -> Row:
    """The brokers' view of the same clients."""
    legend = "{{quota_type}} {{user}} / {{client_id}}"
    delay = graph(
        "The brokers' view: delay",
        "Average delay that brokers report for the users and client-ids of these jobs. The broker speaks of users, of client-ids or of pairs, as its rules do.",
        "s",
        line(_same_client(scope, throttled), legend),
        steps=steps.DELAY,
    )
    share = graph(
        "The brokers' view: share of the limit",
        "How much of their limit the users and client-ids of these jobs use on the busiest broker.",
        "percentunit",
        line(_same_client(scope, utilization), legend),
        steps=steps.USED,
    )
    return Row(
        title="The same clients, as brokers see them", panels=((12, delay), (12, share))
    )


def failures(scope: Scope) -> Row:
    """What waiting costs: attempts that failed and were repeated."""
    retries = graph(
        "Repeated task attempts, by cause",
        f"{catalog.SPARK_TASK_RETRIES.help} kafka_quota is a refusal (error 89), kafka_timeout_throttled a timeout while the client was throttled.",
        "short",
        line(
            _grown(scope, catalog.SPARK_TASK_RETRIES, "app", "cause"),
            "{{app}} {{cause}}",
        ),
        stacked=True,
    )
    failed = graph(
        "Failed task attempts, by cause",
        catalog.SPARK_TASK_FAILURES.help,
        "short",
        line(
            _grown(scope, catalog.SPARK_TASK_FAILURES, "app", "cause"),
            "{{app}} {{cause}}",
        ),
        stacked=True,
    )
    other = graph(
        "Repeated stages and Admin calls, lost executors",
        "Stages started again, Admin calls repeated after a refusal, and executors lost.",
        "short",
        line(_grown(scope, catalog.SPARK_STAGE_RETRIES, "app"), "{{app}} stages"),
        line(
            _grown(scope, catalog.SPARK_ADMIN_QUOTA_RETRIES, "app"),
            "{{app}} Admin calls",
        ),
        line(_grown(scope, catalog.SPARK_EXECUTORS_LOST, "app"), "{{app}} executors"),
    )
    return Row(title="Attempts", panels=((8, retries), (8, failed), (8, other)))


def queries(scope: Scope) -> Row:
    """Streaming queries: do they keep up."""
    age = graph(
        "Time since the last progress",
        catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS.help,
        "s",
        _line(scope, catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS),
        steps=steps.QUERY_STALLED,
    )
    behind = graph(
        "Offsets behind",
        "How far the worst partition, and all on average, are behind the newest offset.",
        "short",
        _line(scope, catalog.SPARK_QUERY_MAX_OFFSETS_BEHIND, " worst"),
        _line(scope, catalog.SPARK_QUERY_AVG_OFFSETS_BEHIND, " average"),
    )
    duration = graph(
        "Duration of the last batch, by phase",
        catalog.SPARK_QUERY_BATCH_DURATION_SECONDS.help,
        "s",
        line(
            _worst(
                scope,
                catalog.SPARK_QUERY_BATCH_DURATION_SECONDS,
                "app",
                "query",
                "phase",
            ),
            "{{app}} {{query}} {{phase}}",
        ),
    )
    restarts = graph(
        "Restarts",
        catalog.SPARK_QUERY_RESTARTS.help,
        "short",
        line(
            _grown(scope, catalog.SPARK_QUERY_RESTARTS, "app", "query"),
            "{{app}} {{query}}",
        ),
    )
    panels = tuple((6, each) for each in (age, behind, duration, restarts))
    return Row(title="Streaming queries", panels=panels)


def listener(scope: Scope) -> Row:
    """Whether what jobs say is complete."""
    events = graph(
        "Events of the listener",
        "Events handled, and those that could not be, per second.",
        "cps",
        line(_pace(scope, catalog.SPARK_LISTENER_EVENTS), "{{app}} handled"),
        line(_pace(scope, catalog.SPARK_LISTENER_LOST_EVENTS), "{{app}} lost"),
    )
    lag = graph(
        "How far the listener is behind",
        catalog.SPARK_LISTENER_LAG_SECONDS.help,
        "s",
        line(_worst(scope, catalog.SPARK_LISTENER_LAG_SECONDS, "app"), "{{app}}"),
    )
    panels = ((12, events), (12, lag))
    return Row(title="The listener", panels=panels, collapsed=True)


def _same_client(scope: Scope, view: Callable[..., str]) -> str:
    """What brokers say of the jobs' clients, under rules for pairs, users and client-ids."""
    jobs = select(catalog.SPARK_THROTTLED_SECONDS, _APP, _QUERY)
    pairs = both(view(scope, 'user!=""', 'client_id!=""'), jobs, _CLIENT)
    users = both(
        view(scope, 'user!=""', 'client_id=""'),
        select(catalog.SPARK_THROTTLED_SECONDS, _APP, _QUERY, 'user!=""'),
        ("user",),
    )
    clients = both(
        view(scope, 'user=""', 'client_id!=""'),
        select(catalog.SPARK_THROTTLED_SECONDS, _APP, _QUERY, 'client_id!=""'),
        ("client_id",),
    )
    return either(either(pairs, users), clients)


def _line(scope: Scope, family: Family, what: str = "") -> Query:
    return line(
        _worst(scope, family, "app", "query"), f"{{{{app}}}} {{{{query}}}}{what}"
    )


def _worst(scope: Scope, family: Family, *labels: str) -> str:
    return scope.by("max", select(family, *_chosen(family)), *labels)


def _pace(scope: Scope, family: Family) -> str:
    return scope.by("sum", _rate(family, *_chosen(family)), "app")


def _grown(scope: Scope, family: Family, *labels: str) -> str:
    grown = increase(family, RATE_INTERVAL, *_chosen(family))
    return scope.by("sum", grown, *labels)


def _rate(family: Family, *matchers: str) -> str:
    return rate(family, RATE_INTERVAL, *matchers)


def _chosen(family: Family) -> tuple[str, ...]:
    return (_APP, _QUERY) if "query" in family.labels else (_APP,)
