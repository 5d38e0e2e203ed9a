"""The hours of a week as a drawing."""

import math
from itertools import pairwise
from xml.etree.ElementTree import Element

import pytest

from quotascope.pipeline.report.heat_map import heat_map

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
