"""The timeline of a report as an SVG image."""

from __future__ import annotations

from textwrap import wrap
from xml.etree.ElementTree import tostring

from quotascope.pages.markup import element
from quotascope.pages.style import CHARTS
from quotascope.pages.words import shown

from .application import Application
from .report import headline, period
from .timeline import drawn, legend, timeline

_TOP = 78
"""Height of the space above the timeline, if the headline has one line."""
_KEY = 200
"""Width of an entry of the legend."""
_LINE = 150
"""Number of characters for which a line of an image has room."""
_LINE_HEIGHT = 18
"""Height of a line of the headline, and of a row of the legend."""


def image(application: Application) -> str:
    """Return the text of an SVG file: the timeline of the page, with its title and legend."""
    lanes, _ = timeline(application)
    chart = drawn(application, lanes)
    _, _, width, height = map(float, chart.get("viewBox", "").split())
    keys = list(legend(application))
    per_row = int(width) // _KEY
    lines = wrap(headline(application), _LINE, break_on_hyphens=False)
    top = _TOP + _LINE_HEIGHT * (len(lines) - 1)
    below = top + height + 10
    rows_of_keys = 1 + (len(keys) - 1) // per_row
    bottom = below + _LINE_HEIGHT * rows_of_keys
    svg = element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {bottom:g}", width=width, height=bottom
    )
    svg.append(element("style", f"{CHARTS}:root {{ background: var(--paper); font-family: sans-serif; }}"))
    svg.append(element("text", shown(application.app) or "A Spark job", x=10, y=24))
    svg.append(element("text", period(application), class_="tick", x=10, y=44))
    svg.extend(element("text", line, x=10, y=64 + _LINE_HEIGHT * number) for number, line in enumerate(lines))
    for place, value in (("y", top), ("width", width), ("height", height)):
        chart.set(place, f"{value:g}")
    svg.append(chart)
    for number, (name, color) in enumerate(keys):
        row, column = divmod(number, per_row)
        x, y = 10 + column * _KEY, below + row * _LINE_HEIGHT
        svg.append(element("rect", x=x, y=y, width=22, height=10, fill=color))
        svg.append(element("text", name, x=x + 28, y=y + 10))
    return tostring(svg, encoding="unicode") + "\n"
