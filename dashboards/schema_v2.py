"""
Dashboards in Grafana's schema v2 (`dashboard.grafana.app/v2`), from the classic model.

Rows that the classic model folds because they are often empty are open here: each of their panels is there only while
its queries have data. Panels whose emptiness is an answer, such as the list of throttled clients, always are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

API_VERSION: Final = "dashboard.grafana.app/v2"
"""The version of dashboards as resources that Grafana 13 stores and takes from files."""
_STEP: Final = 38
"""Pixels of a step of the classic grid, with the gap below a panel."""
_GAP: Final = 8
_NARROWEST: Final = 300
"""Pixels of a column, below which Grafana puts panels below each other."""
_REFRESH: Final = {1: "onDashboardLoad", 2: "onTimeRangeChanged"}
_SORT: Final = {0: "disabled", 1: "alphabeticalAsc"}
_HIDE: Final = {0: "dontHide", 2: "hideVariable"}
_CURSOR: Final = {1: "Crosshair"}
_WITH_DATA: Final = {
    "kind": "ConditionalRenderingGroup",
    "spec": {
        "visibility": "show",
        "condition": "and",
        "items": [{"kind": "ConditionalRenderingData", "spec": {"value": True}}],
    },
}
"""A rule that shows a panel while its queries have data."""

Model = dict[str, Any]
"""JSON of a dashboard, or of a part of one."""


def resource(classic: Mapping[str, Any]) -> Model:
    """
    Return a dashboard of the classic model as a resource of schema v2.

    Args:
        classic: from `quotascope.dashboards.files.grafana_dashboards`.

    """
    rows = list(_rows(classic["panels"]))
    panels = [panel for _, inside in rows for panel in inside]
    time = classic["time"]
    return {
        "apiVersion": API_VERSION,
        "kind": "Dashboard",
        "metadata": {"name": classic["uid"]},
        "spec": {
            **{key: classic[key] for key in ("title", "description", "tags", "editable", "links")},
            "cursorSync": _CURSOR[classic["graphTooltip"]],
            "preload": False,
            "annotations": [_annotation(mark) for mark in classic["annotations"]["list"]],
            "variables": [_variable(variable) for variable in classic["templating"]["list"]],
            "elements": {_name(panel): _element(panel) for panel in panels},
            "layout": _layout([_row(row, inside) for row, inside in rows]),
            "timeSettings": {
                "timezone": classic["timezone"],
                "from": time["from"],
                "to": time["to"],
                "autoRefresh": classic["refresh"],
                "autoRefreshIntervals": classic["timepicker"]["refresh_intervals"],
                "hideTimepicker": classic["timepicker"]["hidden"],
                "fiscalYearStartMonth": 0,
            },
        },
    }


def _rows(panels: Sequence[Model]) -> Iterator[tuple[Model, list[Model]]]:
    """Yield each row with its panels, which are part of it or follow it."""
    starts = [place for place, panel in enumerate(panels) if panel["type"] == "row"]
    for start, end in zip(starts, [*starts[1:], len(panels)], strict=True):
        yield panels[start], [*panels[start]["panels"], *panels[start + 1 : end]]


def _row(row: Model, panels: Sequence[Model]) -> Model:
    lines: dict[int, list[Model]] = {}
    for panel in panels:
        lines.setdefault(panel["gridPos"]["y"], []).append(panel)
    grids = [_grid(line, rule=_WITH_DATA if row["collapsed"] else None) for line in lines.values()]
    inner = grids[0] if len(grids) == 1 else _layout([_part({"hideHeader": True, "layout": grid}) for grid in grids])
    return _part({"title": row["title"], "collapse": False, "layout": inner})


def _part(spec: Model) -> Model:
    return {"kind": "RowsLayoutRow", "spec": spec}


def _layout(rows: list[Model]) -> Model:
    return {"kind": "RowsLayout", "spec": {"rows": rows}}


def _grid(line: Sequence[Model], rule: Model | None) -> Model:
    """Return the layout of panels beside each other, each with an equal part of the width."""
    return {
        "kind": "AutoGridLayout",
        "spec": {
            "maxColumnCount": len(line),
            "columnWidthMode": "custom",
            "columnWidth": _NARROWEST,
            "rowHeightMode": "custom",
            "rowHeight": max(panel["gridPos"]["h"] for panel in line) * _STEP - _GAP,
            "items": [_item(panel, rule) for panel in line],
        },
    }


def _item(panel: Model, rule: Model | None) -> Model:
    spec: Model = {"element": {"kind": "ElementReference", "name": _name(panel)}}
    if rule is not None:
        spec["conditionalRendering"] = rule
    return {"kind": "AutoGridLayoutItem", "spec": spec}


def _name(panel: Model) -> str:
    return f"panel-{panel['id']}"


def _element(panel: Model) -> Model:
    links = [{key: link[key] for key in ("title", "url", "targetBlank")} for link in panel["links"]]
    return {
        "kind": "Panel",
        "spec": {
            "id": panel["id"],
            "title": panel["title"],
            "description": panel["description"],
            "links": links,
            "data": {
                "kind": "QueryGroup",
                "spec": {
                    "queries": [_query(target) for target in panel["targets"]],
                    "transformations": [
                        {"kind": "Transformation", "group": step["id"], "spec": {"options": step["options"]}}
                        for step in panel.get("transformations", ())
                    ],
                    "queryOptions": {},
                },
            },
            "vizConfig": {
                "kind": "VizConfig",
                "group": panel["type"],
                "version": "",
                "spec": {"options": panel["options"], "fieldConfig": panel["fieldConfig"]},
            },
        },
    }


def _query(target: Model) -> Model:
    spec = {key: value for key, value in target.items() if key not in {"refId", "datasource"}}
    query = _data_query(spec, target["datasource"])
    return {"kind": "PanelQuery", "spec": {"query": query, "refId": target["refId"], "hidden": False}}


def _data_query(spec: Model, source: Mapping[str, str]) -> Model:
    return {
        "kind": "DataQuery",
        "group": source["type"],
        "version": "v0",
        "datasource": {"name": source["uid"]},
        "spec": spec,
    }


def _annotation(mark: Model) -> Model:
    of_query = ("expr", "step", "textFormat", "titleFormat")
    return {
        "kind": "AnnotationQuery",
        "spec": {
            **{key: mark[key] for key in ("enable", "iconColor", "name")},
            "hide": False,
            "query": _data_query({key: mark[key] for key in of_query}, mark["datasource"]),
            "legacyOptions": {key: mark[key] for key in of_query},
        },
    }


def _variable(variable: Model) -> Model:
    common = {
        "name": variable["name"],
        "label": variable["label"],
        "hide": _HIDE[variable["hide"]],
        "skipUrlSync": False,
    }
    if variable["type"] == "textbox":
        spec = {**common, "current": variable["current"], "query": variable["query"]}
        return {"kind": "TextVariable", "spec": spec}
    choices = {**common, "options": [], "refresh": _REFRESH[variable["refresh"]], "allowCustomValue": True}
    if variable["type"] == "datasource":
        chosen = {"text": "", "value": ""}
        spec = {**choices, "pluginId": variable["query"], "regex": "", "current": chosen, "multi": False}
        return {"kind": "DatasourceVariable", "spec": {**spec, "includeAll": False}}
    optional = {key: variable[key] for key in ("allValue",) if key in variable}
    query = _data_query({"query": variable["query"], "refId": variable["name"]}, variable["datasource"])
    return {
        "kind": "QueryVariable",
        "spec": {
            **choices,
            **optional,
            **{key: variable[key] for key in ("current", "multi", "includeAll")},
            "definition": variable["query"],
            "query": query,
            "regex": variable.get("regex", ""),
            "sort": _SORT[variable["sort"]],
        },
    }
