"""
Charts as SVG: usage against limits, bars, hours of the week, and a timeline.

Their colors and lines are those of `STYLE` in `style.py`. Names in them are untrusted; `element` escapes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element

from .markup import element
from .style import SERIES
from .words import moment, seconds, shown

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_STEPS: Final = (
    *(base / parts for parts in (1_000, 100, 10) for base in (1, 2, 5)),
    *(base * unit for unit in (1, _MINUTE) for base in (1, 2, 5, 10, 15, 30)),
    *(base * _HOUR for base in (1, 2, 3, 6, 12)),
    *(base * _DAY for base in (1, 2, 7, 14, 28, 91, 365, 3_650)),
)
"""Seconds between labels of a time axis: divisors of a second, a minute, an hour, a day."""


@dataclass(frozen=True, slots=True)
class LinearScale:
    """A linear mapping from values to positions."""

    low: float
    high: float
    """Value at `end`; above `low`."""
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a value; a value outside of the scale is at the nearer end."""
        inside = min(max(value, self.low), self.high)
        part = (inside - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)


_LEAST: Final = 1e-300
"""Least value with round values below it: powers of ten end there, as doubles do."""


def round_values(high: float, max_steps: int = 6) -> Sequence[float]:
    """
    Return a few round values from 0 to `high`.

    >>> round_values(23.0)
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    if not _LEAST < high < math.inf:
        return [0.0]
    rough = high / max_steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((digit * power for digit in (1, 2, 5) if digit * power >= rough), 10 * power)
    return [step * n for n in range(int(high / step) + 1)]


def round_times(begin_ms: int, end_ms: int, max_steps: int = 8, zone: tzinfo = UTC) -> Sequence[int]:
    """
    Return times from `begin_ms` to `end_ms` that are round by the clocks of a zone.

    They are in ms, at least a second apart, in at most `max_steps` steps.
    """
    step = 1_000 * max(1, round(_step(max(1, end_ms - begin_ms) / 1_000, max_steps)))
    ahead = _ahead_ms(begin_ms, zone)
    local_end = end_ms + max(ahead, _ahead_ms(end_ms, zone))
    local_times = range(-(-(begin_ms + ahead) // step) * step, local_end + 1, step)
    times = {local: local - _ahead_ms(local - ahead, zone) for local in local_times}
    # clocks that go forward skip some local times, which no time has
    return [
        time for local, time in times.items() if begin_ms <= time <= end_ms and time + _ahead_ms(time, zone) == local
    ]


def _ahead_ms(time_ms: int, zone: tzinfo) -> int:
    """Return the lead of a zone's clocks over UTC, in ms; 0 beyond the years of the calendar."""
    try:
        ahead = datetime.fromtimestamp(time_ms / 1_000, zone).utcoffset()
    except (ValueError, OverflowError, OSError):
        return 0
    return round(ahead.total_seconds() * 1_000) if ahead else 0


def round_seconds(length: float, max_steps: int = 8) -> Sequence[float]:
    """Return round durations from 0 to `length`, in seconds, in at most `max_steps` steps."""
    step = _step(length, max_steps)
    return [step * n for n in range(int(length / step) + 1)]


def _step(length: float, max_steps: int) -> float:
    return next((step for step in _STEPS if length / step <= max_steps), length / max_steps)


def clock(time_ms: int, length_ms: int, zone: tzinfo = UTC) -> str:
    """
    Return the label of a time on an axis of this length.

    >>> clock(1_795_280_106_000, 60_000), clock(1_795_280_106_000, 7 * 86_400_000)
    ('16:55:06', '11-21 16:55')
    """
    seconds = length_ms / 1_000
    form = "%H:%M:%S" if seconds < _HOUR else "%H:%M" if seconds < _DAY / 2 else "%m-%d %H:%M"
    try:
        return datetime.fromtimestamp(time_ms / 1_000, zone).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


Format = Callable[[float], str]
"""A function that writes a value with its unit."""
_WIDTH: Final = 1150


def key(name: str, mark: Element) -> Element:
    """Return an entry of a legend; the mark has 22 times 10 pixels."""
    svg = element("svg", mark, class_="key", viewBox="0 0 22 10")
    return element("span", svg, f" {name}")


def swatch(color: str) -> Element:
    """Return a mark of a legend in one color."""
    return element("rect", width=22, height=10, fill=color)


def share_bar(part: float, color: str) -> Element:
    """Draw a small bar in a cell of a table, 0 to 1 of its width."""
    bar = element("rect", width=100 * part, height=10, fill=color)
    return element("svg", bar, class_="share", viewBox="0 0 100 10", preserveAspectRatio="none")


def _chart(width: float, height: float, title: str, kind: str = "chart") -> Element:
    svg = element("svg", class_=kind, viewBox=f"0 0 {width} {height}", role="img")
    svg.append(element("title", title))
    return svg


_NARROW, _BROADEST = frozenset("fijlrt .,:;|!'\"()[]/-"), frozenset("mwMW@%…")


def _label(text: str, x: float, y: float, size: int, kind: str = "end") -> Element:
    """Draw a text that ends at `x`, with its letters closer together if it would begin left of the drawing."""
    broad = sum(letter in _BROADEST or east_asian_width(letter) in "WF" for letter in text)
    narrow = sum(letter in _NARROW for letter in text)
    upper = sum(letter.isupper() for letter in text)
    # widths of letters in DejaVu Sans, broader than most fonts, as parts of the font size
    width = size * (0.63 * len(text) + 0.37 * broad - 0.25 * narrow + 0.07 * upper)
    squeezed = {"textLength": f"{x:g}", "lengthAdjust": "spacingAndGlyphs"} if width > x else {}
    label = element("text", text, class_=kind, x=x, y=y)
    label.attrib.update(squeezed)
    return label


# Lines

_LEFT, _RIGHT, _TOP, _BOTTOM = 86, 1115, 12, 250
_LINE_HEIGHT: Final = 276
_ABOVE_PEAK: Final = 1.08
_TOUCHING: Final = 0.01
_FAR_ABOVE: Final = 3.0
"""A limit more than this many times the peak is left out: it would flatten the usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Rates over time, in intervals of equal length."""

    begin_ms: int
    """ms since 1970, UTC."""
    end_ms: int
    piece_ms: int
    times_ms: Sequence[int]
    """Beginning of each interval with usage."""
    mean: Sequence[float]
    """Mean rate of each interval; empty if intervals are shorter than the window over which a peak is averaged."""
    peak: Sequence[float]
    """Highest rate in each interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLine:
    """A horizontal line across a line chart."""

    name: str
    value: float
    """Value in the unit of the curve."""
    color: int
    """Number of its color; from the ninth on, colors repeat with dashes."""

    def mark(self, **place: float | str) -> Element:
        """Draw a line or path with the color and dashes of the limit."""
        dashes = "" if self.color < SERIES else "6 4"
        kind = "path" if "d" in place else "line"
        return element(kind, class_=f"limit s{self.color % SERIES}", stroke_dasharray=dashes, **place)


def line_chart(
    curve: Curve, limits: Sequence[LimitLine], unit: Format, zone: tzinfo = UTC, title: str = "Usage"
) -> tuple[Element, Sequence[LimitLine]]:
    """
    Draw the mean and the peak of each interval, and a line for each limit.

    Args:
        curve: the usage.
        limits: one for each candidate.
        unit: writes rates beside the axis.
        zone: time zone of the labels below the axis.
        title: what is drawn.

    Returns:
        The drawing, and the limits that are too far above the peak to be on it.

    """
    peak = max(curve.peak, default=0.0)
    drawn = [limit for limit in limits if limit.value <= _FAR_ABOVE * peak or peak <= 0]
    top = max([peak, *(limit.value for limit in drawn)], default=0.0) * _ABOVE_PEAK or 1.0
    begin, end = curve.begin_ms, max(curve.end_ms, curve.begin_ms + 1)
    times = LinearScale(begin, end, _LEFT, _RIGHT)
    heights = LinearScale(0.0, top, _BOTTOM, _TOP)
    title = f"{title} from {moment(begin, zone)} to {moment(end, zone)}"
    svg = _chart(_WIDTH, _LINE_HEIGHT, title)
    for value in round_values(top):
        y = heights(value)
        svg.append(element("line", class_="grid", x1=_LEFT, x2=_RIGHT, y1=y, y2=y))
        svg.append(element("text", unit(value), class_="tick end", x=_LEFT - 8, y=y + 4))
    for time in round_times(begin, end, zone=zone):
        x, label = times(time), clock(time, end - begin, zone)
        svg.append(element("line", class_="grid", x1=x, x2=x, y1=_BOTTOM, y2=_BOTTOM + 5))
        svg.append(element("text", label, class_="tick middle", x=x, y=_BOTTOM + 20))
    svg.extend(_usage(curve, times, heights))
    for limit in drawn:
        y = heights(limit.value)
        title = f"{shown(limit.name)}: {unit(limit.value)}"
        line = limit.mark(x1=_LEFT, x2=_RIGHT, y1=y, y2=y)
        svg.append(element("g", element("title", title), line))
    return svg, [limit for limit in limits if limit not in drawn]


def peak_kind(curve: Curve) -> str:
    """Return the class of the areas of peaks, which are darker without a line of means above them."""
    return "peak" if curve.mean else "peak alone"


def _usage(curve: Curve, times: LinearScale, heights: LinearScale) -> Iterator[Element]:
    """Draw the peaks as areas with flat tops, and the means as a line that breaks where an interval is missing."""
    floor = heights(0.0)
    spans = [(times(time), times(time + curve.piece_ms)) for time in curve.times_ms]
    areas = (
        f"M{left:.1f} {floor:.1f}V{heights(value):.1f}H{right:.1f}V{floor:.1f}Z"
        for (left, right), value in zip(spans, curve.peak, strict=True)
        if value > 0
    )
    yield element("path", class_=peak_kind(curve), d="".join(areas))
    if not curve.mean:
        return
    steps, end = [], -1.0
    for (left, right), value in zip(spans, curve.mean, strict=True):
        move = "L" if abs(left - end) < _TOUCHING else "M"
        steps.append(f"{move}{left:.1f} {heights(value):.1f}H{right:.1f}")
        end = right
    yield element("path", class_="mean", d="".join(steps))


# Bars

_BAR_ROW: Final = 24
_BAR_LEFT, _BAR_WIDTH, _BAR_TEXT = 340, 300, 110
_BAR_LETTER: Final = 7
"""Width of a letter of a name, in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBar:
    """A bar with a name at its left and its value at its right."""

    name: str
    value: float
    text: str
    """Value with its unit."""
    color: int


def bar_chart(bars: Sequence[ChartBar], title: str) -> Element:
    """Draw bars below each other, the longest over the full width; a value of 0 or below has no length."""
    longest = max((bar.value for bar in bars), default=0.0) or 1.0
    left = min(_BAR_LEFT, max((_BAR_LETTER * len(shown(bar.name, 50)) for bar in bars), default=0) + 20)
    page_width = left + _BAR_WIDTH + _BAR_TEXT
    svg = _chart(page_width, len(bars) * _BAR_ROW + 4, title, "heat")
    svg.set("style", f"--width: {page_width}px")  # a chart of short names has room in a narrow window
    for row, bar in enumerate(bars):
        top = row * _BAR_ROW
        width = max(0.0, bar.value / longest) * _BAR_WIDTH
        place = {"x": left, "y": top + 4, "width": width, "height": _BAR_ROW - 8}
        svg.append(
            element(
                "g",
                element("title", f"{shown(bar.name, 200)}: {bar.text}"),
                _label(shown(bar.name, 50), left - 10, top + 16, 12),
                element("rect", class_=f"f{bar.color % SERIES}", **place, rx=2),
                element("text", bar.text, x=left + width + 8, y=top + 16)
            )
        )  # fmt: skip
    return svg


# Hours of the week

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS: Final = 24
_CELL_LEFT, _CELL_TOP, _CELL_WIDTH, _CELL_HEIGHT = 44, 20, 33, 22
_NAMES_LEFT: Final = 280
_FAINTEST: Final = 0.08


def heat_map(values: Sequence[float], unit: Format, title: str) -> Element:
    """
    Draw the 168 hours of a week, the darker the higher the value.

    Args:
        values: Monday 00h first; NaN for an hour without data, which is not drawn as 0.
        unit: writes a value in the tooltip of its hour.
        title: of the drawing.

    """
    hours = [f"{hour:02}h" for hour in range(HOURS)]
    return grid_map(DAYS, hours, values, unit, title, left=_CELL_LEFT, every=3)


def grid_map(  # noqa: PLR0913 - most by name
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[float],
    unit: Format,
    title: str,
    *,
    left: int = _NAMES_LEFT,
    every: int = 1,
) -> Element:
    """
    Draw cells, the darker the higher the value.

    Args:
        rows: names at the left.
        columns: names above, every n-th of them is written.
        values: row by row; NaN for a cell without data, which is not drawn as 0.
        unit: writes a value in the tooltip of its cell.
        title: of the drawing.
        left: pixels for the names at the left.
        every: n.

    """
    width = left + len(columns) * _CELL_WIDTH + 4
    svg = _chart(width, _CELL_TOP + len(rows) * _CELL_HEIGHT + 4, title, "heat")
    svg.set("style", f"--width: {width}px")  # cells of few columns would grow with the window
    for column in range(0, len(columns), every):
        x = left + column * _CELL_WIDTH + _CELL_WIDTH / 2
        svg.append(element("text", columns[column], class_="tick middle", x=x, y=13))
    highest = max((value for value in values if math.isfinite(value)), default=0.0) or 1.0
    for row, name in enumerate(rows):
        y = _CELL_TOP + row * _CELL_HEIGHT
        svg.append(_label(shown(name, left // 7), left - 8, y + 15, 11, "tick end"))
        for column, head in enumerate(columns):
            value = values[row * len(columns) + column]
            cell = element("rect", x=left + column * _CELL_WIDTH, y=y, width=_CELL_WIDTH, height=_CELL_HEIGHT)
            if math.isnan(value):
                cell.set("class", "blank")
                about = "no data"
            else:
                part = min(1.0, max(0.0, value / highest))
                cell.set("class", "cell")
                cell.set("fill-opacity", f"{_FAINTEST + (1 - _FAINTEST) * part:.3f}")
                about = unit(value)
            svg.append(element("g", element("title", f"{shown(name, 200)} {head}: {about}"), cell))
    return svg


# Timeline

_LANE_LEFT, _LANE_WIDTH, _LANE_RIGHT = 250, 870, 30
_AXIS: Final = 26
_ROW, _GAP = 14, 8
_THINNEST: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A bar of a timeline. Times are seconds since its beginning."""

    began: float
    ended: float
    color: str
    title: str
    """Text of the tooltip."""
    marked: float = 0.0
    """Marked seconds of the span. The mark is drawn at its beginning, since only its length is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Rows of spans with a name at the left."""

    label: str
    rows: list[list[Span]]

    @property
    def height(self) -> int:
        """Height in pixels, with the gap below the lane."""
        return len(self.rows) * _ROW + _GAP


def timeline_chart(
    lanes: Iterable[Lane], length: float, mark: str = "none", begin_ms: int | None = None, zone: tzinfo = UTC
) -> Element:
    """
    Draw lanes below an axis of seconds, or of times.

    Args:
        lanes: from top to bottom.
        length: seconds of the axis, above 0.
        mark: color of the marked part of spans.
        begin_ms: beginning of the axis, ms since 1970; without it, labels are durations.
        zone: time zone of labels that are times.

    """
    lanes = tuple(lanes)
    height = _AXIS + sum(lane.height for lane in lanes) + _GAP
    svg = _chart(_LANE_LEFT + _LANE_WIDTH + _LANE_RIGHT, height, "Timeline")
    times = LinearScale(0.0, length, _LANE_LEFT, _LANE_LEFT + _LANE_WIDTH)
    if begin_ms is None:
        labels = [(time, f"+{seconds(time)}" if time else "0") for time in round_seconds(length)]
    else:
        length_ms = round(length * 1_000)
        times_ms = round_times(begin_ms, begin_ms + length_ms, zone=zone)
        labels = [((time_ms - begin_ms) / 1_000, clock(time_ms, length_ms, zone)) for time_ms in times_ms]
    for time, label in labels:
        x = times(time)
        svg.append(element("line", class_="grid", x1=x, x2=x, y1=_AXIS, y2=height))
        middle = x if begin_ms is None else min(x, _WIDTH - 34)  # a date is broader than the edge
        svg.append(element("text", label, class_="tick middle", x=middle, y=_AXIS - 8))
    top = _AXIS + _GAP
    for lane in lanes:
        svg.append(_label(lane.label, _LANE_LEFT - 10, top + _ROW - 3, 12))
        for row, spans in enumerate(lane.rows):
            svg.extend(_span(span, times, top + row * _ROW, mark) for span in spans)
        top += lane.height
    return svg


def _span(span: Span, times: LinearScale, top: int, mark: str) -> Element:
    x = times(span.began)
    width = max(_THINNEST, times(span.ended) - x)
    group = element(
        "g",
        element("title", span.title),
        element("rect", x=x, y=top, width=width, height=_ROW - 2, fill=span.color, rx=1)
    )  # fmt: skip
    if span.marked:
        width = max(_THINNEST, times(span.began + span.marked) - x)
        group.append(element("rect", x=x, y=top + _ROW - 7, width=width, height=5, fill=mark))
    return group
