from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark_listener.report.throttled import log

from quotascope.spark_listener.report import read_account
from quotascope.spark_listener.report.colours import CAUSES
from quotascope.spark_listener.report.timeline import ticks, timeline


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
        (90_000.0, 5),
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


def test_each_cause_has_its_colour() -> None:
    """None is taken for another."""
    assert len(set(CAUSES.values())) == len(CAUSES) == 10
