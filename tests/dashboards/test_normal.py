"""What grafanalib makes becomes what Grafana 13 saves."""

from __future__ import annotations

from typing import Any

from tests.dashboards.typescript import panels_of

from quotascope.dashboards.normal import normalised

ROW = {
    "collapsed": True,
    "editable": True,
    "gridPos": {"h": 1, "w": 24, "x": 0, "y": 0},
    "id": 1,
    "panels": [
        {
            "editable": True,
            "fieldConfig": {
                "defaults": {
                    "custom": {"displayMode": "auto"},
                    "max": None,
                    "thresholds": {"steps": [{"color": "green", "value": None}]},
                }
            },
            "id": 2,
            "targets": [{"expr": "up", "intervalFactor": 2, "step": 10}],
            "type": "table",
        }
    ],
    "targets": [],
    "title": "Row",
    "type": "row",
}


def _normalised(**changes: Any) -> dict[str, Any]:
    return normalised({"panels": [ROW], "templating": {"list": []}, **changes})


def test_what_grafana_does_not_know_goes() -> None:
    """Keys of old versions are dropped everywhere, inside of collapsed rows, too."""
    made = _normalised(sharedCrosshair=False, style="dark", title="t")
    row, table = panels_of(made)
    assert set(made) == {"panels", "templating", "title"}
    assert set(row) == {"collapsed", "gridPos", "id", "panels", "title", "type"}
    assert "editable" not in table
    assert table["targets"] == [{"expr": "up"}]


def test_nulls_go_but_for_the_lowest_threshold() -> None:
    """That one is null in Grafana's own files."""
    _, table = panels_of(_normalised(description=None))
    defaults = table["fieldConfig"]["defaults"]
    assert "max" not in defaults
    assert defaults["thresholds"]["steps"] == [{"color": "green", "value": None}]


def test_a_variable_without_choice_has_none() -> None:
    """Grafana then takes the first data source, not one that is called null."""
    variable = {"current": {"value": None}, "name": "v", "type": "datasource"}
    made = _normalised(templating={"list": [variable]})
    assert made["templating"]["list"] == [{"name": "v", "type": "datasource"}]
