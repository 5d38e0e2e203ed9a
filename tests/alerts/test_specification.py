"""Severities, times and numbers are those of the specification; the runbooks name the values of thresholds."""

from __future__ import annotations

import re
from typing import Any

import promql_parser as parser
import pytest
import yaml
from tests.alerts.expressions import EVERYTHING, nodes, parsed
from tests.alerts.specification import EACH_MINUTE, SLOW, SPECIFIED, WINDOWS, WINDOWS_OF_RECORDS, Specified

from quotascope.alerts.files import rule_files

Rules = dict[str, dict[str, Any]]
NUMBERS = ("==", "!=", ">", "<", ">=", "<=", "*")


def groups() -> dict[str, list[dict[str, Any]]]:
    return {name: yaml.safe_load(text)["groups"] for name, text in rule_files(EVERYTHING).items()}


@pytest.fixture
def written() -> Rules:
    made = groups()["quotascope-alerts.yaml"]
    return {rule["alert"]: rule for group in made for rule in group["rules"]}


def numbers(expression: str) -> frozenset[str]:
    """What an expression compares with, and multiplies by."""
    return frozenset(
        f"{node.op} {side.val:g}"
        for node in nodes(parsed(expression))
        if isinstance(node, parser.BinaryExpr) and str(node.op) in NUMBERS
        for side in (node.lhs, node.rhs)
        if isinstance(side, parser.NumberLiteral)
    )


def test_alerts_are_as_specified(written: Rules, subtests: pytest.Subtests) -> None:
    """No more and no fewer, each with its severity, scope, times and numbers."""
    assert {*written} == {*SPECIFIED}
    for name, rule in written.items():
        found = Specified(
            rule["labels"]["severity"],
            rule["labels"]["scope"],
            rule["for"],
            rule.get("keep_firing_for"),
            numbers(rule["expr"]),
        )
        with subtests.test(msg=name):
            assert found == SPECIFIED[name]


def windows(expression: str) -> set[str]:
    """How far an expression looks back: ranges, with what they are shifted by, and shifts alone."""
    without_texts = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\[[^\]]+\](?: offset \w+)?|(?<!\] )offset \w+", without_texts))


def test_alerts_look_back_as_specified(written: Rules) -> None:
    """A window that is too short forgets, one that is too long goes on for ever."""
    found = {name: windows(rule["expr"]) for name, rule in written.items()}
    assert {name: each for name, each in found.items() if each} == WINDOWS


def test_records_look_back_as_specified() -> None:
    """What the alerts and dashboards read instead of the series themselves."""
    found = {
        rule["record"]: windows(rule["expr"])
        for group in groups()["quotascope-recording.yaml"]
        for rule in group["rules"]
    }
    assert {name: each for name, each in found.items() if each} == WINDOWS_OF_RECORDS


def test_groups_are_evaluated_as_specified() -> None:
    """Every two minutes where it is much work, every minute where minutes are counted."""
    found = {
        group["name"].removeprefix("quotascope-"): group.get("interval")
        for of_file in groups().values()
        for group in of_file
    }
    intervals = dict.fromkeys(SLOW, "2m") | dict.fromkeys(EACH_MINUTE, "1m")
    assert found == {name: intervals.get(name) for name in found}
    assert {*found} > {*intervals}
