"""Usage history on disk, made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.pipeline.recommend.rows import history

from quotascope.pipeline.history import History, rollup


def make_folder(folder: Path, rows: Iterable[dict[str, Any]]) -> str:
    """What `quotascope ingest` would have made of logs with these requests."""
    made = History.create(str(folder), buckets=4)
    detail = history(rows)
    made.detail.append("by hand", detail)
    made.seconds.append("by hand", rollup(detail))
    return str(folder)
