from structlog.testing import capture_logs

from quotascope.exporter.logs import RateLimitedLog


def test_at_once_and_then_once_a_minute() -> None:
    """With how often it happened since the last line, and what it was this time."""
    now = 0.0
    event = RateLimitedLog("it rains", clock=lambda: now)
    with capture_logs() as lines:
        for now in (0.0, 1.0, 59.0, 60.0, 61.0):
            event.add(at=now)
    assert lines == [
        {"event": "it rains", "log_level": "warning", "times": 1, "at": 0.0},
        {"event": "it rains", "log_level": "warning", "times": 3, "at": 60.0},
    ]
