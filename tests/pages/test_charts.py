"""Drawings: where things stand, and that nothing is cut off."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
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

LIMITS = [LimitLine(name=str(n), value=value, color=n) for n, value in ((0, 50.0), (8, 300.0), (9, 301.0))]


def week() -> Element:
    """Each hour has its number, 0 to 167, but for the last, which was not seen."""
    return heat_map([*map(float, range(167)), math.nan], lambda n: f"{n:.0f} B", "A")


def bars() -> Element:
    values = {0: 0.5, 7: 0.125, 8: 0.0, 9: -1.0}
    return bar_chart([ChartBar(name=f"n{n}", value=each, text=f"{each} s", color=n) for n, each in values.items()], "A")


def usage() -> Element:
    """Four seconds, of which the third was not seen."""
    times = [0, 1_000, 3_000]
    peaks, means = [100.0, 0.5, 0.0], [50.0, 0.5, 0.0]
    curve = Curve(begin_ms=0, end_ms=4_000, piece_ms=1_000, times_ms=times, mean=means, peak=peaks)
    drawn, left_out = line_chart(curve, LIMITS, str)
    assert left_out == LIMITS[2:]
    return drawn


def timeline() -> Element:
    """A minute with two lanes: one with three rows of failed attempts, of which one is marked, and one with one."""

    def span(began: float, ended: float, marked: float = 0.0) -> Span:
        return Span(began=began, ended=ended, color="blue", title=f"{began} to {ended}", marked=marked)

    lanes = {"a": [[span(1, 20), span(22, 30)], [span(2, 8, 5)], [span(3, 5)]], "b": [[span(4, 4, 1e-9)]]}
    return timeline_chart([Lane(label=label, rows=rows) for label, rows in lanes.items()], 60, "red")


def boxes(svg: Element) -> list[tuple[float, ...]]:
    """Of each rectangle where it begins, from the left and from above, its width and its height."""
    return [tuple(float(each.attrib[name]) for name in ("x", "y", "width", "height")) for each in svg.iter("rect")]


def texts(svg: Element) -> list[tuple[str | None, float, float]]:
    """Each text with its place from the left, where it begins or ends or has its middle, and that of its base from above."""
    return [(each.text, float(each.attrib["x"]), float(each.attrib["y"])) for each in svg.iter("text")]


def lines(svg: Element, kind: str) -> list[tuple[float, ...]]:
    """Of each line of that kind where it begins and ends from the left, and from above."""
    found = (each for each in svg.iter("line") if each.attrib["class"] == kind)
    return [tuple(float(each.attrib[name]) for name in ("x1", "x2", "y1", "y2")) for each in found]


@pytest.mark.parametrize(
    ("draw", "kind", "width", "height"),
    [(week, "heat", 840, 178), (bars, "chart", 1150, 100), (usage, "chart", 1150, 276), (timeline, "chart", 1150, 106)],
)
def test_nothing_is_cut_off(draw: Callable[[], Element], kind: str, width: int, height: int) -> None:
    """All that a drawing holds is within it, apart from its edges."""
    svg = draw()
    assert (svg.attrib["class"], svg.attrib["viewBox"]) == (kind, f"0 0 {width} {height}")
    for x, y, wide, high in boxes(svg):
        assert 0 < x <= x + wide < width
        assert 0 < y < y + high < height
    for _, x, y in texts(svg):
        assert 0 < x < width
        assert 0 < y < height
    for left, right, upper, lower in (line for kind in ("grid", "limit s0") for line in lines(svg, kind)):
        assert 0 < left <= right < width
        assert 0 < upper <= lower <= height


DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def test_hours_stand_side_by_side_and_days_below_each_other() -> None:
    """Monday 00h first, all of one size without gaps; hours above the middle of their column, every third, and days left of their row."""
    assert boxes(week()) == [(44 + 33 * hour, 20 + 22 * day, 33, 22) for day in range(7) for hour in range(24)]
    hours = [(f"{hour:02}h", 44 + 33 * (hour + 0.5), 13) for hour in range(0, 24, 3)]
    assert texts(week()) == hours + [(name, 36, 20 + 22 * day + 15) for day, name in enumerate(DAYS)]


def test_the_more_the_darker() -> None:
    """From faint to full, in proportion; an hour without data is not an hour of value 0."""
    *seen, blank = week().iter("rect")
    assert [rect.get("fill-opacity") for rect in seen] == [f"{0.08 + 0.92 * n / 166:.3f}" for n in range(167)]
    assert (blank.get("class"), blank.get("fill-opacity")) == ("blank", None)
    titles = [group.findtext("title") for group in week().iter("g")]
    assert (titles[0], titles[25], titles[167]) == ("Mon 00h: 0 B", "Tue 01h: 25 B", "Sun 23h: no data")


def test_a_week_without_anything_is_faint() -> None:
    """As dark as the least."""
    svg = heat_map([0.0] * 168, str, "A")
    assert {rect.attrib["fill-opacity"] for rect in svg.iter("rect")} == {"0.080"}


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    """In rows of their own, the longest across the whole width, however little it stands for; the ninth has the first one's color."""
    assert boxes(bars()) == [(340, 4, 640, 16), (340, 28, 160, 16), (340, 52, 0, 16), (340, 76, 0, 16)]
    assert [rect.attrib["class"] for rect in bars().iter("rect")] == ["f0", "f7", "f0", "f1"]


def test_a_bar_has_its_name_at_the_left_and_its_figure_at_the_right() -> None:
    """The name ends ten pixels before the bar; right of the longest one there are 160 for the figure."""
    names = [(f"n{n}", 330, 16 + 24 * row) for row, n in enumerate((0, 7, 8, 9))]
    figures = [("0.5 s", 988, 16), ("0.125 s", 508, 40), ("0.0 s", 348, 64), ("-1.0 s", 348, 88)]
    assert texts(bars()) == [text for row in zip(names, figures, strict=True) for text in row]


def test_usage_is_drawn_by_its_pieces() -> None:
    """A line that ends where a piece is missing; an area with a flat top for each, however low, but for none."""
    assert {path.attrib["class"]: path.attrib["d"] for path in usage().iter("path")} == {
        "peak": "M86.0 250.0V176.5H343.2V250.0ZM343.2 250.0V249.6H600.5V250.0Z",
        "mean": "M86.0 213.3H343.2L343.2 249.6H600.5M857.8 250.0H1115.0",
    }


def test_limits_are_lines_at_their_value() -> None:
    """Up to three times the peak, what is above is left out; a ninth candidate's line is dashed."""
    assert lines(usage(), "limit s0") == [(86, 1115, 213.27, 213.27), (86, 1115, 29.63, 29.63)]
    dashes = [each.get("stroke-dasharray") for each in usage().iter("line") if each.get("class") == "limit s0"]
    assert dashes == ["", "6 4"]
    assert [group.findtext("title") for group in usage().iter("g")] == ["0: 50.0", "8: 300.0"]


def test_usage_stands_between_two_axes() -> None:
    """Round rates with their lines across the drawing, and seconds with their marks below it."""
    seconds = [86, 343.25, 600.5, 857.75, 1115]
    across = [(86, 1115, y, y) for y in (250, 176.54, 103.09, 29.63)]
    assert lines(usage(), "grid") == across + [(x, x, 250, 255) for x in seconds]
    rates = [("0.0", 78, 254), ("100.0", 78, 180.54), ("200.0", 78, 107.09), ("300.0", 78, 33.63)]
    assert texts(usage()) == rates + [(f"00:00:0{n}", x, 270) for n, x in enumerate(seconds)]


@pytest.mark.parametrize(("peak", "limit"), [(0.0, 5e-324), (1e-323, 1e-323), (1e308, 1.7e308)])
def test_any_limit_can_be_drawn(peak: float, limit: float) -> None:
    """Also one that only the least doubles express, of a client that used nothing."""
    curve = Curve(begin_ms=0, end_ms=1_000, piece_ms=1_000, times_ms=[0], mean=[], peak=[peak])
    drawn, left_out = line_chart(curve, [LimitLine(name="a", value=limit, color=0)], "{:g}".format)
    assert left_out == []
    assert all(math.isfinite(float(line.attrib["y1"])) for line in drawn.iter("line"))


SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def test_moments_are_those_of_clocks() -> None:
    """Steps that divide a minute, an hour, a day; as fine as eight of them reach."""
    steps = {8 * SECOND: SECOND, 4 * MINUTE: 30 * SECOND, 8 * MINUTE: MINUTE, 4 * HOUR: 30 * MINUTE, 8 * HOUR: HOUR}
    steps |= {4 * DAY: 12 * HOUR, 8 * DAY: DAY, 8 * 7 * DAY: 7 * DAY, 8 * 365 * DAY: 365 * DAY}
    for length, step in steps.items():
        assert [*round_times(0, length)] == [step * n for n in range(length // step + 1)]
        assert next(iter(round_times(1, length))) == step


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "UTC"])
def test_days_begin_at_midnight_of_the_zone(zone: str) -> None:
    """Also where clocks go back an hour in the period (2026-10-25 in Berlin); and a time beyond the calendar has labels as well."""
    begin, end = (round(datetime(2026, 10, day, 7, tzinfo=UTC).timestamp() * 1_000) for day in (22, 28))
    found = round_times(begin, end, zone=ZoneInfo(zone))
    assert [clock(each, end - begin, ZoneInfo(zone))[-5:] for each in found] == ["00:00"] * 6
    assert round_times(1 << 60, (1 << 60) + 8_000, zone=ZoneInfo(zone))


@pytest.mark.parametrize("hours", [3, 4, 6, 30])
def test_times_that_the_clocks_leave_out_have_no_label(hours: int) -> None:
    """In Berlin 02:00 to 03:00 on 2026-03-29."""
    begin = round(datetime(2026, 3, 28, 22, 30, tzinfo=UTC).timestamp() * 1_000)
    found = [*round_times(begin, begin + hours * 3_600_000, zone=ZoneInfo("Europe/Berlin"))]
    assert found == sorted(set(found))
    labels = [clock(each, 3_600_000, ZoneInfo("Europe/Berlin"))[:2] for each in found]
    assert "02" not in labels
    assert len(found) > hours / 6


def test_a_label_at_the_end_of_an_axis_is_not_cut() -> None:
    """A date and a time have about 67 pixels; the drawing has 1,150."""
    day = 24 * 3_600_000
    curve = Curve(begin_ms=0, end_ms=7 * day, piece_ms=day, times_ms=[0], mean=[1.0], peak=[1.0])
    for svg in (line_chart(curve, [], str)[0], timeline_chart([], 7 * 86_400, begin_ms=0)):
        last = [each for each in svg.iter("text") if each.get("class") == "tick middle"][-1]
        assert last.text == "01-08 00:00"
        assert float(last.attrib["x"]) + 34 <= 1_150


def test_durations_are_round_and_few() -> None:
    """From 0 to the length, in at most eight steps."""
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
        found = round_seconds(length)
        assert found == pytest.approx([step * n for n in range(len(found))])
        assert found[-1] <= length < found[-1] + step
        assert len(found) <= 9


@pytest.mark.parametrize(
    ("label", "squeezed"),
    [("stage 12: foreachPar…on at job.py:75", False), ("W" * 36, True), ("東京" * 18, True), ("l" * 36, False)],
)
def test_a_broad_label_is_not_cut(label: str, *, squeezed: bool) -> None:
    """Its letters are drawn closer, and all of it is in the drawing."""
    texts = timeline_chart([Lane(label=label, rows=[[]])], 60).iter("text")
    (drawn,) = (each for each in texts if each.get("class") == "end")
    assert (drawn.text, drawn.get("textLength")) == (label, "240" if squeezed else None)


def test_spans_begin_and_end_at_their_times() -> None:
    """A second has 14.5 pixels; a mark begins with its span and is drawn into it, and both can be seen however short they are."""
    assert boxes(timeline()) == [
        (264.5, 34, 275.5, 12),
        (569, 34, 116, 12),
        (279, 48, 87, 12),
        (279, 55, 72.5, 5),
        (293.5, 62, 29, 12),
        (308, 84, 2, 12),
        (308, 91, 2, 5),
    ]
    fills = [rect.get("fill") for rect in timeline().iter("rect")]
    assert fills == ["blue", "blue", "blue", "red", "blue", "blue", "red"]
    assert [group.findtext("title") for group in timeline().iter("g")][:2] == ["1 to 20", "22 to 30"]


def test_lanes_stand_below_an_axis() -> None:
    """A tick every ten seconds across all rows, its label above it, and the names of lanes left of their first row."""
    ticks = [250 + 145 * n for n in range(7)]
    labels = ["0", *(f"+{n} s" for n in range(10, 60, 10)), "+1 min"]
    assert lines(timeline(), "grid") == [(x, x, 26, 106) for x in ticks]
    axis = [(label, x, 18) for label, x in zip(labels, ticks, strict=True)]
    assert texts(timeline()) == [*axis, ("a", 240, 45), ("b", 240, 95)]


def test_an_axis_of_times_has_whole_minutes() -> None:
    """In the zone of the reader, wherever the axis begins."""
    svg = timeline_chart([], 300, begin_ms=1_795_392_030_000, zone=ZoneInfo("Europe/Berlin"))
    ticks = [250 + 870 * seconds / 300 for seconds in range(30, 300, 60)]
    assert texts(svg) == [(f"01:0{n}:00", x, 18) for n, x in enumerate(ticks, start=1)]
    assert lines(svg, "grid") == [(x, x, 26, 34) for x in ticks]
