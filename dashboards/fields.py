"""How Grafana shows a value: colours, texts, and what differs from column to column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .model import Column, Link, Look, Step
from .normal import Json

RED, GREY = "red", "#808080"


def thresholds(steps: Iterable[Step]) -> list[dict[str, Json]]:
    """The steps of a threshold; without any, the one that Grafana needs."""
    made = [{"color": step.color, "value": step.value} for step in steps]
    return made or [{"color": "green", "value": None}]


def color_by_steps() -> dict[str, Json]:
    """The colour of a value is that of its threshold."""
    return {"mode": "thresholds"}


def value_maps(texts: Mapping[str, str]) -> list[dict[str, Json]]:
    """What is shown in place of values."""
    if not texts:
        return []
    options = {
        value: {"text": text, "index": index}
        for index, (value, text) in enumerate(texts.items())
    }
    return [{"type": "value", "options": options}]


def unknown(text: str) -> dict[str, Json]:
    """What stands where there is no value: grey, for it is neither good nor bad."""
    result = {"color": GREY, "index": 0, "text": text}
    return {"type": "special", "options": {"match": "null+nan", "result": result}}


def limit_override(letter: str) -> dict[str, Json]:
    """A limit is a dashed red line without an area below it."""
    return {
        "matcher": {"id": "byFrameRefID", "options": letter},
        "properties": [
            _property("custom.lineStyle", {"dash": [8, 6], "fill": "dash"}),
            _property("custom.fillOpacity", 0),
            _property("custom.stacking", {"group": "limit", "mode": "none"}),
            _property("color", {"fixedColor": RED, "mode": "fixed"}),
        ],
    }


def overrides(column: Column) -> dict[str, Json]:
    """What is special about a column."""
    return {
        "matcher": {"id": "byName", "options": column.title},
        "properties": list(_properties(column)),
    }


def _properties(column: Column) -> Iterable[dict[str, Json]]:
    if column.unit:
        yield _property("unit", column.unit)
    if column.width is not None:
        yield _property("custom.width", column.width)
    if column.look is not Look.PLAIN:
        yield _property("custom.cellOptions", _cell(column.look))
    if column.steps:
        yield _property(
            "thresholds", {"mode": "absolute", "steps": thresholds(column.steps)}
        )
    if column.full is not None:
        yield from (_property("min", 0), _property("max", column.full))
    if column.texts:
        yield _property("mappings", value_maps(column.texts))
    if column.links:
        yield _property("links", [_data_link(link) for link in column.links])


def _cell(look: Look) -> dict[str, Json]:
    match look:
        case Look.GAUGE:
            return {"mode": "lcd", "type": "gauge", "valueDisplayMode": "text"}
        case Look.BACKGROUND:
            return {"mode": "basic", "type": "color-background"}
        case _:
            return {"type": look.value}


def _data_link(link: Link) -> dict[str, Json]:
    return {"targetBlank": False, "title": link.title, "url": link.url}


def _property(name: str, value: Json) -> dict[str, Json]:
    return {"id": name, "value": value}
