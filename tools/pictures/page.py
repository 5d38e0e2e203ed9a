"""A dashboard as one HTML page: panels at the places of their grid."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from .graphs import graph
from .prometheus import Prometheus
from .tables import stat, table

WIDTH = 1600
_UNIT, _GAP, _TITLE, _HEAD = 38, 8, 28, 46
_TABLE_ROW = 27
_STYLE = """
* { box-sizing: border-box; margin: 0 }
body { background: #111217; color: #ccccdc; font: 13px Inter, Helvetica, Arial, sans-serif; position: relative }
h1 { font-size: 18px; padding: 12px } h1 small { color: #8e8e9c; font-weight: normal; margin-left: 12px }
.row { position: absolute; left: 12px; font-weight: 600; padding-top: 10px }
.panel { position: absolute; background: #181b1f; border: 1px solid #2c2f36; border-radius: 3px; overflow: hidden; padding: 0 8px }
.panel h2 { font-size: 13px; font-weight: 600; height: 28px; line-height: 28px; white-space: nowrap }
.none { color: #8e8e9c; text-align: center; padding-top: 30px }
.stats { display: flex; flex-direction: column; gap: 4px; height: calc(100% - 36px) }
.stat { flex: 1; display: flex; align-items: center; justify-content: center; border-radius: 3px; color: #111; font-size: 34px; font-weight: 600 } .unknown { background: #808080; font-size: 22px }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; border-bottom: 1px solid #2c2f36; height: 27px; padding: 0 6px; white-space: nowrap; max-width: 260px; overflow: hidden; text-overflow: ellipsis }
th { color: #6e9fff; font-weight: 600 } .link { color: #6e9fff }
.gauge { min-width: 150px } .gauge i { float: left; width: calc(100% - 66px); height: 14px; margin-top: 1px; background: #2c2f36 } .gauge u { display: block; height: 14px } .gauge b { float: right }
text { fill: #9fa0ab; font-size: 11px } .grid { stroke: #2c2f36 }
.legend { height: 17px; font-size: 12px; white-space: nowrap } .legend b { float: right; font-weight: normal }
"""


def page(dashboard: Mapping[str, Any], prometheus: Prometheus) -> str:
    """The whole page."""
    panels = "".join(_panel(each, prometheus) for each in dashboard["panels"])
    chosen = " ".join(
        f"{each['label']}: {prometheus.variables[each['name']]}"
        for each in dashboard["templating"]["list"]
        if each["name"] in prometheus.variables
    )
    subtitle = f"{chosen} last {prometheus.minutes} minutes; drawn without Grafana"
    title = f"{escape(dashboard['title'])}<small>{escape(subtitle)}</small>"
    return f'<!doctype html><meta charset="utf-8"><style>{_STYLE}</style><h1>{title}</h1>{panels}\n'


def height_of(dashboard: Mapping[str, Any]) -> int:
    """In pixels."""
    places = (each["gridPos"] for each in dashboard["panels"])
    lowest = max(int(each["y"]) + int(each["h"]) for each in places)
    return _HEAD + _UNIT * lowest + _GAP


def _panel(panel: Mapping[str, Any], prometheus: Prometheus) -> str:
    at = panel["gridPos"]
    column = (WIDTH - _GAP) / 24
    left, top = _GAP + at["x"] * column, _HEAD + at["y"] * _UNIT
    if panel["type"] == "row":
        sign = "▸" if panel["collapsed"] else "▾"
        return f'<div class="row" style="top:{top:.0f}px">{sign} {escape(panel["title"])}</div>'
    width, height = at["w"] * column - _GAP, at["h"] * _UNIT - _GAP
    inner = _inner(panel, prometheus, (int(width) - 18, int(height) - _TITLE - 4))
    style = (
        f"left:{left:.0f}px;top:{top:.0f}px;width:{width:.0f}px;height:{height:.0f}px"
    )
    return f'<div class="panel" style="{style}"><h2>{escape(panel["title"])}</h2>{inner}</div>'


def _inner(
    panel: Mapping[str, Any], prometheus: Prometheus, size: tuple[int, int]
) -> str:
    match panel["type"]:
        case "timeseries":
            return graph(panel, prometheus, size)
        case "table":
            return table(panel, prometheus, size[1] // _TABLE_ROW - 1)
        case _:
            return stat(panel, prometheus)
