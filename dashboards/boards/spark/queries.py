"""Streaming queries, and the listener that tells of them."""

from __future__ import annotations

from quotascope.metrics import catalog

from ... import steps
from ...model import Graph, Row
from ...scope import Scope
from ...shortcuts import graph, line
from .series import grown, of_query, pace, worst


def queries(scope: Scope) -> Row:
    """Streaming queries: do they keep up."""
    graphs = (_age(scope), _behind(scope), _duration(scope), _restarts(scope))
    panels = tuple((6, each) for each in graphs)
    return Row(title="Streaming queries", panels=panels)


def _age(scope: Scope) -> Graph:
    return graph(
        "Time since the last progress",
        catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS.help,
        "s",
        of_query(scope, catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS),
        steps=steps.QUERY_STALLED,
    )


def _behind(scope: Scope) -> Graph:
    return graph(
        "Offsets behind",
        "How far the worst partition, and all on average, are behind the newest offset.",
        "short",
        of_query(scope, catalog.SPARK_QUERY_MAX_OFFSETS_BEHIND, " worst"),
        of_query(scope, catalog.SPARK_QUERY_AVG_OFFSETS_BEHIND, " average"),
    )


def _duration(scope: Scope) -> Graph:
    family = catalog.SPARK_QUERY_BATCH_DURATION_SECONDS
    return graph(
        "Duration of the last batch, by phase",
        family.help,
        "s",
        line(
            worst(scope, family, "app", "query", "phase"),
            "{{app}} {{query}} {{phase}}",
        ),
    )


def _restarts(scope: Scope) -> Graph:
    return graph(
        "Restarts",
        catalog.SPARK_QUERY_RESTARTS.help,
        "short",
        line(
            grown(scope, catalog.SPARK_QUERY_RESTARTS, "app", "query"),
            "{{app}} {{query}}",
        ),
    )


def listener(scope: Scope) -> Row:
    """Whether what jobs say is complete."""
    events = graph(
        "Events of the listener",
        "Events handled, and those that could not be, per second.",
        "cps",
        line(pace(scope, catalog.SPARK_LISTENER_EVENTS), "{{app}} handled"),
        line(pace(scope, catalog.SPARK_LISTENER_LOST_EVENTS), "{{app}} lost"),
    )
    lag = graph(
        "How far the listener is behind",
        catalog.SPARK_LISTENER_LAG_SECONDS.help,
        "s",
        line(worst(scope, catalog.SPARK_LISTENER_LAG_SECONDS, "app"), "{{app}}"),
    )
    holes = graph(
        "What is missing",
        "Attempts of tasks that could not tell their waits (their executor was lost, or their Python died), and failures of parts of the listener.",
        "short",
        line(grown(scope, catalog.SPARK_UNKNOWN_ATTEMPTS, "app"), "{{app}} attempts"),
        line(
            grown(scope, catalog.SPARK_LISTENER_PROBLEMS, "app", "part"),
            "{{app}} {{part}}",
        ),
    )
    panels = ((8, events), (8, lag), (8, holes))
    return Row(title="The listener", panels=panels, collapsed=True)
