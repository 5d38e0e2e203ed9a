"""Numbers as Grafana writes them, and the colors of thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COLORS = {
    "green": "#73BF69",
    "yellow": "#FADE2A",
    "orange": "#FF9830",
    "red": "#F2495C",
    "dark-red": "#C4162A",
    "transparent": "transparent",
    "blue": "#5794F2",
    "purple": "#B877D9",
}
PALETTE = (
    *("#7EB26D", "#EAB839", "#6ED0E0", "#EF843C", "#E24D42", "#1F78C1"),
    *("#BA43A9", "#705DA0", "#508642", "#CCA300", "#447EBC", "#C15C17"),
)
_THOUSANDS = ("", "k", "M", "G", "T")
_SUFFIX = {"Bps": "B/s", "cps": " c/s", "s": " s", "short": "", "": ""}
_MINUTE, _HOUR = 60, 3600


def written(value: float, unit: str) -> str:
    """A number with its unit."""
    if math.isnan(value):
        return "NaN"
    if unit == "percentunit":
        return f"{value:.3g} %" if not value else f"{100 * value:.3g} %"
    if unit == "s":
        return _duration(value)
    power = _power(value) if unit in {"Bps", "short"} else 0
    return f"{value / 1000**power:.3g} {_THOUSANDS[power]}{_SUFFIX[unit]}".strip()


def _power(value: float) -> int:
    if abs(value) < 1000:  # noqa: PLR2004  # no prefix
        return 0
    return min(int(math.log10(abs(value)) / 3), len(_THOUSANDS) - 1)


def _duration(seconds: float) -> str:
    if 0 < abs(seconds) < 1:
        return f"{1000 * seconds:.3g} ms"
    if abs(seconds) >= _HOUR:
        return f"{seconds / _HOUR:.3g} hours"
    if abs(seconds) >= _MINUTE:
        return f"{seconds / _MINUTE:.3g} mins"
    return f"{seconds:.3g} s"


def color(value: float, steps: Sequence[Mapping[str, Any]]) -> str:
    """The color of the highest step that the value reaches."""
    reached = [
        step["color"]
        for step in steps
        if step["value"] is None or value >= step["value"]
    ]
    return COLORS[reached[-1]] if reached else COLORS["green"]


def text_of(value: object, mappings: Iterable[Mapping[str, Any]]) -> str | None:
    """What is shown in place of a value, if anything."""
    for mapping in mappings:
        if mapping["type"] == "value" and str(value) in mapping["options"]:
            return str(mapping["options"][str(value)]["text"])
    return None
