"""Exporter health: whether the other dashboards can be believed."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.alerts.promql import compare
from quotascope.metrics import catalog

from .. import columns, steps
from ..expressions import counter_rate
from ..model import Board, Column, Look, Query, Row, Table
from ..scope import Scope
from ..shortcuts import graph, line, stat
from ..variables import common
from .changes import limit_changes


def board(scope: Scope) -> Board:
    """The dashboard about quotascope itself."""
    return Board(
        uid=Dashboard.EXPORTER.uid,
        title="Kafka quotas / Exporter",
        description="Whether the exporter reads every broker and knows the limits that are in force.",
        variables=common(scope),
        annotation=limit_changes(scope),
        rows=(now(scope), sources(scope), ages(scope), entities(scope)),
    )


def now(scope: Scope) -> Row:
    """Five numbers."""
    numbers = (
        stat(
            scope,
            "Exporters",
            "Exporters that Prometheus reads. None: every dashboard is empty.",
            "short",
            scope.by("count", scope.of(catalog.BUILD_INFO)),
            steps=steps.UP,
        ),
        stat(
            scope,
            "Sources down",
            "Brokers and controllers whose last read failed.",
            "short",
            scope.by("count", compare(scope.of(catalog.SOURCE_UP), "==", 0)),
            steps=steps.DOWN,
        ),
        stat(
            scope,
            "Age of the limits",
            "How old the configured limits are that were joined with usage.",
            "s",
            scope.by("max", scope.of(catalog.LIMITS_AGE_SECONDS)),
            steps=steps.OLD_LIMITS,
            nothing="never read",
        ),
        stat(
            scope,
            "Age of the numbers",
            "How old the shown numbers are.",
            "s",
            scope.by("max", scope.of(catalog.SNAPSHOT_AGE_SECONDS)),
            steps=steps.OLD_NUMBERS,
            nothing="none",
        ),
        stat(
            scope,
            "Users and client-ids shown",
            "How many quota entities the exporter shows. None: no quota is configured, or no client was seen yet.",
            "short",
            scope.by("sum", scope.of(catalog.ENTITIES, 'state="exported"')),
            steps=steps.NEUTRAL,
        ),
        stat(
            scope,
            "Configured rules",
            "Rules that the brokers have, of all kinds.",
            "short",
            scope.by("sum", scope.by("max", scope.of(catalog.RULES), "quota_key")),
            steps=steps.NEUTRAL,
        ),
    )
    return Row(title="Right now", panels=tuple((4, each) for each in numbers), height=4)


def sources(scope: Scope) -> Row:
    """Every broker and controller."""
    table = Table(
        title="Sources",
        description="Each broker and controller, how the exporter speaks to it, and how its last read went.",
        queries=(
            Query(expr=scope.by("min", scope.of(catalog.SOURCE_UP), "source")),
            Query(
                expr=scope.by(
                    "max", scope.of(catalog.SOURCE_DURATION_SECONDS), "source"
                )
            ),
            Query(expr=scope.by("max", scope.of(catalog.SOURCE_READINGS), "source")),
            Query(
                expr=scope.by(
                    "max", scope.of(catalog.SOURCE_DIALECT_INFO), "source", "dialect"
                )
            ),
        ),
        columns=(
            Column(title="Source", source="source"),
            Column(
                title="State",
                source="A",
                width=100,
                look=Look.BACKGROUND,
                steps=steps.UP,
                texts={"0": "down", "1": "up"},
            ),
            Column(title="Dialect", source="dialect"),
            columns.number("Last read took", "B", "s"),
            columns.number("Numbers read", "C", "short"),
            columns.cluster(scope.site),
        ),
        sort="Last read took",
    )
    duration = graph(
        "Duration of reads",
        "How long reading each source took. It should stay below Prometheus' scrape timeout, 10 s by default.",
        "s",
        line(
            scope.by("max", scope.of(catalog.SOURCE_DURATION_SECONDS), "source"),
            "{{source}}",
        ),
    )
    return Row(title="Sources", panels=((14, table), (10, duration)))


def ages(scope: Scope) -> Row:
    """How old things are, and what failed."""
    age = graph(
        "Age of the limits",
        "Grows while the Admin API cannot be asked.",
        "s",
        line(scope.by("max", scope.of(catalog.LIMITS_AGE_SECONDS)), "limits"),
        line(scope.by("max", scope.of(catalog.SNAPSHOT_AGE_SECONDS)), "numbers"),
        steps=steps.OLD_LIMITS,
    )
    errors = graph(
        "Failed reads of the limits",
        "Per second; the exporter's log says why.",
        "cps",
        line(
            scope.by("sum", counter_rate(scope, catalog.LIMITS_REFRESH_ERRORS)),
            "errors",
        ),
    )
    return Row(title="Limits", panels=((12, age), (12, errors)))


def entities(scope: Scope) -> Row:
    """What became of the brokers' entities."""
    states = graph(
        "Users and client-ids, by what became of them",
        "Shown, or left out: stale ones are left over from earlier rules.",
        "short",
        line(scope.by("sum", scope.of(catalog.ENTITIES), "state"), "{{state}}"),
        stacked=True,
    )
    readings = graph(
        "Numbers read, by source",
        "A source that is up and gives nothing is the wrong port, or a node without quotas.",
        "short",
        line(
            scope.by("max", scope.of(catalog.SOURCE_READINGS), "source"), "{{source}}"
        ),
    )
    return Row(title="What is shown", panels=((12, states), (12, readings)))
