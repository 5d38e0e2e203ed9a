"""Tables and single numbers, as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from .prometheus import Prometheus
from .values import color, text_of, written

_LONGEST = 60
Row = dict[str, Any]


def table(panel: Mapping[str, Any], prometheus: Prometheus, rows_shown: int) -> str:
    """A panel of rows, merged, ordered and renamed as its transformations say."""
    rows = _merged(panel, prometheus)
    if not rows:
        return '<p class="none">No data</p>'
    organized = panel["transformations"][1]["options"]
    order = organized["indexByName"]
    sources = sorted((name for name in order if name != "Value"), key=order.__getitem__)
    titles = {name: organized["renameByName"][name] for name in sources}
    by_title = {title: name for name, title in titles.items()}
    sort = by_title[panel["options"]["sortBy"][0]["displayName"]]
    rows.sort(key=lambda row: row.get(sort, float("-inf")), reverse=True)
    looks = {
        each["matcher"]["options"]: {
            one["id"]: one["value"] for one in each["properties"]
        }
        for each in panel["fieldConfig"]["overrides"]
    }
    head = "".join(f"<th>{escape(titles[name])}</th>" for name in sources)
    lines = (
        "".join(_cell(row.get(name, ""), looks[titles[name]]) for name in sources)
        for row in rows[:rows_shown]
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{body}</table>"


def _merged(panel: Mapping[str, Any], prometheus: Prometheus) -> list[Row]:
    rows: list[Row] = []
    for target in panel["targets"]:
        for series in prometheus.now(target["expr"]):
            new = {
                **series["metric"],
                f"Value #{target['refId']}": float(series["value"][1]),
            }
            match = next((row for row in rows if _mergeable(row, new)), None)
            if match is None:
                rows.append(new)
            else:
                match.update(new)
    return rows


def _mergeable(row: Row, new: Row) -> bool:
    return all(row[key] == value for key, value in new.items() if key in row)


def _cell(value: str | float, look: Mapping[str, Any]) -> str:
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    text = text_of(whole, look.get("mappings", ()))
    if text is None:
        text = (
            written(value, look.get("unit", ""))
            if isinstance(value, float)
            else str(value)
        )
    shown = escape(text[:_LONGEST])
    kind = look.get("custom.cellOptions", {}).get("type")
    if not isinstance(value, float) or kind is None:
        link = ' class="link"' if "links" in look else ""
        return f"<td{link}>{shown}</td>"
    shade = color(value, look["thresholds"]["steps"])
    if kind == "gauge":
        width = max(0, min(value / look["max"], 1)) * 100
        return f'<td class="gauge"><i><u style="width:{width:.0f}%;background:{shade}"></u></i><b style="color:{shade}">{shown}</b></td>'
    return f'<td style="background:{shade};color:#111">{shown}</td>'


def stat(panel: Mapping[str, Any], prometheus: Prometheus) -> str:
    """One number for each cluster, on its color."""
    return f'<div class="stats">{"".join(_tiles(panel, prometheus))}</div>'


def _tiles(panel: Mapping[str, Any], prometheus: Prometheus) -> Iterator[str]:
    defaults = panel["fieldConfig"]["defaults"]
    steps = defaults["thresholds"]["steps"]
    found = prometheus.now(panel["targets"][0]["expr"])
    for series in found:
        value = float(series["value"][1])
        shade = color(value, steps)
        yield f'<div class="stat" style="background:{shade}">{written(value, defaults["unit"])}</div>'
    if not found:
        yield f'<div class="stat unknown">{escape(defaults["noValue"])}</div>'
