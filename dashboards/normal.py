"""One pass over what grafanalib makes: what Grafana 13 does not know goes, what it expects is made so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Json = Any
"""Whatever JSON can hold."""

_LEGACY_DASHBOARD: Final = frozenset(
    {"__inputs", "gnetId", "hideControls", "rows", "sharedCrosshair", "style"}
)
_LEGACY_PANEL: Final = frozenset(
    {
        "cacheTimeout",
        "color",
        "columns",
        "editable",
        "error",
        "fontSize",
        "height",
        "hideTimeOverride",
        "mappings",
        "minSpan",
        "span",
        "transparent",
    }
)
_LEGACY_TARGET: Final = frozenset(
    {"intervalFactor", "metric", "query", "step", "target", "interval", "hide"}
)
_LEGACY_VARIABLE: Final = frozenset(
    {"auto", "auto_count", "auto_min", "tagValuesQuery", "tagsQuery", "useTags"}
)


def normalised(dashboard: Mapping[str, Json]) -> dict[str, Json]:
    """A dashboard as Grafana 13 would save it; needs plain JSON, all ids already given."""
    plain = _without(dashboard, _LEGACY_DASHBOARD)
    plain["panels"] = [_panel(panel) for panel in plain["panels"]]
    plain["templating"] = {
        "list": [_variable(each) for each in plain["templating"]["list"]]
    }
    filled: dict[str, Json] = _filled(plain)
    return filled


def _panel(panel: Mapping[str, Json]) -> dict[str, Json]:
    plain = _without(panel, _LEGACY_PANEL)
    if panel["type"] == "row":
        return _row(plain)
    if panel["type"] == "text":
        plain = _without(plain, {"targets", "datasource", "fieldConfig"})
    if "targets" in plain:
        plain["targets"] = [_without(each, _LEGACY_TARGET) for each in plain["targets"]]
    if "fieldConfig" in plain:
        plain["fieldConfig"]["defaults"].get("custom", {}).pop("displayMode", None)
    return plain


def _row(row: Mapping[str, Json]) -> dict[str, Json]:
    kept = ("collapsed", "gridPos", "id", "title", "type")
    inner = [_panel(panel) for panel in row["panels"]]
    return {**{key: row[key] for key in kept}, "panels": inner}


def _variable(variable: Mapping[str, Json]) -> dict[str, Json]:
    plain = _without(variable, _LEGACY_VARIABLE)
    if plain["type"] != "query":
        plain = _without(plain, {"datasource", "sort", "includeAll", "multi"})
    if plain["type"] == "textbox":
        plain = _without(plain, {"refresh", "regex"})
    if plain["current"].get("value") is None:
        del plain["current"]
    return plain


def _without(
    value: Mapping[str, Json], keys: frozenset[str] | set[str]
) -> dict[str, Json]:
    return {key: each for key, each in value.items() if key not in keys}


def _filled(value: Json) -> Json:
    """Without nulls, but for the lowest threshold, whose value Grafana has as null."""
    if isinstance(value, Mapping):
        return {
            key: _filled(each)
            for key, each in value.items()
            if each is not None or (key == "value" and "color" in value)
        }
    if isinstance(value, list):
        return [_filled(each) for each in value]
    return value
