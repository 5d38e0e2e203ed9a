"""A dashboard's JSON as panels, as expressions of Prometheus' parser, and as TypeScript with Grafana's types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import promql_parser
from tests.alerts.expressions import nodes

from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

Panel = Mapping[str, Any]

_TYPES = {
    "row": "Row",
    "stat": "Stat",
    "table": "Table",
    "text": "Text",
    "timeseries": "TimeSeries",
}


def module_of(dashboard: Mapping[str, Any]) -> str:
    """Return a module with a constant for the dashboard's frame, each annotation and each panel."""
    frame = {key: value for key, value in dashboard.items() if key != "panels"}
    annotations = frame.pop("annotations")["list"]
    lines = [
        f"import type {{ Annotation, Frame, {', '.join(_TYPES.values())} }} from './types';",
        f"export type Used = {' | '.join(_TYPES.values())};",
        _constant("frame", frame, "Frame"),
    ]
    for index, annotation in enumerate(annotations):
        lines.append(_constant(f"annotation_{index}", annotation, "Annotation"))
    for panel in panels_of(dashboard):
        plain = {**panel, "panels": []} if panel["type"] == "row" else panel
        name = f"{re.sub(r'[^A-Za-z]+', '_', panel['title'])}_{panel['id']}"
        lines.append(_constant(f"panel_{name}", plain, _TYPES[panel["type"]]))
    return "\n".join(lines) + "\n"


def panels_of(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return all panels and rows of a dashboard, including the panels of collapsed rows."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def _constant(name: str, value: object, of_type: str) -> str:
    return f"export const {name} = {json.dumps(value, indent=1)} satisfies {of_type};"


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
    filled = _VARIABLE.sub("x", expression).replace("$__rate_interval", "4m").replace("$__range", "1h")
    return promql_parser.parse(filled)


def names_and_labels(expression: str) -> Iterator[tuple[str, list[str]]]:
    """Every selected name with the labels that are matched."""
    for node in nodes(parsed(expression)):
        if type(node).__name__ == "VectorSelector":
            yield node.name, [matcher.name for matcher in node.matchers.matchers]


def panels(scope: Scope) -> dict[tuple[str, str], Panel]:
    """Return the panels of all dashboards, by the dashboard's name and their own type and title."""
    return {
        (uid.removeprefix("quotascope-"), f"{panel['type']} {panel['title']}"): panel
        for uid, board in grafana_dashboards(scope).items()
        for panel in panels_of(board)
        if panel["type"] != "row"
    }
