"""Bars with names and figures, the longest as wide as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.markup import element
from quotascope.pages.words import shown

from .style import SERIES

_ROW: Final = 24
_LEFT, _WIDTH = 340, 640


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar."""

    name: str
    value: float
    told: str
    """The value as it is read."""
    colour: int


def bar_chart(bars: Sequence[Bar], title: str) -> Element:
    """Draw them below each other; nothing of a value of 0 or below."""
    most = max((bar.value for bar in bars), default=0.0) or 1.0
    svg = element("svg", viewBox=f"0 0 1150 {len(bars) * _ROW + 4}", role="img")
    svg.append(element("title", title))
    for row, bar in enumerate(bars):
        svg.append(_row(bar, row * _ROW, most))
    return svg


def _row(bar: Bar, top: int, most: float) -> Element:
    width = max(0.0, bar.value / most) * _WIDTH
    return element(
        "g",
        element("title", f"{shown(bar.name, 200)}: {bar.told}"),
        element("text", shown(bar.name, 50), class_="end", x=_LEFT - 10, y=top + 16),
        element(
            "rect",
            class_=f"f{bar.colour % SERIES}",
            x=_LEFT,
            y=top + 4,
            width=width,
            height=_ROW - 8,
            rx=2,
        ),
        element("text", bar.told, x=_LEFT + width + 8, y=top + 16),
    )
