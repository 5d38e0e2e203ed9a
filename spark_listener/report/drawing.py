"""The timeline as a drawing within a page (SVG)."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from quotascope.pages.markup import element
from quotascope.pages.words import seconds

from .colours import THROTTLED
from .timeline import Lane, Span, Timeline, ticks

_LEFT, _WIDTH, _RIGHT = 250, 900, 30
_TOP = 26
_ROW, _GAP = 14, 8
_THINNEST = 2.0


def drawing(shown: Timeline) -> Element:
    """Lanes below an axis of seconds since the application began; what each bar means is told where the mouse rests."""
    height = _TOP + sum(map(_height, shown.lanes)) + _GAP
    svg = element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_LEFT + _WIDTH + _RIGHT} {height}",
        role="img",
        aria_label="Timeline",
    )
    svg.extend(_axis(shown, height))
    top = _TOP + _GAP
    for lane in shown.lanes:
        svg.extend(_lane(lane, top, _WIDTH / shown.seconds))
        top += _height(lane)
    return svg


def _height(lane: Lane) -> int:
    return (1 + len(lane.failed)) * _ROW + _GAP


def _axis(shown: Timeline, height: int) -> Iterator[Element]:
    for time in ticks(shown.seconds):
        x = _LEFT + time * _WIDTH / shown.seconds
        yield element("line", class_="tick", x1=x, x2=x, y1=_TOP, y2=height)
        label = f"+{seconds(time)}" if time else "0"
        yield element("text", label, class_="tick", x=x, y=_TOP - 8)


def _lane(lane: Lane, top: int, scale: float) -> Iterator[Element]:
    yield element("text", lane.label, class_="lane", x=_LEFT - 10, y=top + _ROW - 3)
    for row, spans in enumerate((lane.work, *lane.failed)):
        for span in spans:
            yield _bar(span, top + row * _ROW, scale)


def _bar(span: Span, top: int, scale: float) -> Element:
    x = _LEFT + span.began * scale
    width = max(_THINNEST, (span.ended - span.began) * scale)
    bar = element(
        "rect", x=x, y=top, width=width, height=_ROW - 2, fill=span.colour, rx=1
    )
    made = element("g", element("title", span.title), bar)
    if span.throttled:
        made.append(_waited(span, x, top, scale))
    return made


def _waited(span: Span, x: float, top: int, scale: float) -> Element:
    """For how long the attempt was told to wait. Its note does not say when."""
    width = max(_THINNEST, span.throttled * scale)
    return element("rect", x=x, y=top + _ROW - 7, width=width, height=5, fill=THROTTLED)
