"""Drawings: where things stand, and that nothing is cut off."""

import math
import re
from datetime import UTC, datetime
from itertools import pairwise
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

import pytest

from quotascope.pages.charts import (
    ChartBar,
    Curve,
    Lane,
    LimitLine,
    Span,
    bar_chart,
    clock,
    heat_map,
    line_chart,
    round_seconds,
    round_times,
    timeline_chart,
)

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


@pytest.fixture
def svg() -> Element:
    """Draw hours with values 0 to 166; the last hour has no data."""
    return heat_map([*map(float, range(167)), math.nan], lambda n: f"{n:.0f} B", "A")


@pytest.mark.parametrize(("peak", "limit"), [(0.0, 5e-324), (1e-323, 1e-323), (1e308, 1.7e308)])
def test_any_limit_can_be_drawn(peak: float, limit: float) -> None:
    """A chart shows even the smallest and largest limits, of a client with little or no usage."""
    curve = Curve(begin_ms=0, end_ms=1_000, piece_ms=1_000, times_ms=[0], mean=[], peak=[peak])
    drawn, left_out = line_chart(curve, [LimitLine(name="a", value=limit, color=0)], "{:g}".format)
    assert left_out == []
    assert all(math.isfinite(float(line.attrib["y1"])) for line in drawn.iter("line"))


def _box(rect: Element) -> tuple[float, float, float, float]:
    """Return left, top, right, bottom."""
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def test_hours_stand_side_by_side_and_days_below_each_other(svg: Element) -> None:
    """Cells begin with Monday 00h, have one size and no gaps, and leave a narrow edge at the right and below."""
    boxes = [_box(rect) for rect in svg.iter("rect")]
    assert len(boxes) == 7 * 24
    rows = [boxes[start : start + 24] for start in range(0, 168, 24)]
    for row in rows:
        assert len({(top, bottom) for _, top, _, bottom in row}) == 1
        assert all(hour[2] == next_hour[0] for hour, next_hour in pairwise(row))
    assert all(day[0][3] == next_day[0][1] for day, next_day in pairwise(rows))
    assert all(day[0][0] == next_day[0][0] for day, next_day in pairwise(rows))
    assert len({(right - left, low - top) for left, top, right, low in boxes}) == 1
    left, top, width, height = map(float, svg.attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    assert 0 < width - boxes[-1][2] < 10
    assert 0 < height - boxes[-1][3] < 10


def test_names_stand_beside_what_they_name(svg: Element) -> None:
    """Names of days are at the left of their rows, and every third hour above the middle of its column."""
    boxes = [_box(rect) for rect in svg.iter("rect")]
    texts = [*svg.iter("text")]
    hours, days = texts[:8], texts[8:]
    assert [text.text for text in hours] == [f"{hour:02}h" for hour in range(0, 24, 3)]
    for name, (left, top, right, _) in zip(hours, boxes[:24:3], strict=True):
        assert float(name.attrib["x"]) == (left + right) / 2
        assert 0 < top - float(name.attrib["y"]) < 12
    assert [text.text for text in days] == DAYS
    for name, (left, top, _, bottom) in zip(days, boxes[::24], strict=True):
        assert 0 < left - float(name.attrib["x"]) < 12
        assert (top + bottom) / 2 < float(name.attrib["y"]) < bottom


def test_the_more_the_darker(svg: Element) -> None:
    """Shades grow with the value in proportion; an hour without data is not an hour of value 0."""
    *seen, blank = svg.iter("rect")
    shades = [float(rect.attrib["fill-opacity"]) for rect in seen]
    assert (shades[0], shades[83], shades[166]) == (0.08, 0.54, 1.0)
    assert all(fainter < darker for fainter, darker in pairwise(shades))
    assert blank.attrib["class"] == "blank"
    assert "fill-opacity" not in blank.attrib
    titles = [group.findtext("title") for group in svg.iter("g")]
    assert (titles[0], titles[25], titles[167]) == ("Mon 00h: 0 B", "Tue 01h: 25 B", "Sun 23h: no data")


def test_a_week_without_anything_is_faint() -> None:
    """Hours of value 0 have the faintest shade."""
    svg = heat_map([0.0] * 168, str, "A")
    assert {rect.attrib["fill-opacity"] for rect in svg.iter("rect")} == {"0.080"}


def _bars(*values: float) -> Element:
    bars = [
        ChartBar(name=f"n{value}", value=value, text=f"{value} s", color=color) for color, value in enumerate(values)
    ]
    return bar_chart(bars, "A")


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    """Bars have rows of their own; the name ends left of the bar, the figure stands right of it."""
    svg = _bars(4.0, 1.0, 0.0, -1.0)
    boxes = [_box(rect) for rect in svg.iter("rect")]
    left, _, right, _ = boxes[0]
    whole = right - left
    assert [(box[0], box[2] - box[0]) for box in boxes] == [(left, whole), (left, whole / 4), (left, 0), (left, 0)]
    assert all(upper[3] < lower[1] for upper, lower in pairwise(boxes))
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    assert boxes[0][1] > 0
    assert height - 12 < boxes[-1][3] < height
    assert width - right > 100  # for the figure
    texts = [*svg.iter("text")]
    for name, reported, box in zip(texts[::2], texts[1::2], boxes, strict=True):
        assert 0 < box[0] - float(name.attrib["x"]) < 15
        assert 0 < float(reported.attrib["x"]) - box[2] < 15
        assert box[1] < float(name.attrib["y"]) == float(reported.attrib["y"]) < box[3]
    assert [text.text for text in texts] == ["n4.0", "4.0 s", "n1.0", "1.0 s", "n0.0", "0.0 s", "n-1.0", "-1.0 s"]


def test_bars_of_less_than_one_and_more_than_eight() -> None:
    """The longest bar takes the full width, even for a value below 1; the ninth has the color of the first."""
    assert [_box(rect)[2] - _box(rect)[0] for rect in _bars(0.5, 0.25).iter("rect")] == [300, 150]
    classes = [rect.attrib["class"] for rect in _bars(*[1.0] * 9).iter("rect")]
    assert classes == [*(f"f{number}" for number in range(8)), "f0"]


USAGE = Curve(
    begin_ms=1_795_392_000_000,
    end_ms=1_795_392_010_000,
    piece_ms=1_000,
    times_ms=[1_795_392_000_000, 1_795_392_001_000, 1_795_392_005_000],
    mean=[50.0, 0.5, 0.0],
    peak=[100.0, 0.5, 0.0],
)
"""Usage over ten seconds, of which the first two and the sixth have data."""


def _moves(path: Element) -> list[tuple[str, list[float]]]:
    parts = re.findall(r"([A-Z])([^A-Z]*)", path.attrib["d"])
    return [(move, [float(number) for number in numbers.split()]) for move, numbers in parts]


def test_usage_is_drawn_by_its_pieces() -> None:
    """The line of means ends where an interval is missing; each peak above 0 is an area with a flat top."""
    svg, _ = line_chart(USAGE, [], str)
    peak, mean = svg.iter("path")
    second = (1115 - 86) / 10
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
    """Limits up to three times the peak are drawn, higher ones returned; the ninth candidate's line is dashed."""
    limits = [LimitLine(name=str(n), value=value, color=n) for n, value in ((0, 50.0), (8, 300.0), (9, 301.0))]
    svg, left_out = line_chart(USAGE, limits, str)
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


def test_moments_are_those_of_clocks() -> None:
    """Labels are at steps that divide a minute, an hour or a day, with eight labels at most."""
    steps = {8 * SECOND: SECOND, 4 * MINUTE: 30 * SECOND, 8 * MINUTE: MINUTE, 4 * HOUR: 30 * MINUTE, 8 * HOUR: HOUR}
    steps |= {4 * DAY: 12 * HOUR, 8 * DAY: DAY, 8 * 7 * DAY: 7 * DAY, 8 * 365 * DAY: 365 * DAY}
    for length, step in steps.items():
        assert [*round_times(0, length)] == [step * n for n in range(length // step + 1)]
        assert next(iter(round_times(1, length))) == step


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "UTC"])
def test_days_begin_at_midnight_of_the_zone(zone: str) -> None:
    """Clocks that go back (2026-10-25 in Berlin) change no label, and a time beyond the calendar has labels as well."""
    begin, end = (round(datetime(2026, 10, day, 7, tzinfo=UTC).timestamp() * 1_000) for day in (22, 28))
    times = round_times(begin, end, zone=ZoneInfo(zone))
    assert [clock(time, end - begin, ZoneInfo(zone))[-5:] for time in times] == ["00:00"] * 6
    assert round_times(1 << 60, (1 << 60) + 8_000, zone=ZoneInfo(zone))


@pytest.mark.parametrize("hours", [3, 4, 6, 30])
def test_times_that_the_clocks_leave_out_have_no_label(hours: int) -> None:
    """An axis has no label between 02:00 and 03:00 on 2026-03-29 in Berlin."""
    begin = round(datetime(2026, 3, 28, 22, 30, tzinfo=UTC).timestamp() * 1_000)
    times = [*round_times(begin, begin + hours * 3_600_000, zone=ZoneInfo("Europe/Berlin"))]
    assert times == sorted(set(times))
    labels = [clock(time, 3_600_000, ZoneInfo("Europe/Berlin"))[:2] for time in times]
    assert "02" not in labels
    assert len(times) > hours / 6


def test_a_label_at_the_end_of_an_axis_is_not_cut() -> None:
    """A date and a time have about 67 pixels; the drawing has 1,150."""
    day = 24 * 3_600_000
    curve = Curve(begin_ms=0, end_ms=7 * day, piece_ms=day, times_ms=[0], mean=[1.0], peak=[1.0])
    for svg in (line_chart(curve, [], str)[0], timeline_chart([], 7 * 86_400, begin_ms=0)):
        last_label = [text for text in svg.iter("text") if text.get("class") == "tick middle"][-1]
        assert last_label.text == "01-08 00:00"
        assert float(last_label.attrib["x"]) + 34 <= 1_150


def test_durations_are_round_and_few() -> None:
    """Labels go from 0 to the length, in eight round steps at most."""
    steps = {
        0.001: 0.001,
        0.5: 0.1,
        60: 10,
        7_322: 1_800,
        40_000: 7_200,
        90_000: 21_600,
        500_000: 86_400,
        1e12: 1.25e11,
    }
    for length, step in steps.items():
        durations = round_seconds(length)
        assert durations == pytest.approx([step * n for n in range(len(durations))])
        assert durations[-1] <= length < durations[-1] + step
        assert len(durations) <= 9


@pytest.fixture
def timeline() -> Element:
    """Draw a minute with two lanes: four rows with one marked span, and two rows with another."""
    spans: list[list[list[tuple[float, float, float]]]] = [
        [[(1, 20, 0)], [(2, 9, 4)], [(3, 5, 0)], [(4, 6, 0)]],
        [[(22, 30, 0), (32, 40, 0)], [(33, 38, 1.5)]],
    ]

    def span(began: float, ended: float, marked: float) -> Span:
        return Span(began=began, ended=ended, color="#123456", title=f"{began} to {ended}", marked=marked)

    rows = [[[span(*times) for times in row] for row in lane] for lane in spans]
    return timeline_chart([Lane(label=f"lane {number}", rows=lane) for number, lane in enumerate(rows)], 60, "#f0b400")


def _ticks(svg: Element) -> list[float]:
    lines = [line for line in svg.iter("line") if line.get("class") == "grid"]
    assert all(line.attrib["x1"] == line.attrib["x2"] for line in lines)
    return [float(line.attrib["x1"]) for line in lines]


def test_ticks_stand_every_ten_seconds(timeline: Element) -> None:
    """Labels stand above their ticks."""
    ticks = _ticks(timeline)
    labels = [text for text in timeline.iter("text") if text.get("class") == "tick middle"]
    assert [label.text for label in labels] == ["0", "+10 s", "+20 s", "+30 s", "+40 s", "+50 s", "+1 min"]
    assert [float(label.attrib["x"]) for label in labels] == ticks
    assert [right - left for left, right in pairwise(ticks)] == pytest.approx([145] * 6)
    (top,) = {float(line.attrib["y1"]) for line in timeline.iter("line")}
    assert all(0 < top - float(label.attrib["y"]) < 12 for label in labels)


def test_an_axis_of_times_has_whole_minutes() -> None:
    """Labels are full minutes in the zone of the reader, wherever the axis begins."""
    svg = timeline_chart([], 300, begin_ms=1_795_392_030_000, zone=ZoneInfo("Europe/Berlin"))
    labels = [text for text in svg.iter("text") if text.get("class") == "tick middle"]
    assert [label.text for label in labels] == ["01:01:00", "01:02:00", "01:03:00", "01:04:00", "01:05:00"]
    assert [float(label.attrib["x"]) for label in labels] == _ticks(svg)
    assert _ticks(svg)[0] == pytest.approx(250 + 870 * 30 / 300)


@pytest.mark.parametrize(
    ("label", "squeezed"),
    [("stage 12: foreachPar…on at job.py:75", False), ("W" * 36, True), ("東京" * 18, True), ("l" * 36, False)],
)
def test_a_broad_label_is_not_cut(label: str, *, squeezed: bool) -> None:
    """The letters of a broad label are closer, and the label is in the drawing."""
    texts = timeline_chart([Lane(label=label, rows=[[]])], 60).iter("text")
    (drawn,) = (text for text in texts if text.get("class") == "end")
    assert (drawn.text, drawn.get("textLength")) == (label, "240" if squeezed else None)


def test_spans_begin_and_end_at_their_times(timeline: Element) -> None:
    """A span begins and ends at its seconds; a mark begins with its span, and has the color of marks."""
    zero, *_, minute = _ticks(timeline)
    times = [tuple((x - zero) / (minute - zero) * 60 for x in _box(rect)[::2]) for rect in timeline.iter("rect")]
    first_lane = [(1, 20), (2, 9), (2, 6), (3, 5), (4, 6)]
    second = [(22, 30), (32, 40), (33, 38), (33, 34.5)]
    assert times == [pytest.approx(expected) for expected in first_lane + second]
    colors = [rect.get("fill") for rect in timeline.iter("rect")]
    assert [n for n, color in enumerate(colors) if color == "#f0b400"] == [2, 8]


def test_rows_and_lanes_are_apart(timeline: Element) -> None:
    """Rows do not touch, lanes are further apart than rows, a mark is drawn into its span, and nothing is cut off."""
    left, top, right, bottom = map(float, timeline.attrib["viewBox"].split())
    boxes = [_box(rect) for rect in timeline.iter("rect")]
    marks = [boxes.pop(8), boxes.pop(2)]
    for mark, span in zip(marks, (boxes[6], boxes[1]), strict=True):
        assert span[1] < mark[1] < mark[3] <= span[3]
    rows = sorted({(box[1], box[3]) for box in boxes})
    gaps = [below - above for (_, above), (below, _) in pairwise(rows)]
    assert gaps == [2, 2, 2, 10, 2]
    assert {lower - upper for upper, lower in rows} == {12}
    for line in timeline.iter("line"):
        assert top < float(line.attrib["y1"]) < rows[0][0]
        assert rows[-1][1] < float(line.attrib["y2"]) <= bottom
    assert all(left < box[0] and box[2] <= _ticks(timeline)[-1] for box in boxes)
    assert _ticks(timeline)[-1] + 20 <= right  # the last label is centered on its tick
    assert bottom - rows[-1][1] < 20
    names = [text for text in timeline.iter("text") if text.get("class") == "end"]
    assert [name.text for name in names] == ["lane 0", "lane 1"]
    for name, (upper, lower) in zip(names, (rows[0], rows[4]), strict=True):
        assert upper < float(name.attrib["y"]) <= lower
        assert 0 < _ticks(timeline)[0] - float(name.attrib["x"]) < 20


def test_shortest_spans_can_be_seen() -> None:
    """The shortest spans and marks are two pixels wide."""
    span = Span(began=5, ended=5, color="", title="", marked=1e-9)
    svg = timeline_chart([Lane(label="", rows=[[span]])], 1e6, "")
    assert [rect.get("width") for rect in svg.iter("rect")] == ["2", "2"]
