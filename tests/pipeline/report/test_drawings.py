"""Drawings: where things stand, and that nothing is cut off."""

import math
import re
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from quotascope.metrics import QuotaType
from quotascope.pipeline.report.bar_chart import Bar, bar_chart
from quotascope.pipeline.report.charts import _legend
from quotascope.pipeline.report.heat_map import heat_map
from quotascope.pipeline.report.line_chart import Limit, line_chart
from quotascope.pipeline.report.scales import round_times
from quotascope.pipeline.report.usage import Usage

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


@pytest.fixture
def svg() -> Element:
    """Each hour has its number, 0 to 167, but for the last, which was not seen."""
    return heat_map([*map(float, range(167)), math.nan], lambda n: f"{n:.0f} B", "A")


def _box(rect: Element) -> tuple[float, float, float, float]:
    """Left, top, right, bottom."""
    x, y, width, height = (
        float(rect.attrib[name]) for name in ("x", "y", "width", "height")
    )
    return x, y, x + width, y + height


def test_hours_stand_side_by_side_and_days_below_each_other(svg: Element) -> None:
    """Monday 00h first, without gaps, all of one size, within the drawing: at the right and below with a narrow edge."""
    boxes = [_box(rect) for rect in svg.iter("rect")]
    assert len(boxes) == 7 * 24
    rows = [boxes[start : start + 24] for start in range(0, 168, 24)]
    for row in rows:
        assert len({(top, bottom) for _, top, _, bottom in row}) == 1
        assert all(one[2] == other[0] for one, other in pairwise(row))
    assert all(one[0][3] == other[0][1] for one, other in pairwise(rows))
    assert all(one[0][0] == other[0][0] for one, other in pairwise(rows))
    assert len({(right - left, low - top) for left, top, right, low in boxes}) == 1
    left, top, width, height = map(float, svg.attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    assert 0 < width - boxes[-1][2] < 10
    assert 0 < height - boxes[-1][3] < 10


def test_names_stand_beside_what_they_name(svg: Element) -> None:
    """Days at the left of their row, hours above the middle of their column, every third."""
    boxes = [_box(rect) for rect in svg.iter("rect")]
    texts = [*svg.iter("text")]
    hours, days = texts[:8], texts[8:]
    assert [each.text for each in hours] == [f"{hour:02}h" for hour in range(0, 24, 3)]
    for name, (left, top, right, _) in zip(hours, boxes[:24:3], strict=True):
        assert float(name.attrib["x"]) == (left + right) / 2
        assert 0 < top - float(name.attrib["y"]) < 12
    assert [each.text for each in days] == DAYS
    for name, (left, top, _, bottom) in zip(days, boxes[::24], strict=True):
        assert 0 < left - float(name.attrib["x"]) < 12
        assert (top + bottom) / 2 < float(name.attrib["y"]) < bottom


def test_the_more_the_darker(svg: Element) -> None:
    """From faint to full, in proportion; an hour that was not seen is not an hour without anything."""
    *seen, blank = svg.iter("rect")
    shades = [float(rect.attrib["fill-opacity"]) for rect in seen]
    assert (shades[0], shades[83], shades[166]) == (0.08, 0.54, 1.0)
    assert all(one < other for one, other in pairwise(shades))
    assert blank.attrib["class"] == "blank"
    assert "fill-opacity" not in blank.attrib
    titles = [group.findtext("title") for group in svg.iter("g")]
    assert (titles[0], titles[25], titles[167]) == ("Mon 00h: 0 B", "Tue 01h: 25 B", "Sun 23h: not seen")  # fmt: skip


def test_a_week_without_anything_is_faint() -> None:
    """As dark as the least."""
    svg = heat_map([0.0] * 168, str, "A")
    assert {rect.attrib["fill-opacity"] for rect in svg.iter("rect")} == {"0.080"}


def _bars(*values: float) -> Element:
    return bar_chart(
        [Bar(name=f"n{value}", value=value, told=f"{value} s", colour=number) for number, value in enumerate(values)],
        "A",
    )  # fmt: skip


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    """In rows of their own within the drawing; the name ends left of the bar, the figure stands right of it."""
    svg = _bars(4.0, 1.0, 0.0, -1.0)
    boxes = [_box(rect) for rect in svg.iter("rect")]
    left, _, right, _ = boxes[0]
    whole = right - left
    assert [(box[0], box[2] - box[0]) for box in boxes] == [(left, whole), (left, whole / 4), (left, 0), (left, 0)]  # fmt: skip
    assert all(one[3] < other[1] for one, other in pairwise(boxes))
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    assert boxes[0][1] > 0
    assert height - 12 < boxes[-1][3] < height
    assert width - right > 100  # for the figure
    texts = [*svg.iter("text")]
    for name, told, box in zip(texts[::2], texts[1::2], boxes, strict=True):
        assert 0 < box[0] - float(name.attrib["x"]) < 15
        assert 0 < float(told.attrib["x"]) - box[2] < 15
        assert box[1] < float(name.attrib["y"]) == float(told.attrib["y"]) < box[3]
    assert [each.text for each in texts] == ["n4.0", "4.0 s", "n1.0", "1.0 s", "n0.0", "0.0 s", "n-1.0", "-1.0 s"]  # fmt: skip


def test_less_than_one_is_drawn_as_well() -> None:
    """The longest bar takes the whole width, however little it stands for."""
    widths = [_box(rect)[2] - _box(rect)[0] for rect in _bars(0.5, 0.25).iter("rect")]
    assert widths == [640, 320]


def test_eight_colours_come_round_again() -> None:
    """The ninth bar has the first one's."""
    classes = [rect.attrib["class"] for rect in _bars(*[1.0] * 9).iter("rect")]
    assert classes == [*(f"f{number}" for number in range(8)), "f0"]


USAGE = Usage(
    begin_ms=1_795_392_000_000,
    end_ms=1_795_392_010_000,
    piece_ms=1_000,
    times_ms=[1_795_392_000_000, 1_795_392_001_000, 1_795_392_005_000],
    mean=[50.0, 0.5, 0.0],
    peak=[100.0, 0.5, 0.0],
)
"""Ten seconds; the first two and the sixth have been seen."""


def _moves(path: Element) -> list[tuple[str, list[float]]]:
    parts = re.findall(r"([A-Z])([^A-Z]*)", path.attrib["d"])
    return [(move, [float(each) for each in numbers.split()]) for move, numbers in parts]  # fmt: skip


def test_usage_is_drawn_by_its_pieces() -> None:
    """A line that ends where a piece is missing; an area with a flat top for each, however low, but for none."""
    svg, _ = line_chart(QuotaType.PRODUCE, USAGE, [])
    peak, mean = svg.iter("path")
    second = (1130 - 86) / 10
    assert [(move, numbers[0]) for move, numbers in _moves(mean)] == [
        ("M", 86), ("H", pytest.approx(86 + second, abs=0.06)),
        ("L", pytest.approx(86 + second, abs=0.06)), ("H", pytest.approx(86 + 2 * second, abs=0.06)),
        ("M", pytest.approx(86 + 5 * second, abs=0.06)), ("H", pytest.approx(86 + 6 * second, abs=0.06)),
    ]  # fmt: skip
    assert "".join(move for move, _ in _moves(peak)) == "MVHVZ" * 2
    floor, top = _moves(peak)[0][1][1], _moves(peak)[1][1][0]
    half = _moves(mean)[0][1][1]
    assert half == pytest.approx((floor + top) / 2, abs=0.1)
    assert _moves(mean)[4][1][1] == floor


def test_limits_are_lines_at_their_value() -> None:
    """Up to three times the peak; what is above is given back, and a ninth candidate's line is dashed."""
    limits = [Limit(name=str(n), value=value, colour=n) for n, value in ((0, 50.0), (8, 300.0), (9, 301.0))]  # fmt: skip
    svg, left_out = line_chart(QuotaType.PRODUCE, USAGE, limits)
    assert [limit.name for limit in left_out] == ["9"]
    low, high = (line for line in svg.iter("line") if "limit" in line.attrib["class"])
    assert (low.attrib["class"], high.attrib["class"]) == ("limit s0", "limit s0")
    assert (low.get("stroke-dasharray"), high.get("stroke-dasharray")) == ("", "6 4")
    mean = [*svg.iter("path")][1]
    assert float(low.attrib["y1"]) == pytest.approx(_moves(mean)[0][1][1], abs=0.06)
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for line in svg.iter("line"):
        assert 0 < float(line.attrib["x1"]) <= float(line.attrib["x2"]) < width
        assert 0 < float(line.attrib["y1"]) <= float(line.attrib["y2"]) < height
    assert all(0 < float(text.attrib["y"]) < height for text in svg.iter("text"))


SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("length", "step"),
    [
        (8 * SECOND, SECOND),
        (4 * MINUTE, 30 * SECOND),
        (8 * MINUTE, MINUTE),
        (4 * HOUR, 30 * MINUTE),
        (8 * HOUR, HOUR),
        (4 * DAY, 12 * HOUR),
        (8 * DAY, DAY),
        (8 * 7 * DAY, 7 * DAY),
        (8 * 365 * DAY, 365 * DAY),
    ],
)
def test_moments_are_those_of_clocks(length: int, step: int) -> None:
    """Steps that divide a minute, an hour, a day; as fine as eight of them reach."""
    assert [*round_times(0, length)] == [step * n for n in range(length // step + 1)]
    (first, *_) = round_times(1, length)
    assert first == step


def test_the_legend_draws_limits_as_the_chart_does() -> None:
    """In the colour of the candidate, dashed from the ninth on; equal limits share a line."""
    summary: Any = SimpleNamespace(group=SimpleNamespace(kind=QuotaType.PRODUCE))
    drawn: Any = SimpleNamespace(usage=USAGE)
    limits = [Limit(name=f"c{n}", value=value, colour=n) for n, value in ((0, 1_000.0), (7, 2_000.0), (8, 3_000.0), (9, 3_000.0))]  # fmt: skip
    keys = [each for each in _legend(summary, drawn, limits) if isinstance(each, Element)]  # fmt: skip
    marks = [path for key in keys for path in key.iter("path") if "limit" in path.attrib["class"]]  # fmt: skip
    assert [(mark.attrib["class"], mark.get("stroke-dasharray")) for mark in marks] == [("limit s0", ""), ("limit s7", ""), ("limit s1", "6 4")]  # fmt: skip
    told = ["".join(key.itertext()).strip() for key in keys]
    assert told == ["used, mean", "peak", "1 kB/s: c0", "2 kB/s: c7", "3 kB/s: c8, c9"]
