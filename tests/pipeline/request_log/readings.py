"""Lines as the reader of request logs takes them."""

from typing import Any

from quotascope.pipeline.request_log.parsing import LogSource, Parsed, parse_lines

SOURCE = LogSource(file="/logs/a.log")

AT = 1_795_251_720_655
"""2026-11-21 09:02:00,655 in UTC."""


def parsed(*lines: bytes, source: LogSource = SOURCE) -> Parsed:
    return parse_lines(lines, range(1, len(lines) + 1), source)


def request(text: bytes, source: LogSource = SOURCE) -> dict[str, Any]:
    result = parsed(text, source=source)
    assert result.quarantine.to_pylist() == []
    (row,) = result.requests.to_pylist()
    return dict(row)


def reason(text: bytes) -> tuple[str, str]:
    """Why a line is in quarantine, in short and in full."""
    result = parsed(text)
    assert len(result.requests) == 0
    (row,) = result.quarantine.to_pylist()
    return row["reason"], row["detail"]
