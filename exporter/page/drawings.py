"""Small drawings within a row: how full a limit is, and how full it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.markup import element

from ..diagnosis.selection import NEAR
from ..diagnosis.trails import STEP_SECONDS
from ..diagnosis.units import percent

_BAR_WIDTH: Final = 100
_TRAIL_HEIGHT: Final = 16
_STEP: Final = 4
_FULLEST: Final = 1.25
"""Where a trail's bars end; a line is drawn at the limit itself."""


def bar(used: float | None, colour: str) -> Element:
    """How much of the limit is used, as a bar; the number beside it is for those who cannot see it."""
    width = _BAR_WIDTH * min(1.0, max(0.0, used or 0.0))
    return element(
        "svg",
        element("rect", class_="track", width="100", height="10"),
        element("rect", class_=colour, width=f"{width:.1f}", height="10"),
        class_="bar",
        viewBox=f"0 0 {_BAR_WIDTH} 10",
        aria_hidden="true",
    )


def trail(parts: Sequence[float | None]) -> Element:
    """A bar for each stretch of the last minutes, and a line where the limit is."""
    width = _STEP * len(parts)
    limit = f"{_TRAIL_HEIGHT * (1 - 1 / _FULLEST):.1f}"
    line = element("line", class_="at", x1="0", x2=str(width), y1=limit, y2=limit)
    return element(
        "svg",
        *_bars(parts),
        line,
        class_="trail",
        viewBox=f"0 0 {width} {_TRAIL_HEIGHT}",
        role="img",
        aria_label=_in_words(parts),
    )


def state(used: float | None, *, throttled: bool = False) -> str:
    """The class of a color: ``over``, ``near`` or ``fine``; none when it is not known, or there is no limit."""
    if throttled or (used is not None and used >= 1):
        return "over"
    if used is None:
        return ""
    return "near" if used >= NEAR else "fine"


def _bars(parts: Sequence[float | None]) -> Iterator[Element]:
    for place, part in enumerate(parts):
        if part is None:
            continue
        height = max(1.0, _TRAIL_HEIGHT * min(1.0, part / _FULLEST))
        yield element(
            "rect",
            class_=state(part),
            x=str(_STEP * place),
            y=f"{_TRAIL_HEIGHT - height:.1f}",
            width=str(_STEP - 1),
            height=f"{height:.1f}",
        )


def _in_words(parts: Sequence[float | None]) -> str:
    minutes = len(parts) * STEP_SECONDS / 60
    known = [part for part in parts if part is not None]
    if not known:
        return f"last {minutes:.0f} minutes: unknown"
    least, most = percent(min(known)), percent(max(known))
    return f"last {minutes:.0f} minutes: from {least} to {most}, lastly {percent(known[-1])}"
