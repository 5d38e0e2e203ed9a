"""Which lines of the exporter's log the soak takes as they are."""

import pytest
from benchmarks.soak.exporter import is_expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"level": "info", "msg": "listening"}', True),
        ('{"level": "warning", "msg": "source is down", "error": "no"}', True),
        ('{"level": "warning", "msg": "no quotas", "advice": "set some"}', True),
        ('{"level": "error", "msg": "a request failed"}', False),
        ('{"level": "warning", "msg": "Unclosed client session"}', False),
        ('{"level": "info", "msg": "well", "exception": "Traceback"}', False),
        ("Traceback (most recent call last):", False),
        ("[]", False),
        ("", False),
    ],
)
def test_lines_that_are_expected(line: str, *, expected: bool) -> None:
    """News, and warnings of what is really wrong; not errors, complaints of libraries, tracebacks, and other lines."""
    assert is_expected(line) == expected
