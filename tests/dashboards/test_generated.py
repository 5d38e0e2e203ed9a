"""The committed JSON is what the code writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quotascope.dashboards.files import file_text

GENERATED = Path(__file__).parents[2] / "dashboards" / "generated"


def test_committed_files_are_current(dashboards: dict[str, dict[str, Any]]) -> None:
    """A change of a dashboard is followed by ``make docs``."""
    expected = {f"{uid}.json": file_text(dashboard) for uid, dashboard in dashboards.items()}
    committed = {path.name: path.read_text("utf-8") for path in GENERATED.glob("*.json")}
    assert committed == expected, "run: make docs"
