"""docs/request-log.md says what the code does."""

from pathlib import Path

from tests.pipeline.log_lines import CAPTURE, captured

from quotascope.pipeline.releases import LAYOUTS
from quotascope.pipeline.request_log.schema import REQUESTS, Reason

PAGE = (Path(__file__).parents[3] / "docs" / "request-log.md").read_text()


def test_columns() -> None:
    """Each column has its line, in the order of the table."""
    lines = [f"- `{column.name}`: {(column.metadata or {})[b'description'].decode()}" for column in REQUESTS]
    assert "\n".join(lines) in PAGE


def test_reasons_and_layouts() -> None:
    """Each reason for quarantine and each layout is explained."""
    for reason in Reason:
        assert f"\n- `{reason}`: " in PAGE
    for layout in LAYOUTS:
        assert f"`{layout.name}`" in PAGE


def test_sizes() -> None:
    """The bytes of a line are those of the log in the tests."""
    count = len(captured())
    plain = sum(len(text) + 1 for text in captured()) / count
    packed = CAPTURE.stat().st_size / count
    assert f"a line takes {plain:,.0f} bytes, and {packed:.0f} when" in PAGE
