"""What becomes of single lines."""

from typing import Any

from quotascope.pipeline.request_log.parsing import LogSource, Parsed, parse_lines

SOURCE = LogSource(file="/logs/a.log")
AT = 1_795_251_720_655
"""2026-11-21 09:02:00,655 in UTC."""


def parsed(*lines: bytes, source: LogSource = SOURCE) -> Parsed:
    """What becomes of lines from the first of a file on."""
    return parse_lines(lines, range(1, len(lines) + 1), source)


def request(*lines: bytes, source: LogSource = SOURCE) -> dict[str, Any]:
    """The only request."""
    found = parsed(*lines, source=source)
    assert found.quarantine.to_pylist() == []
    (row,) = found.requests.to_pylist()
    return dict(row)


def reason(text: bytes) -> tuple[str, str]:
    """Why a line is in quarantine, in short and in full."""
    found = parsed(text)
    assert len(found.requests) == 0
    (row,) = found.quarantine.to_pylist()
    return row["reason"], row["detail"]
