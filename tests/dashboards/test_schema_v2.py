"""Dashboards of schema v2 beside the classic ones; `test_grafana_code` compiles them by Grafana's own schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.dashboards.boards import panels_of

from quotascope.dashboards.files import Schema, grafana_dashboards, write
from quotascope.dashboards.schema_v2 import API_VERSION, resource
from quotascope.dashboards.scope import Scope

Json = dict[str, Any]
CLASSIC = grafana_dashboards(Scope())


def _items(layout: Json, title: str = "") -> Iterator[tuple[str, Json, int]]:
    """Yield the title of the row, the item and the number of items beside it, in a viewer's order."""
    if layout["kind"] == "RowsLayout":
        for row in layout["spec"]["rows"]:
            yield from _items(row["spec"]["layout"], row["spec"].get("title", title))
        return
    items = layout["spec"]["items"]
    assert layout["spec"]["maxColumnCount"] == len(items)
    yield from ((title, item["spec"], len(items)) for item in items)


@pytest.mark.parametrize("uid", CLASSIC)
def test_each_panel_is_there_once_and_asks_the_same(uid: str) -> None:
    """Elements have the queries, options, transformations and links of the classic panels, in the same order."""
    spec = resource(CLASSIC[uid])["spec"]
    panels = [panel for panel in panels_of(CLASSIC[uid]) if panel["type"] != "row"]
    order = [item["element"]["name"] for _, item, _ in _items(spec["layout"])]
    assert order == [f"panel-{panel['id']}" for panel in panels]
    assert set(order) == {*spec["elements"]}
    for name, panel in zip(order, panels, strict=True):
        element = spec["elements"][name]["spec"]
        assert (element["id"], element["title"]) == (panel["id"], panel["title"])
        queries = [query["spec"] for query in element["data"]["spec"]["queries"]]
        assert [query["refId"] for query in queries] == [target["refId"] for target in panel["targets"]]
        for query, target in zip(queries, panel["targets"], strict=True):
            assert query["query"]["spec"] == {k: v for k, v in target.items() if k not in {"refId", "datasource"}}
            assert query["query"]["datasource"] == {"name": "${datasource}"}
        assert element["vizConfig"]["group"] == panel["type"]
        assert element["vizConfig"]["spec"] == {key: panel[key] for key in ("options", "fieldConfig")}
        steps = element["data"]["spec"]["transformations"]
        assert [(step["group"], step["spec"]["options"]) for step in steps] == [
            (step["id"], step["options"]) for step in panel.get("transformations", ())
        ]
        assert [link["url"] for link in element["links"]] == [link["url"] for link in panel["links"]]


@pytest.mark.parametrize("uid", CLASSIC)
def test_panels_of_folded_rows_are_there_only_with_data(uid: str) -> None:
    """No other panel is hidden: an empty list of throttled clients is an answer."""
    folded = {row["title"]: row["collapsed"] for row in CLASSIC[uid]["panels"] if row["type"] == "row"}
    for title, item, _ in _items(resource(CLASSIC[uid])["spec"]["layout"]):
        rule = item.get("conditionalRendering")
        assert (rule is not None) is folded[title], title
        if rule is not None:
            (condition,) = rule["spec"]["items"]
            assert (rule["spec"]["visibility"], condition["kind"]) == ("show", "ConditionalRenderingData")
            assert condition["spec"] == {"value": True}


@pytest.mark.parametrize("uid", CLASSIC)
def test_variables_and_marks_are_the_same(uid: str) -> None:
    """Both schemas have the same visible and hidden variables, and the same marks of limits and episodes."""
    spec, classic = resource(CLASSIC[uid])["spec"], CLASSIC[uid]
    variables = classic["templating"]["list"]
    assert [variable["spec"]["name"] for variable in spec["variables"]] == [variable["name"] for variable in variables]
    hidden = [variable["spec"]["name"] for variable in spec["variables"] if variable["spec"]["hide"] != "dontHide"]
    assert hidden == [variable["name"] for variable in variables if variable["hide"]]
    for new, old in zip(spec["variables"], variables, strict=True):
        if old["type"] == "query":
            assert new["spec"]["query"]["spec"]["query"] == old["query"]
            assert new["spec"].get("allValue") == old.get("allValue")
    marks = classic["annotations"]["list"]
    assert [mark["spec"]["query"]["spec"]["expr"] for mark in spec["annotations"]] == [mark["expr"] for mark in marks]


def test_files_of_both_schemas(tmp_path: Path) -> None:
    """The files have the same names, and a Grafana finds them in the same folder."""
    classic, v2 = (write(tmp_path / schema.value, Scope(), schema) for schema in Schema)
    assert [path.name for path in classic] == [path.name for path in v2]
    for path in v2:
        if path.suffix == ".json":
            document = json.loads(path.read_text(encoding="utf-8"))
            assert (document["apiVersion"], document["kind"]) == (API_VERSION, "Dashboard")
            assert document["metadata"] == {"name": path.stem}
