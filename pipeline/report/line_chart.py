"""Usage over time against limits, as a drawing within a page (SVG)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.metrics import QuotaType
from quotascope.pages.markup import element
from quotascope.pages.words import moment, shown

from .scales import Scale, clock, round_times, round_values
from .style import SERIES
from .usage import Usage
from .words import rate

_LEFT, _RIGHT, _TOP, _BOTTOM = 86, 1130, 12, 250
_HEIGHT: Final = 276
_ROOM: Final = 1.08
_NEAR: Final = 0.01
_OVER: Final = 3.0
"""A limit that is so many times above the peak is left out: it would press the usage flat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A line across the drawing."""

    name: str
    """Of the candidate."""
    value: float
    """In the unit of the quota type."""
    colour: int
    """Its place among the colours of candidates."""


def line_chart(
    kind: QuotaType, usage: Usage, limits: Sequence[Limit], zone: tzinfo = UTC
) -> tuple[Element, Sequence[Limit]]:
    """
    Draw the mean and the peak of each piece of time, and a line for each limit.

    Returns the drawing and the limits that are too far above the peak to be on it.
    """
    peak = max(usage.peak, default=0.0)
    drawn = [limit for limit in limits if limit.value <= _OVER * peak or peak <= 0]
    top = max([peak, *(limit.value for limit in drawn)], default=0.0) * _ROOM or 1.0
    heights = Scale(0.0, top, _BOTTOM, _TOP)
    begin, end = usage.begin_ms, max(usage.end_ms, usage.begin_ms + 1)
    times = Scale(begin, end, _LEFT, _RIGHT)
    svg = element("svg", viewBox=f"0 0 1150 {_HEIGHT}", role="img")
    svg.append(
        element("title", f"Usage from {moment(begin, zone)} to {moment(end, zone)}")
    )
    svg.extend(_values(kind, top, heights))
    svg.extend(_moments(begin, end, times, zone))
    svg.extend(_used(usage, times, heights))
    svg.extend(_line_of(limit, kind, heights) for limit in drawn)
    return svg, [limit for limit in limits if limit not in drawn]


def _line_of(limit: Limit, kind: QuotaType, heights: Scale) -> Element:
    """Draw one limit; what it is called is told where the mouse rests."""
    y = heights(limit.value)
    dashes = "" if limit.colour < SERIES else "6 4"
    line = element(
        "line",
        class_=f"limit s{limit.colour % SERIES}",
        x1=_LEFT,
        x2=_RIGHT,
        y1=y,
        y2=y,
        stroke_dasharray=dashes,
    )
    told = f"{shown(limit.name)}: {rate(kind, limit.value)}"
    return element("g", element("title", told), line)


def _values(kind: QuotaType, top: float, heights: Scale) -> Iterator[Element]:
    for value in round_values(top):
        y = heights(value)
        yield element("line", class_="grid", x1=_LEFT, x2=_RIGHT, y1=y, y2=y)
        yield element("text", rate(kind, value), class_="tick end", x=_LEFT - 8, y=y + 4)  # fmt: skip


def _moments(begin: int, end: int, times: Scale, zone: tzinfo) -> Iterator[Element]:
    for time in round_times(begin, end):
        x = times(time)
        yield element("line", class_="grid", x1=x, x2=x, y1=_BOTTOM, y2=_BOTTOM + 5)
        told = clock(time, end - begin, zone)
        yield element("text", told, class_="tick middle", x=x, y=_BOTTOM + 20)


def _used(usage: Usage, times: Scale, heights: Scale) -> Iterator[Element]:
    places = [times(time) for time in usage.times_ms]
    width = times(usage.begin_ms + usage.piece_ms) - times(usage.begin_ms)
    yield element("path", class_="peak", d=_steps(places, usage.peak, width, heights))
    if usage.mean:
        yield element(
            "path", class_="mean", d=_line(places, usage.mean, width, heights)
        )


def _steps(
    places: Sequence[float], values: Sequence[float], width: float, heights: Scale
) -> str:
    """An area with a flat top for each piece of time."""
    floor = heights(0.0)
    pieces = (
        f"M{x:.1f} {floor:.1f}V{heights(value):.1f}H{min(x + width, _RIGHT):.1f}V{floor:.1f}Z"
        for x, value in zip(places, values, strict=True)
        if value > 0
    )
    return "".join(pieces)


def _line(
    places: Sequence[float], values: Sequence[float], width: float, heights: Scale
) -> str:
    """A line with steps, which ends where a piece of time is missing."""
    drawn, end = [], -1.0
    for x, value in zip(places, values, strict=True):
        move = "L" if abs(x - end) < _NEAR else "M"
        end = x + width
        drawn.append(f"{move}{x:.1f} {heights(value):.1f}H{min(end, _RIGHT):.1f}")
    return "".join(drawn)
