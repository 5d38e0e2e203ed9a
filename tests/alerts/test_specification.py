"""Severities, times, numbers and thresholds are those of the specification."""

from __future__ import annotations

import promql_parser as parser
import pytest
import yaml
from tests.alerts.expressions import nodes, parsed
from tests.alerts.promtool import GENERATED
from tests.alerts.specification import SPECIFIED, THRESHOLDS, Specified

from quotascope.alerts import thresholds

WRITTEN = {
    rule["alert"]: rule
    for group in yaml.safe_load((GENERATED / "quotascope-alerts.yaml").read_text())[
        "groups"
    ]
    for rule in group["rules"]
}
NUMBERS = ("==", "!=", ">", "<", ">=", "<=", "*")


def numbers(expression: str) -> frozenset[str]:
    """What an expression compares with, and multiplies by."""
    return frozenset(
        f"{node.op} {side.val:g}"
        for node in nodes(parsed(expression))
        if isinstance(node, parser.BinaryExpr) and str(node.op) in NUMBERS
        for side in (node.lhs, node.rhs)
        if isinstance(side, parser.NumberLiteral)
    )


def test_every_alert_is_specified() -> None:
    """No more and no less."""
    assert {*WRITTEN} == {*SPECIFIED}


@pytest.mark.parametrize("name", SPECIFIED)
def test_an_alert_is_as_specified(name: str) -> None:
    """In the file that Prometheus reads."""
    rule = WRITTEN[name]
    found = Specified(
        rule["labels"]["severity"],
        rule["labels"]["scope"],
        rule["for"],
        rule.get("keep_firing_for"),
        numbers(rule["expr"]),
    )
    assert found == SPECIFIED[name]


def test_thresholds_are_as_specified() -> None:
    """Values and units: the expressions, the dashboards and the documentation take them from there."""
    found = {name: (one.value, one.unit) for name, one in thresholds()}
    assert found == THRESHOLDS
