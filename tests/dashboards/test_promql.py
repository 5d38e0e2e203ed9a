"""Every expression is one that Prometheus understands, of series that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from tests.alerts.expressions import nodes
from tests.dashboards.promql import expressions, names_and_labels, parsed

from quotascope.alerts import recorded
from quotascope.alerts.recorded import ENTITY_OWNER, LONGEST_GAP, TREND_WINDOW, WAITS_WINDOW
from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope
from quotascope.metrics.catalog import FamilyType, families, job_families

FAMILIES = {each.name: each for each in (*families(), *job_families())}
RECORDED = {value for value in vars(recorded).values() if isinstance(value, str)}
BESIDE_JOBS = {"Jobs that wait for Kafka", "Spark jobs behind it"}
"""Panels that show what brokers say in the rows of jobs."""
COUNTER_FUNCTIONS = {"rate", "increase", "irate", "resets"}

Expressions = list[tuple[str, str]]


@pytest.fixture
def every(variant: Scope) -> Expressions:
    """All expressions of all dashboards."""
    made = grafana_dashboards(variant)
    return [pair for each in made.values() for pair in expressions(each)]


def _nodes(pairs: Iterable[tuple[str, str]], kind: str) -> list[tuple[str, Any]]:
    """All parts of a kind, each with the title of its panel."""
    return [(title, node) for title, text in pairs for node in nodes(parsed(text)) if type(node).__name__ == kind]


def test_every_name_and_label_exists(every: Expressions, variant: Scope) -> None:
    """Prometheus' grammar takes each; a panel about a series or a label that nothing exposes would stay empty."""
    assert len(every) > 100
    for title, expression in every:
        for name, labels in names_and_labels(expression):
            if name in RECORDED:
                continue
            family = FAMILIES[name]
            assert set(labels) <= {*family.labels, variant.cluster}, title


def test_recorded_series_are_read_only_when_asked_for(every: Expressions, variant: Scope) -> None:
    """Without our recording rules nothing is missing but the choice of owners, which they are."""
    names = {name for _, each in every for name, _ in names_and_labels(each)}
    assert bool(names & RECORDED - {ENTITY_OWNER}) is variant.recorded


def test_every_family_with_a_cluster_keeps_to_the_chosen_ones(every: Expressions, variant: Scope) -> None:
    """Series of the exporter are selected by the variable of the cluster; jobs do not know their cluster."""
    jobs = {family.name for family in job_families()}
    for title, expression in every:
        for name, labels in names_and_labels(expression):
            assert (variant.cluster in labels) is (name not in jobs), title


def test_rates_are_of_counters_over_the_rate_interval(every: Expressions) -> None:
    """A rate of a gauge means nothing, and a fixed range fails with another scrape interval; jobs are looked at for ten minutes."""
    ranges = [
        (title, function, name)
        for title, expression in every
        for function, name in re.findall(r"(\w+)\((\w+)\{[^{}]*\}\[", re.sub(r"\$\{\w+:\w+\}", "x", expression))
    ]
    assert ranges
    for title, function, name in ranges:
        if function == "predict_linear":
            assert FAMILIES[name].type is FamilyType.GAUGE, title
        elif function != "last_over_time":
            assert function in COUNTER_FUNCTIONS, title
            assert FAMILIES[name].type is FamilyType.COUNTER, title
    windows = {each for _, text in every for each in re.findall(r"\[([^]]*)\]", text)}
    others = {TREND_WINDOW, f"{TREND_WINDOW}:10m", WAITS_WINDOW, LONGEST_GAP, "1d", "14d:5m"}
    assert windows - others == {"$__rate_interval"}


def test_counters_are_never_shown_as_they_are(every: Expressions) -> None:
    """Their values say when a broker was started; only their growth means something."""
    for title, node in _nodes(every, "AggregateExpr"):
        if type(node.expr).__name__ == "VectorSelector" and node.expr.name in FAMILIES:
            assert FAMILIES[node.expr.name].type is FamilyType.GAUGE, title


def test_two_exporters_of_a_cluster_count_once(variant: Scope) -> None:
    """A sum is over what was made one for each broker before; jobs, and the exporters' own health, are another matter."""
    made = grafana_dashboards(variant)
    shown = [
        pair for board in ("overview", "brokers", "mutations") for pair in expressions(made[f"quotascope-{board}"])
    ]
    sums = [(title, node) for title, node in _nodes(shown, "AggregateExpr") if str(node.op) == "sum"]
    assert len(sums) > len(made)
    for title, node in sums:
        below = [type(each).__name__ for each in nodes(node.expr)]
        assert below.index("AggregateExpr") < below.index("VectorSelector"), title


def test_every_aggregation_keeps_the_cluster(every: Expressions, variant: Scope) -> None:
    """Clusters of one Prometheus are never added up, nor take each other's place among the highest; beside a job, which need not report its cluster, stands the worst of them."""
    for title, node in _nodes(every, "AggregateExpr"):
        beside_a_job = str(node.op) == "max" and title in BESIDE_JOBS
        labels = re.findall(r"\w+", str(node.modifier).partition("(")[2])
        assert beside_a_job or variant.cluster in labels, title


def test_nothing_is_divided_by_what_may_be_zero(every: Expressions) -> None:
    """A limit of 0 would give infinity, an absent one nothing."""
    divisions = [(title, node) for title, node in _nodes(every, "BinaryExpr") if str(node.op) == "/"]
    assert divisions
    for title, node in divisions:
        guard = node.rhs.expr
        number = type(guard.rhs).__name__ == type(guard.lhs).__name__ == "NumberLiteral"
        assert number or (str(guard.op), guard.rhs.val) == (">", 0.0), title
