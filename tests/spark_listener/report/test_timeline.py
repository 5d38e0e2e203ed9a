from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from tests.spark_listener.report.throttled import log

from quotascope.spark_listener.report import read_account
from quotascope.spark_listener.report.colours import CAUSES
from quotascope.spark_listener.report.drawing import drawing
from quotascope.spark_listener.report.timeline import Span, _place, ticks, timeline


def test_lanes(tmp_path: Path) -> None:
    """A stage has one, and a streaming query one for all of its stages; attempts that overlap are in rows of their own."""
    shown = timeline(read_account(log(tmp_path / "app-1")))
    assert shown.seconds == 60
    assert [lane.label for lane in shown.lanes] == [
        "stage 0: foreachPartition",
        "query clicks",
    ]
    stage, query = shown.lanes
    assert [(span.began, span.ended) for span in stage.work] == [(1, 20)]
    assert [[(span.began, span.ended) for span in row] for row in stage.failed] == [
        [(2, 9)],
        [(3, 5)],
        [(4, 6)],
    ]
    assert [span.began for span in query.work] == [22, 32, 42]
    assert [len(row) for row in query.failed] == [1]


def test_throttled_time_of_an_attempt(tmp_path: Path) -> None:
    """It is drawn as long as it is noted, and never longer than the attempt took."""
    path = log(tmp_path / "app-1")
    (row, *_) = timeline(read_account(path)).lanes[0].failed
    assert row[0].throttled == 4.0
    assert "told to wait 4 s" in row[0].title
    path.write_text(path.read_text().replace("[4000,", "[999000,"))
    text = path.read_text().replace(":4000,", ":999000,").replace("4000", "999000")
    path.write_text(text)
    (row, *_) = timeline(read_account(path)).lanes[0].failed
    assert row[0].throttled == 7.0


def test_lanes_for_which_there_is_no_room(tmp_path: Path) -> None:
    """Those where most went wrong are drawn."""
    shown = timeline(read_account(log(tmp_path / "app-1")), most=1)
    assert [lane.label for lane in shown.lanes] == ["stage 0: foreachPartition"]
    assert shown.not_drawn == 1


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (60.0, [0, 10, 20, 30, 40, 50, 60]),
        (0.001, 1),
        (7_322.0, [0, 1_800, 3_600, 5_400, 7_200]),
        (40_000.0, [0, 7_200, 14_400, 21_600, 28_800, 36_000]),
        (90_000.0, 5),
        (500_000.0, [0, 86_400, 172_800, 259_200, 345_600, 432_000]),
        (1e12, 9),
    ],
)
def test_ticks(whole: float, expected: list[float] | int) -> None:
    """They are round, and few enough to be read."""
    found = ticks(whole)
    if isinstance(expected, list):
        assert found == expected
    else:
        assert 1 <= len(found) <= 9
    assert found[-1] <= whole


def test_overlaps_are_in_rows_up_to_eight() -> None:
    """What ends before another begins shares its row; beyond eight, the last row takes what has no place."""
    spans = [
        Span(began=0, ended=10 + number, colour="", throttled=0, title=str(number))
        for number in range(11)
    ]
    after = Span(began=12.5, ended=20, colour="", throttled=0, title="after")
    rows: list[list[Span]] = []
    for span in (*spans, after):
        _place(rows, span)
    titles = [[span.title for span in row] for row in rows]
    assert titles == [["0", "after"], *([str(n)] for n in range(1, 7)), ["7", "8", "9", "10"]]  # fmt: skip


def test_each_cause_has_its_colour() -> None:
    """None is taken for another."""
    assert len(set(CAUSES.values())) == len(CAUSES) == 10


Box = tuple[float, float, float, float]


def _box(rect: Element) -> Box:
    """Left, top, right, bottom."""
    x, y, width, height = (
        float(rect.attrib[name]) for name in ("x", "y", "width", "height")
    )
    return x, y, x + width, y + height


@pytest.fixture
def svg(tmp_path: Path) -> Element:
    """The drawing of 60 s, with two lanes: a stage with three failed attempts, and a query with one."""
    return drawing(timeline(read_account(log(tmp_path / "app-1"))))


def _ticks(svg: Element) -> list[float]:
    lines = [each for each in svg.iter("line") if each.get("class") == "tick"]
    assert all(each.attrib["x1"] == each.attrib["x2"] for each in lines)
    return [float(each.attrib["x1"]) for each in lines]


def test_ticks_stand_every_ten_seconds(svg: Element) -> None:
    """Side by side, with what they mean above them."""
    ticks = _ticks(svg)
    labels = [each for each in svg.iter("text") if each.get("class") == "tick"]
    assert [each.text for each in labels] == ["0", "+10 s", "+20 s", "+30 s", "+40 s", "+50 s", "+1 min"]  # fmt: skip
    assert [float(each.attrib["x"]) for each in labels] == ticks
    assert [after - before for before, after in pairwise(ticks)] == pytest.approx([150] * 6)  # fmt: skip
    (top,) = {float(each.attrib["y1"]) for each in svg.iter("line")}
    assert all(0 < top - float(each.attrib["y"]) < 12 for each in labels)


def test_bars_begin_and_end_at_their_times(svg: Element) -> None:
    """By the ticks, each at its second; a wait begins with its attempt."""
    zero, *_, minute = _ticks(svg)
    found = [
        tuple((x - zero) / (minute - zero) * 60 for x in _box(rect)[::2])
        for rect in svg.iter("rect")
    ]
    stage = [(1, 20), (2, 9), (2, 6), (3, 5), (4, 6)]
    query = [(22, 30), (32, 40), (42, 50), (33, 38), (33, 34.5)]
    assert found == [pytest.approx(each) for each in stage + query]


def test_bars_have_rows_of_their_own_within_the_drawing(svg: Element) -> None:
    """Rows do not touch, lanes are further apart than rows, a wait is drawn into its attempt, and nothing is cut off."""
    left, top, right, bottom = map(float, svg.attrib["viewBox"].split())
    boxes = [_box(rect) for rect in svg.iter("rect")]
    waits = [boxes.pop(9), boxes.pop(2)]
    for wait, attempt in zip(waits, (boxes[7], boxes[1]), strict=True):
        assert attempt[1] < wait[1] < wait[3] <= attempt[3]
    rows = sorted({(box[1], box[3]) for box in boxes})
    gaps = [below - above for (_, above), (below, _) in pairwise(rows)]
    assert gaps == [2, 2, 2, 10, 2]
    assert {lower - upper for upper, lower in rows} == {12}
    lines = [*svg.iter("line")]
    for line in lines:
        assert top < float(line.attrib["y1"]) < rows[0][0]
        assert rows[-1][1] < float(line.attrib["y2"]) <= bottom
    assert all(left < box[0] and box[2] <= _ticks(svg)[-1] for box in boxes)
    assert _ticks(svg)[-1] + 20 <= right  # the last label is written around its tick
    assert bottom - rows[-1][1] < 20
    names = [each for each in svg.iter("text") if each.get("class") == "lane"]
    assert [each.text for each in names] == ["stage 0: foreachPartition", "query clicks"]  # fmt: skip
    for name, (upper, lower) in zip(names, (rows[0], rows[4]), strict=True):
        assert upper < float(name.attrib["y"]) <= lower
        assert 0 < _ticks(svg)[0] - float(name.attrib["x"]) < 20
