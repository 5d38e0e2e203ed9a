"""Spark jobs: what a job waits for, beside what the broker says of the same client."""

from __future__ import annotations

from collections.abc import Callable

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import both, either, select
from quotascope.metrics import catalog

from ... import columns, steps
from ...expressions import throttled, utilization
from ...links import to_entity_in_chosen_clusters
from ...model import Board, Column, Look, Query, Row, Table
from ...scope import Scope
from ...shortcuts import graph, line
from ...variables import common, values
from ..changes import limit_changes
from .costs import failures
from .queries import listener, queries
from .series import APP, QUERY, per_second

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
            values(catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS, "query", "Query", APP),
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
    told = per_second(catalog.SPARK_THROTTLED_SECONDS, APP, QUERY)
    over_time = graph(
        "Waiting, by job",
        "Seconds of delay per second.",
        "short",
        line(
            scope.by("sum", told, "app", "query", "side"),
            "{{app}} {{query}} {{side}}",
        ),
        steps=steps.JOB_WAITS,
    )
    panels = ((14, _jobs(scope, told)), (10, over_time))
    return Row(title="Jobs that wait", panels=panels, height=9)


def _jobs(scope: Scope, told: str) -> Table:
    labels = ("app", "query", "side", *_CLIENT)
    longest = select(catalog.SPARK_THROTTLE_MAX_SECONDS, APP, QUERY)
    return Table(
        title="Jobs that wait for Kafka",
        description="Seconds of delay that brokers told to the Kafka clients of each job, per second: 1 means that one task does nothing but wait. A link leads to the brokers' view.",
        queries=(
            Query(expr=scope.by("sum", told, *labels)),
            Query(expr=scope.by("max", longest, *labels)),
        ),
        columns=(
            Column(title="Job", source="app"),
            Column(title="Query", source="query"),
            Column(title="Side", source="side", width=80),
            _waiting(),
            columns.number("Longest", "B", "s", 90),
            *columns.named(to_entity_in_chosen_clusters()),
        ),
        sort="Waiting",
    )


def _waiting() -> Column:
    return Column(
        title="Waiting",
        source="A",
        unit="short",
        look=Look.BACKGROUND,
        steps=steps.JOB_WAITS,
        width=100,
    )


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


def _same_client(scope: Scope, view: Callable[..., str]) -> str:
    """What brokers say of the jobs' clients, under rules for pairs, users and client-ids."""
    jobs = select(catalog.SPARK_THROTTLED_SECONDS, APP, QUERY)
    pairs = both(view(scope, 'user!=""', 'client_id!=""'), jobs, _CLIENT)
    users = both(
        view(scope, 'user!=""', 'client_id=""'),
        select(catalog.SPARK_THROTTLED_SECONDS, APP, QUERY, 'user!=""'),
        ("user",),
    )
    clients = both(
        view(scope, 'user=""', 'client_id!=""'),
        select(catalog.SPARK_THROTTLED_SECONDS, APP, QUERY, 'client_id!=""'),
        ("client_id",),
    )
    return either(either(pairs, users), clients)
