"""Event logs of the kinds in `tests/spark_listener/cases`, which its README lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quotascope.spark_listener.errors import EventLogError
from quotascope.spark_listener.report import document, read_application

CASES = Path(__file__).parents[1] / "cases"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text())


def value(reported: Any, path: str) -> Any:
    """Return the value at a dotted path of the JSON."""
    if path == "took":
        return reported["ended"] - reported["began"]
    if path == "causes":
        return {row["cause"]: [row["failed_attempts"], row["retries"]] for row in reported["causes"]}
    for key in path.split("."):
        reported = reported[int(key)] if isinstance(reported, list) else reported[key]
    return reported


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_report_of_a_kind_of_log(name: str) -> None:
    """The report of a kind of log has the right values, or refuses a file that is no event log."""
    expected = dict(EXPECTED[name])
    refused, note = expected.pop("refused", None), expected.pop("note", None)
    if refused:
        with pytest.raises(EventLogError, match=refused):
            read_application(CASES / name)
        return
    reported = json.loads(json.dumps(document(read_application(CASES / name))))
    assert note is None or [text for text in reported["notes"] if note in text]
    for path, right in expected.items():
        assert value(reported, path) == (pytest.approx(right) if isinstance(right, float) else right), path


def test_every_case_is_expected() -> None:
    """No file of the folder is without right values."""
    assert {path.name for path in CASES.iterdir()} == {*EXPECTED, "README.md", "expected.json"}
