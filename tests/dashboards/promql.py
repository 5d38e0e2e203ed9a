"""The expressions of dashboards, as Prometheus' parser sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import promql_parser
from tests.alerts.expressions import nodes
from tests.dashboards.typescript import panels_of

_VARIABLE = re.compile(r"\$\{(\w+):\w+\}|\$cluster")


def expressions(dashboard: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Title and expression of every query, annotations included."""
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
    for panel in panels_of(dashboard):
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def parsed(expression: str) -> Any:
    """The expression as a tree, Grafana's variables filled in."""
    filled = _VARIABLE.sub("x", expression).replace("$__rate_interval", "4m")
    return promql_parser.parse(filled)


def names_and_labels(expression: str) -> Iterator[tuple[str, list[str]]]:
    """Every selected name with the labels that are matched."""
    for node in nodes(parsed(expression)):
        if type(node).__name__ == "VectorSelector":
            yield node.name, [matcher.name for matcher in node.matchers.matchers]
