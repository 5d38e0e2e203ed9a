"""PromQL as a tree: its nodes, the ranges in it, and the labels of the series that an expression returns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import promql_parser as parser

from quotascope.alerts import Site
from quotascope.alerts.render import Rule, records
from quotascope.alerts.settings import Objective, Profile
from quotascope.metrics.catalog import Family, families, job_families
from quotascope.metrics.catalog.teams import Clients, Team

FAMILIES: Final[dict[str, Family]] = {family.name: family for family in (*families(), *job_families())}
OF_PROMETHEUS: Final = ("instance", "job")
"""Labels of every scraped series, beside those that its family declares."""


def parsed(expression: str) -> Any:
    """Return the tree of an expression. Raises ``ValueError`` for one that Prometheus refuses."""
    return parser.parse(expression)


def nodes(node: Any) -> Iterator[Any]:
    """Yield a node and all nodes below it."""
    yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector", "args"):
        inner = getattr(node, name, None)
        for child in inner if isinstance(inner, list) else [inner]:
            if child is not None and type(child).__module__.startswith("promql_parser"):
                yield from nodes(child)


def selectors(expression: str) -> Iterator[parser.VectorSelector]:
    """Yield every selector of series in an expression."""
    yield from (node for node in nodes(parsed(expression)) if isinstance(node, parser.VectorSelector))


def matched_labels(selector: Any) -> set[str]:
    return {matcher.name for matcher in selector.matchers.matchers if matcher.name != "__name__"}


_SHORTEST: Final = timedelta(seconds=5)
"""An interval of which all usual intervals are multiples."""


def edges(expression: str) -> list[str]:
    """Return the ranges whose older end is the time of a sample if scrapes and evaluations are in step."""
    kinds = (parser.MatrixSelector, parser.SubqueryExpr)
    ranges: list[Any] = [node for node in nodes(parsed(expression)) if isinstance(node, kinds)]
    return [_range_text(node) for node in ranges if not node.range % _SHORTEST]


def _range_text(node: Any) -> str:
    return f"[{str(node).rpartition('[')[2].partition(']')[0]}]"


ALICE: Final = Clients(user="alice")
EVERYTHING: Final = Site(
    teams=(Team(name="payments", clients=(ALICE,)),),
    objectives=(Objective(name="billing", clients=ALICE, percent=99.0),),
    profile=Profile.ALL,
)
"""A site with all groups of rules."""
ONE_TEAM: Final = Site(teams=(Team(name="platform", clients=(Clients(user_pattern=".*"),)),))
"""A site with one team, which owns all entities."""
RECORDED: Final[dict[str, Rule]] = {rule["record"]: rule for rule in records(EVERYTHING)}
CLUSTER: Final = Site().cluster_label
OF_ALERTS: Final = "ALERTS"
"""The series in which Prometheus keeps alerts that fire."""
OF_TARGETS: Final = "up"
"""Prometheus' own series of each target, which has no label of clusters."""
_SETS: Final = ("and", "unless", "or")


def labels_of(expression: str) -> set[str]:
    """Return the labels of the series that an expression returns. Fail if it keeps or matches a missing label."""
    return _labels_of(parsed(expression))


def _labels_of(node: Any) -> set[str]:
    match node:
        case parser.VectorSelector():
            labels = _of_selector(node)
        case parser.MatrixSelector():
            labels = _labels_of(node.vector_selector)
        case parser.ParenExpr() | parser.SubqueryExpr() | parser.UnaryExpr():
            labels = _labels_of(node.expr)
        case parser.AggregateExpr():
            labels = _of_aggregation(node)
        case parser.Call():
            labels = _of_call(node)
        case parser.BinaryExpr():
            labels = _of_operation(node)
        case _:
            labels = set()
    return labels


def _of_selector(node: Any) -> set[str]:
    if node.name == OF_ALERTS:
        return {"alertname", "alertstate", "severity", "scope", CLUSTER, "request"}
    if node.name in RECORDED:
        expression = RECORDED[node.name]["expr"]
        # a rule that reads its own past has its labels on the other side of its `or`
        return _labels_of(parsed(expression).rhs) if f"{node.name}[" in expression else labels_of(expression)
    if node.name == OF_TARGETS:
        return {*OF_PROMETHEUS}
    return {*FAMILIES[node.name].labels, *OF_PROMETHEUS, CLUSTER}


def _of_aggregation(node: Any) -> set[str]:
    if str(node.op) == "topk":  # it keeps all labels
        return _labels_of(node.expr)
    labels = set(node.modifier.labels if node.modifier else ())
    missing = labels - _labels_of(node.expr)
    assert missing == set(), f"aggregates by {missing}, which is not there"
    return labels


def _of_call(node: Any) -> set[str]:
    if node.func.name == "absent":
        return {matcher.name for matcher in node.args[0].matchers.matchers}
    labels = set[str]().union(*map(_labels_of, node.args))
    if node.func.name == "label_replace":
        labels.add(node.args[1].val)
    return labels


def _of_operation(node: Any) -> set[str]:
    left, right = _labels_of(node.lhs), _labels_of(node.rhs)
    matching = node.modifier.matching if node.modifier else None
    if matching is None:
        return left or right
    missing = set(matching.labels) - (left & right)
    assert missing == set(), f"matches on {missing}, which one side lacks"
    many = str(node.modifier.card).endswith("ManyToOne")
    return left if str(node.op) in _SETS or many else set(matching.labels)
