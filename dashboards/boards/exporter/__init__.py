"""Exporter health: whether the other dashboards can be believed."""

from __future__ import annotations

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ... import columns, steps
from ...expressions import counter_rate
from ...model import Board, Column, Graph, Look, Query, Row, Table
from ...scope import Scope
from ...shortcuts import graph, line
from ...variables import common
from ..changes import limit_changes
from .around import around
from .now import now


def board(scope: Scope) -> Board:
    """The dashboard about quotascope itself."""
    return Board(
        uid=Dashboard.EXPORTER.uid,
        title="Kafka quotas / Exporter",
        description="Whether the exporter reads every broker and knows the limits that are in force.",
        variables=common(scope),
        annotation=limit_changes(scope),
        rows=(
            now(scope),
            sources(scope),
            limits(scope),
            entities(scope),
            around(scope),
        ),
    )


def sources(scope: Scope) -> Row:
    """Every broker and controller."""
    panels = ((12, _every_source(scope)), (6, _duration(scope)), (6, _readings(scope)))
    return Row(title="Sources", panels=panels)


def _duration(scope: Scope) -> Graph:
    return graph(
        "Duration of reads",
        "How long reading each source took. It should stay below Prometheus' scrape timeout, 10 s by default.",
        "s",
        line(_by_source(scope, catalog.SOURCE_DURATION_SECONDS), "{{source}}"),
    )


def _readings(scope: Scope) -> Graph:
    return graph(
        "Numbers read, by source",
        "A source that is up and gives nothing is the wrong port, or a node without quotas.",
        "short",
        line(_by_source(scope, catalog.SOURCE_READINGS), "{{source}}"),
    )


def _every_source(scope: Scope) -> Table:
    dialect = scope.of(catalog.SOURCE_DIALECT_INFO)
    exprs = (
        _by_source(scope, catalog.SOURCE_UP, "min"),
        _by_source(scope, catalog.SOURCE_DURATION_SECONDS),
        _by_source(scope, catalog.SOURCE_READINGS),
        scope.by("max", dialect, "source", "dialect"),
    )
    return Table(
        title="Sources",
        description="Each broker and controller, how the exporter speaks to it, and how its last read went.",
        queries=tuple(Query(expr=expr) for expr in exprs),
        columns=(
            Column(title="Source", source="source"),
            _state("A"),
            Column(title="Dialect", source="dialect", width=130),
            columns.number("Last read took", "B", "s"),
            columns.number("Numbers", "C", "short", 90),
            columns.cluster(scope.site),
        ),
        sort="Last read took",
    )


def _state(letter: str) -> Column:
    return Column(
        title="State",
        source=letter,
        width=80,
        look=Look.BACKGROUND,
        steps=steps.UP,
        texts={"0": "down", "1": "up"},
    )


def _by_source(scope: Scope, family: Family, operator: str = "max") -> str:
    return scope.by(operator, scope.of(family), "source")


def limits(scope: Scope) -> Row:
    """How old things are, and what failed."""
    panels = tuple(
        (8, each) for each in (_age(scope), _errors(scope), _differing(scope))
    )
    return Row(title="Limits", panels=panels)


def _age(scope: Scope) -> Graph:
    return graph(
        "Age of the limits",
        "Grows while the Admin API cannot be asked.",
        "s",
        line(scope.by("max", scope.of(catalog.LIMITS_AGE_SECONDS)), "limits"),
        line(scope.by("max", scope.of(catalog.SNAPSHOT_AGE_SECONDS)), "numbers"),
        steps=steps.OLD_LIMITS,
    )


def _errors(scope: Scope) -> Graph:
    return graph(
        "Failed reads of the limits",
        "Per second; the exporter's log says why.",
        "cps",
        line(
            scope.by("sum", counter_rate(scope, catalog.LIMITS_REFRESH_ERRORS)),
            "errors",
        ),
    )


def _differing(scope: Scope) -> Graph:
    return graph(
        "Utilisation that brokers tell otherwise",
        catalog.UTILIZATION_DISAGREEMENTS.help,
        "short",
        line(
            scope.by("max", scope.of(catalog.UTILIZATION_DISAGREEMENTS), "broker"),
            "broker {{broker}}",
        ),
    )


def entities(scope: Scope) -> Row:
    """What became of the brokers' entities."""
    panels = tuple(
        (8, each) for each in (_states(scope), _dropped(scope), _callbacks(scope))
    )
    return Row(title="What is shown", panels=panels)


def _states(scope: Scope) -> Graph:
    return graph(
        "Users and client-ids, by what became of them",
        f"{catalog.ENTITIES.help} Whatever is not exported is missing on the other dashboards.",
        "short",
        line(scope.by("max", scope.of(catalog.ENTITIES), "state"), "{{state}}"),
        stacked=True,
    )


def _dropped(scope: Scope) -> Graph:
    return graph(
        "Series left out",
        catalog.SERIES_DROPPED.help,
        "short",
        line(scope.by("max", scope.of(catalog.SERIES_DROPPED), "reason"), "{{reason}}"),
    )


def _callbacks(scope: Scope) -> Graph:
    return graph(
        "Custom quota callbacks",
        f"{catalog.CALLBACK_DETECTED.help} Such a callback decides by rules of its own, which nobody but its author knows.",
        "short",
        line(
            scope.by("max", scope.of(catalog.CALLBACK_DETECTED), "broker"),
            "broker {{broker}}",
        ),
    )
