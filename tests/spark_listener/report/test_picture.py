from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle
from tests.spark_listener.report.throttled import HOSTILE, log

from quotascope.spark_listener.report import ReportError, read_account, write_picture
from quotascope.spark_listener.report.colours import CAUSES, STAGE, THROTTLED


@pytest.mark.parametrize("name", ["", HOSTILE, "\N{SNOWMAN}\u0e01$\\frac$"])
def test_picture(tmp_path: Path, name: str) -> None:
    """Names of any kind are drawn as text, not as formulas, and the throttled time has its colour."""
    write_picture(read_account(log(tmp_path / "app-1", name)), tmp_path / "a.png")
    pixels = (imread(tmp_path / "a.png")[:, :, :3] * 255).round().astype(int)
    assert pixels.shape[0] > 300
    assert pixels.shape[1] > 1_000
    colour = [int(THROTTLED[place : place + 2], 16) for place in (1, 3, 5)]
    assert (pixels == colour).all(axis=2).sum() > 100


def test_picture_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    account = read_account(log(tmp_path / "app-1"))
    with pytest.raises(ReportError, match=r"quotascope\[plots\]"):
        write_picture(account, tmp_path / "a.png")


def test_picture_that_cannot_be_written(tmp_path: Path) -> None:
    """It is said where, and why."""
    account = read_account(log(tmp_path / "app-1"))
    with pytest.raises(ReportError, match=r"missing/a\.png: No such file"):
        write_picture(account, tmp_path / "missing" / "a.png")


@pytest.fixture
def axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Axes:
    """What a picture draws, before it becomes pixels."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))  # fmt: skip
    write_picture(read_account(log(tmp_path / "app-1")), tmp_path / "a.png")
    (figure,) = figures
    (made,) = figure.axes
    return made


def _bars(axes: Axes, *colours: str) -> list[Rectangle]:
    wanted = {to_rgba(colour) for colour in colours}
    bars = [each for each in axes.patches if isinstance(each, Rectangle)]
    return [each for each in bars if each.get_facecolor() in wanted]


def _at(bars: list[Rectangle]) -> list[tuple[float, float, float]]:
    """When they begin, how long they are, and where their middle is below the first."""
    return [
        (bar.get_x(), bar.get_width(), round(bar.get_y() + bar.get_height() / 2, 6))
        for bar in bars
    ]


def test_bars_stand_at_their_times(axes: Axes) -> None:
    """Seconds from left to right; a stage above what failed in it, and room between it and the query."""
    work = [(1, 19, 0), (22, 8, 4.6), (32, 8, 4.6), (42, 8, 4.6)]
    assert _at(_bars(axes, STAGE)) == work
    failed = [(2, 7, 1), (3, 2, 2), (4, 2, 3), (33, 5, 5.6)]
    assert _at(_bars(axes, *CAUSES.values())) == failed
    assert list(axes.get_yticks()) == pytest.approx([0, 4.6])
    assert [each.get_text() for each in axes.get_yticklabels()] == ["stage 0: foreachPartition", "query clicks"]  # fmt: skip


def test_throttled_time_stands_within_its_attempt(axes: Axes) -> None:
    """From the attempt's beginning on, as long as it was told to wait."""
    told = _bars(axes, THROTTLED)
    assert [(bar.get_x(), bar.get_width()) for bar in told] == [(2, 4), (33, 1.5)]
    first, *_, last = _bars(axes, *CAUSES.values())
    for inner, outer in zip(told, (first, last), strict=True):
        assert outer.get_y() < inner.get_y()
        assert inner.get_y() + inner.get_height() < outer.get_y() + outer.get_height()


def test_all_bars_are_within_the_picture(axes: Axes) -> None:
    """The first lane is on top, with room above it and below the last; none hides another."""
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    assert (left, right) == (0, 60)
    assert top < bottom
    bars = _bars(axes, STAGE, *CAUSES.values())
    assert len(bars) == 8
    edges = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars]
    assert 0.5 < min(upper for upper, _ in edges) - top < 1.5
    assert 0.5 < bottom - max(lower for _, lower in edges) < 1.5
    assert all(bar.get_x() >= 0 and bar.get_x() + bar.get_width() <= 60 for bar in bars)
    rows = sorted(set(edges))
    assert all(upper < below for (_, upper), (below, _) in pairwise(rows))
    assert list(axes.get_xticks()) == [0, 10, 20, 30, 40, 50, 60]
