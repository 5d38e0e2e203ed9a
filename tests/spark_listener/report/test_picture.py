from __future__ import annotations

import sys
from pathlib import Path

import pytest
from matplotlib.image import imread
from tests.spark_listener.report.throttled import HOSTILE, log

from quotascope.spark_listener.report import ReportError, read_account, write_picture
from quotascope.spark_listener.report.colours import THROTTLED


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
