"""The committed JSON is what the code writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quotascope.dashboards.files import file_text

GENERATED = Path(__file__).parents[2] / "dashboards" / "generated"


def test_committed_files_are_current(dashboards: dict[str, dict[str, Any]]) -> None:
    """A change of a dashboard is followed by ``make docs``."""
    expected = {f"{uid}.json": file_text(each) for uid, each in dashboards.items()}
    found = {path.name: path.read_text("utf-8") for path in GENERATED.glob("*.json")}
    assert found == expected, "run: make docs"


@pytest.mark.parametrize(
    "path", sorted(GENERATED.glob("*.json")), ids=lambda path: path.stem
)
def test_committed_files_hold_no_nulls_but_the_lowest_threshold(path: Path) -> None:
    """Grafana writes none, and its types allow none."""
    before = ""
    for line in path.read_text("utf-8").splitlines():
        if line.rstrip(",").endswith(" null"):
            assert line.strip() == '"value": null'
            assert '"color"' in before
        before = line
