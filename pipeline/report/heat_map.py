"""A map of the hours of a week: the darker, the more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.markup import element

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS: Final = 24
_LEFT, _TOP, _WIDE, _HIGH = 44, 20, 33, 22
_FAINTEST: Final = 0.08


def heat_map(
    values: Sequence[float], told: Callable[[float], str], title: str
) -> Element:
    """
    Draw 168 values, Monday 00h first; NaN is an hour that was not seen.

    Args:
        values: what each hour of the week has.
        told: a value as it is read where the mouse rests.
        title: what the map is about.

    """
    size = f"0 0 {_LEFT + HOURS * _WIDE + 4} {_TOP + len(DAYS) * _HIGH + 4}"
    svg = element("svg", class_="heat", viewBox=size, role="img")
    svg.append(element("title", title))
    for hour in range(0, HOURS, 3):
        x = _LEFT + hour * _WIDE + _WIDE / 2
        svg.append(element("text", f"{hour:02}h", class_="tick middle", x=x, y=13))
    most = max((value for value in values if math.isfinite(value)), default=0.0) or 1.0
    for day, name in enumerate(DAYS):
        y = _TOP + day * _HIGH
        svg.append(element("text", name, class_="tick end", x=_LEFT - 8, y=y + 15))
        for hour in range(HOURS):
            value = values[day * HOURS + hour]
            svg.append(_cell(value, most, f"{name} {hour:02}h", told, hour, y))
    return svg


def _cell(
    value: float,
    most: float,
    when: str,
    told: Callable[[float], str],
    hour: int,
    y: int,
) -> Element:
    seen = not math.isnan(value)
    part = min(1.0, max(0.0, value / most)) if seen else 0.0
    cell = element(
        "rect",
        class_="cell" if seen else "blank",
        x=_LEFT + hour * _WIDE,
        y=y,
        width=_WIDE,
        height=_HIGH,
    )
    if seen:
        cell.set("fill-opacity", f"{_FAINTEST + (1 - _FAINTEST) * part:.3f}")
    about = f"{when}: {told(value) if seen else 'not seen'}"
    return element("g", element("title", about), cell)
