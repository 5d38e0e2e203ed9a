"""Spark jobs: what a job waits for, beside what the broker says of the same client."""

from __future__ import annotations

from functools import partial

from quotascope.alerts import Dashboard
from quotascope.alerts.job_waits import waiting
from quotascope.metrics import catalog

from ... import steps
from ...expressions import throttled, utilization
from ...job_clients import of_jobs
from ...model import Board, Row
from ...scope import Scope
from ...shortcuts import graph, line
from ...variables import common, values
from ..changes import limit_changes
from .clients import clients_of_jobs
from .costs import failures
from .queries import listener, queries
from .series import APP, QUERY


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
            clients_of_jobs(scope),
            over_time(scope),
            failures(scope),
            queries(scope),
            listener(scope),
        ),
    )


def over_time(scope: Scope) -> Row:
    """What jobs were told, beside what the brokers measured of the same clients."""
    legend = "{{quota_type}} {{user}} / {{client_id}}"
    told = graph(
        "Waiting, by job",
        "Seconds of throttle time told to the clients of each job per second, over ten minutes: 1 means that one task does nothing but wait.",
        "short",
        line(
            scope.by("sum", waiting(APP, QUERY), "app", "query", "side"),
            "{{app}} {{query}} {{side}}",
        ),
        steps=steps.JOB_WAITS,
    )
    delay = graph(
        "The brokers' view: delay",
        "Average delay that brokers report for the users and client-ids of these jobs. The broker speaks of users, of client-ids or of pairs, as its rules do.",
        "s",
        line(of_jobs(partial(throttled, scope), APP, QUERY), legend),
        steps=steps.DELAY,
    )
    share = graph(
        "The brokers' view: share of the limit",
        "How much of their limit the users and client-ids of these jobs use on the busiest broker.",
        "percentunit",
        line(of_jobs(partial(utilization, scope), APP, QUERY), legend),
        steps=steps.USED,
    )
    return Row(
        title="The same clients, as brokers see them",
        panels=((8, told), (8, delay), (8, share)),
    )
