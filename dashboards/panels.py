"""
Panels and dashboards as Grafana's JSON: the only file that knows grafanalib.

grafanalib makes what is inside a panel. Its rows, queries, variables and dashboards are mostly keys of Grafana 4 to 8,
so those are written here as Grafana 12 and 13 save them, and so are the defaults that Grafana's linter rejects.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from string import ascii_uppercase
from typing import Any, Final, NamedTuple

from grafanalib import core

from quotascope.alerts import Dashboard
from quotascope.metrics.catalog import LIMIT_CHANGES

from .columns import BoardColumn
from .expressions import spelled_entity
from .links import Link
from .promql import above, call, increase
from .scope import RATE_INTERVAL, Scope
from .steps import NO_STEPS, Steps
from .variables import DATASOURCE

SCHEMA_VERSION: Final = 42
"""Version of the dashboards of Grafana 12 and 13."""
TAG: Final = "quotascope"
_WIDTH: Final = 24
"""Number of columns of Grafana's grid."""
_GRAPHS_IN_A_LINE: Final = 3
_IN_A_LINE: Final = {"stat": 4}
"""Number of panels with room for their titles, and for the legends of graphs, in a window of 1,000 pixels."""
_HEIGHTS: Final = {"stat": 5, "timeseries": 8, "table": 13}
"""Heights in steps of 38 pixels; a table has room for ten rows, a stat for readable texts of five clusters."""
_LISTING: Final = 9
"""Height of a graph with a legend at its right, which has room for ten entities."""
_SHARED_CROSSHAIR: Final = 1
_GRAY: Final = "#808080"
_NO_WORD_BELOW_TIMES: Final = {
    "matcher": {"id": "byType", "options": "time"},
    "properties": [{"id": "custom.axisLabel", "value": ""}],
}
"""Override for the axis of times, which would have the word of the other axis."""
_SAVED_KEYS: Final = (
    *("datasource", "description", "fieldConfig", "links", "options"),
    *("targets", "title", "transformations", "type"),
)
"""Keys of a panel that Grafana saves; grafanalib adds twelve keys of older versions."""

ENTITY: Final = "{{entity}}"
"""The user and client-id in a legend, as `spelled_entity` spells them."""

Panel = dict[str, Any]
"""JSON of a panel without its place."""


class Line(NamedTuple):
    """The series of one expression in a graph."""

    expr: str
    legend: str
    """Name of a series within its cluster, with labels as ``{{label}}``."""
    is_limit: bool = False
    """True for a limit, which is drawn as a dashed line."""


def limit(expr: str, legend: str = "limit") -> Line:
    """Return the line of a limit, with which usage is compared."""
    return Line(expr, legend, is_limit=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: Iterable[tuple[int, Panel]]
    """Widths and panels; panels that do not fit beside each other begin another line."""
    collapsed: bool = False
    height: int | None = None
    """Height of its panels in Grafana's steps; None for that of their kind."""


def side_by_side(*panels: Panel) -> tuple[tuple[int, Panel], ...]:
    """Return panels of a kind with equal widths, in as many lines as `_IN_A_LINE` needs."""
    lines = ceil(len(panels) / _IN_A_LINE.get(panels[0]["type"], _GRAPHS_IN_A_LINE))
    width = _WIDTH // ceil(len(panels) / lines)
    return tuple((width, panel) for panel in panels)


def below_each_other(*panels: Panel) -> tuple[tuple[int, Panel], ...]:
    """Return panels over the whole width: graphs with legends of entities, which stand at their right."""
    return tuple((_WIDTH, panel) for panel in panels)


def graph(  # noqa: PLR0913  # a panel has as many properties
    scope: Scope,
    title: str,
    description: str,
    unit: str,
    *lines: Line,
    steps: Steps = NO_STEPS,
    axis: str = "",
    stacked: bool = False,
    links: Iterable[Link] = (),
) -> Panel:
    """
    Return a graph of lines over time, from zero, with legends that begin with the cluster.

    The legend of entities, which may be many, is a table, and their lines have no areas that would cover each other.

    Args:
        scope: Of the dashboard.
        title: Of the panel.
        description: Text behind the panel's mark.
        unit: One of Grafana's.
        lines: Queries with their legends.
        steps: Thresholds that are drawn.
        axis: Word beside the axis: what is counted, where the unit is ``short``.
        stacked: Whether lines add up.
        links: Of the panel.

    """
    if (unit == "short") != bool(axis):
        raise ValueError(f"{title}: an axis of plain numbers, and no other, needs a word for what they count")
    by_name = any(ENTITY in line.legend for line in lines)
    lettered = zip(ascii_uppercase, lines, strict=False)
    return _panel(
        core.TimeSeries(
            **_common(title, description, links),
            targets=[
                {
                    **_target(letter, spelled_entity(line.expr) if ENTITY in line.legend else line.expr),
                    "legendFormat": f"{{{{{scope.cluster}}}}} {line.legend}",
                }
                for letter, line in zip(ascii_uppercase, lines, strict=False)
            ],
            unit=unit,
            axisLabel=axis,
            fillOpacity=40 if stacked else 0 if by_name else 8,
            stacking={"group": "A", "mode": "normal" if stacked else "none"},
            showPoints="never",
            axisSoftMin=0,
            legendDisplayMode="table" if by_name else "list",
            legendPlacement="right" if by_name else "bottom",
            legendCalcs=["lastNotNull", "max"] if by_name else [],
            tooltipMode="multi",
            tooltipSort="desc",
            thresholds=steps,
            thresholdsStyleMode="off" if steps is NO_STEPS else "dashed",
            overrides=[
                *([_NO_WORD_BELOW_TIMES] if axis else []),
                *(_as_limit(letter) for letter, line in lettered if line.is_limit),
            ],
            extraJson={"options": {"legend": {"showLegend": True}}},
        )
    )


def _as_limit(letter: str) -> dict[str, Any]:
    """Return the style of a limit: a dashed red line without an area below it."""
    style = {
        "custom.lineStyle": {"dash": [8, 6], "fill": "dash"},
        "custom.fillOpacity": 0,
        "custom.stacking": {"group": "limit", "mode": "none"},
        "color": {"fixedColor": "red", "mode": "fixed"},
    }
    return {
        "matcher": {"id": "byFrameRefID", "options": letter},
        "properties": [{"id": key, "value": value} for key, value in style.items()],
    }


def stat(  # noqa: PLR0913  # a panel has as many properties
    scope: Scope,
    title: str,
    description: str,
    unit: str,
    expr: str,
    *links: Link,
    steps: Steps,
    nothing: str = "no data",
) -> Panel:
    """Return a panel of one current number for each cluster; without a number it has ``nothing`` on gray."""
    legend = f"{{{{{scope.cluster}}}}}"
    absent = {"color": _GRAY, "index": 0, "text": nothing}
    options = {"match": "null+nan", "result": absent}
    return _panel(
        core.Stat(
            **_common(title, description, links),
            targets=[{**_target("A", expr, instant=True), "legendFormat": legend}],
            format=unit,
            color={"mode": "thresholds"},
            colorMode="background",
            graphMode="none",
            reduceCalc="lastNotNull",
            noValue=nothing,
            mappings=[{"type": "special", "options": options}],
            thresholds=steps,
            extraJson={
                "options": {
                    "percentChangeColorMode": "standard",
                    "showPercentChange": False,
                    "wideLayout": True,
                }
            },
        )
    )


def table(
    title: str, description: str, exprs: Iterable[str], *columns: BoardColumn, sort: str, links: Iterable[Link] = ()
) -> Panel:
    """
    Return a table of rows merged from instant queries: series with equal labels are one row.

    It has only the declared columns, in their order. ``sort`` is the title of a column: its highest values come first.
    Viewers scroll to rows beyond the height.
    """
    targets = [
        {
            **_target(letter, expr, instant=True),
            "legendFormat": "",
            "format": "table",
        }
        for letter, expr in zip(ascii_uppercase, exprs, strict=False)
    ]
    indexes = {source: index for index, column in enumerate(columns) for source in column.sources()}
    organized = {
        "excludeByName": {},
        "includeByName": dict.fromkeys(indexes, True),
        "indexByName": indexes,
        "renameByName": {source: columns[index].title for source, index in indexes.items()},
    }
    return _panel(
        core.Table(
            **_common(title, description, links),
            targets=targets,
            transformations=[
                {"id": "merge", "options": {}},
                {"id": "organize", "options": organized},
            ],
            overrides=[column.override() for column in columns],
            filterable=True,
            thresholds=NO_STEPS,
            extraJson={
                "options": {
                    "cellHeight": "sm",
                    "enablePagination": False,
                    "frameIndex": 0,
                    "sortBy": [{"desc": True, "displayName": sort}],
                },
                "fieldConfig": {
                    "defaults": {
                        "color": {"mode": "thresholds"},
                        "custom": {
                            "cellOptions": {"type": "auto"},
                            "displayMode": None,  # of Grafana 7
                            "inspect": False,
                        },
                        "mappings": [],
                    }
                },
            },
        )
    )


def _common(title: str, description: str, links: Iterable[Link]) -> dict[str, Any]:
    """Return the properties of all panels; links open in another tab."""
    common = {
        "asDropdown": False,
        "icon": "external link",
        "includeVars": False,
        "keepTime": False,
        "tags": [],
        "targetBlank": True,
        "tooltip": "",
        "type": "link",
    }
    return {
        "title": title,
        "description": description,
        "dataSource": DATASOURCE,
        "links": [{**common, "title": link.title, "url": link.url} for link in links],
    }


def _target(letter: str, expr: str, *, instant: bool = False) -> dict[str, Any]:
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": expr,
        "format": "time_series",
        "instant": instant,
        "range": not instant,
        "refId": letter,
    }


def _panel(built: Any) -> Panel:  # noqa: ANN401  # grafanalib has no types
    panel = built.to_json_data()
    defaults = panel["fieldConfig"]["defaults"]
    defaults["custom"] = _without_nulls(defaults["custom"])
    panel["fieldConfig"]["defaults"] = _without_nulls(defaults)
    return {key: panel[key] for key in _SAVED_KEYS}


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def dashboard(  # noqa: PLR0913  # a dashboard has as many properties
    scope: Scope,
    which: Dashboard,
    *,
    title: str,
    description: str,
    variables: Iterable[dict[str, Any]],
    rows: Iterable[Row],
    marks: Iterable[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return a dashboard; its graphs mark changes of limits and have further marks (`episodes`)."""
    return {
        "uid": which.uid,
        "title": title,
        "description": description,
        "tags": ["kafka", TAG],
        "editable": False,
        "graphTooltip": _SHARED_CROSSHAIR,
        "links": [
            {
                "asDropdown": True,
                "icon": "external link",
                "includeVars": True,
                "keepTime": True,
                "tags": [TAG],
                "targetBlank": False,
                "title": "Quotas",
                "tooltip": "",
                "type": "dashboards",
                "url": "",
            }
        ],
        "annotations": {"list": [_limit_changes(scope), *marks]},
        "templating": {"list": list(variables)},
        "panels": _placed(rows),
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {
            "hidden": False,
            "refresh_intervals": ["10s", "30s", "1m", "5m", "15m"],
        },
        "timezone": "browser",
        "version": 0,
    }


def _limit_changes(scope: Scope) -> dict[str, Any]:
    """Return marks of the times at which a configured limit was set, changed or removed."""
    changes = increase(LIMIT_CHANGES, RATE_INTERVAL, scope.chosen, extra=scope.cluster)
    changed = above(scope.by("max", changes, "quota_key"), 0)
    return _marks(scope, "Limits changed", "purple", "60s", changed, "quota_key")


def episodes(scope: Scope, throttled: str, *labels: str) -> dict[str, Any]:
    """
    Return marks of throttle episodes, from their beginning to their end, for each series above 0 of an expression.

    The expression must have few series. Steps of 30 s miss no throttle, as brokers report each for at least so long.
    """
    return _marks(scope, "Throttled", "red", "30s", throttled, *labels)


def _marks(scope: Scope, name: str, color: str, step: str, expr: str, *labels: str) -> dict[str, Any]:
    """Return marks whose text is one joined label: for a missing label, Grafana would write the label's name."""
    joined = (f'"{label}"' for label in ("change", " ", scope.cluster, *labels))
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": call("label_join", expr, *joined),
        "iconColor": color,
        "name": name,
        "step": step,
        "textFormat": "{{change}}",
        "titleFormat": name,
    }


def _placed(rows: Iterable[Row]) -> list[Panel]:
    """Return panels with their places, numbered in reading order; panels of a collapsed row are part of it."""
    placed: list[Panel] = []
    numbers = itertools.count(1)
    top = 0
    for row in rows:
        folded: list[Panel] = []
        heading = {
            "collapsed": row.collapsed,
            "gridPos": {"h": 1, "w": _WIDTH, "x": 0, "y": top},
            "id": next(numbers),
            "panels": folded,
            "title": row.title,
            "type": "row",
        }
        placed.append(heading)
        top += 1
        inside = folded if row.collapsed else placed
        below = top
        for line in _lines(row.panels):
            height = row.height or max(_height(panel) for _, panel in line)
            x = 0
            for width, panel in line:
                place = {"h": height, "w": width, "x": x, "y": below}
                inside.append({**panel, "gridPos": place, "id": next(numbers)})
                x += width
            below += height
        top = top if row.collapsed else below
    return placed


def _height(panel: Panel) -> int:
    legend = panel["options"].get("legend", {})
    return _LISTING if legend.get("placement") == "right" else _HEIGHTS[panel["type"]]


def _lines(panels: Iterable[tuple[int, Panel]]) -> Iterator[list[tuple[int, Panel]]]:
    """Yield the panels that fit beside each other."""
    line: list[tuple[int, Panel]] = []
    for width, panel in panels:
        if line and sum(taken for taken, _ in line) + width > _WIDTH:
            yield line
            line = []
        line.append((width, panel))
    yield line
