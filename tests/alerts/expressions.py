"""PromQL as the parser sees it: what the rules of pint look at, and the labels that come out of an expression, by what its parts are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import promql_parser as parser

from quotascope.alerts import Site
from quotascope.alerts.book import records
from quotascope.alerts.settings import Clients, Objective, Owner
from quotascope.metrics.catalog import Family, families, job_families

FAMILIES: Final[dict[str, Family]] = {family.name: family for family in (*families(), *job_families())}
OF_PROMETHEUS: Final = ("instance", "job")
"""Labels that every scraped series has, whatever its family declares."""


def parsed(expression: str) -> Any:
    """The tree of an expression. Raises ``ValueError`` when Prometheus would not take it."""
    return parser.parse(expression)


def nodes(node: Any) -> Iterator[Any]:
    """A node and everything in it."""
    yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector", "args"):
        inner = getattr(node, name, None)
        for each in inner if isinstance(inner, list) else [inner]:
            if each is not None and type(each).__module__.startswith("promql_parser"):
                yield from nodes(each)


def selectors(expression: str) -> Iterator[parser.VectorSelector]:
    """Every place where an expression reads series."""
    yield from (node for node in nodes(parsed(expression)) if isinstance(node, parser.VectorSelector))


def matched_labels(selector: Any) -> set[str]:
    return {matcher.name for matcher in selector.matchers.matchers if matcher.name != "__name__"}


ALICE: Final = Clients(user="alice")
EVERYTHING: Final = Site(
    owners=(Owner(team="payments", clients=ALICE),),
    objectives=(Objective(name="billing", clients=ALICE, percent=99.0),),
)
"""A site whose rules have all groups."""
RECORDED: Final = {record.name: record for record in records(EVERYTHING)}
CLUSTER: Final = Site().cluster_label
OF_ALERTS: Final = "ALERTS"
"""The series in which Prometheus keeps what fires."""
OF_TARGETS: Final = "up"
"""Prometheus' own series of each target, which has no cluster."""
_SETS: Final = ("and", "unless", "or")


def labels_of(expression: str) -> set[str]:
    """The labels of the series that an expression gives. Fails when it keeps or matches one that is not there."""
    return _labels_of(parsed(expression))


def _labels_of(node: Any) -> set[str]:
    match node:
        case parser.VectorSelector():
            found = _of_selector(node)
        case parser.MatrixSelector():
            found = _labels_of(node.vector_selector)
        case parser.ParenExpr() | parser.SubqueryExpr() | parser.UnaryExpr():
            found = _labels_of(node.expr)
        case parser.AggregateExpr():
            found = _of_aggregation(node)
        case parser.Call():
            found = _of_call(node)
        case parser.BinaryExpr():
            found = _of_operation(node)
        case _:
            found = set()
    return found


def _of_selector(node: Any) -> set[str]:
    if node.name == OF_ALERTS:
        return {"alertname", "alertstate", "severity", "scope", CLUSTER, "request"}
    if node.name in RECORDED:
        expression = RECORDED[node.name].expr
        # one that reads its own past shows its labels on the other side of its `or`
        return _labels_of(parsed(expression).rhs) if f"{node.name}[" in expression else labels_of(expression)
    if node.name == OF_TARGETS:
        return {*OF_PROMETHEUS}
    return {*FAMILIES[node.name].labels, *OF_PROMETHEUS, CLUSTER}


def _of_aggregation(node: Any) -> set[str]:
    if str(node.op) == "topk":  # it keeps all labels
        return _labels_of(node.expr)
    kept = set(node.modifier.labels if node.modifier else ())
    missing = kept - _labels_of(node.expr)
    assert missing == set(), f"aggregates by {missing}, which is not there"
    return kept


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
