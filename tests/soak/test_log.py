"""Which lines of the exporter's log the soak takes as they are."""

import pytest
from benchmarks.soak.exporter import is_expected


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "info", "msg": "listening"}',
        '{"level": "warning", "msg": "source is down", "error": "no"}',
        '{"level": "warning", "msg": "no quotas", "advice": "set some"}',
    ],
)
def test_line_about_the_trouble_is_expected(line: str) -> None:
    """News, and warnings of what is really wrong."""
    assert is_expected(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "error", "msg": "a request failed"}',
        '{"level": "warning", "msg": "Unclosed client session"}',
        '{"level": "info", "msg": "well", "exception": "Traceback"}',
        "Traceback (most recent call last):",
        "[]",
        "",
    ],
)
def test_anything_else_is_not(line: str) -> None:
    """Errors, what libraries complain of, tracebacks, and what is no line of a log."""
    assert not is_expected(line)
