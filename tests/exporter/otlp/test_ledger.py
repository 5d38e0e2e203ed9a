from __future__ import annotations

from structlog.testing import capture_logs

from quotascope.exporter.otlp.push import PushCounts, PushResult

GOOD = PushResult(accepted=10)
PARTIAL = PushResult(accepted=8, rejected=2, reason="too old")
BAD = PushResult(accepted=4, lost=6, reason="no connection")


def test_zeros_come_first() -> None:
    """``increase()`` needs the zero before the first push."""
    health = PushCounts("c").health
    assert health.exports_total == {"success": 0, "partial": 0, "failure": 0}
    assert health.points_total == {"accepted": 0, "rejected": 0, "lost": 0}
    assert health.error is None


def test_everything_is_counted() -> None:
    """Each push by its outcome, each point by its fate."""
    ledger = PushCounts("c")
    for report in (GOOD, PARTIAL, BAD, BAD):
        ledger.add(report)
    health = ledger.health
    assert health.exports_total == {"success": 1, "partial": 1, "failure": 2}
    assert health.points_total == {"accepted": 26, "rejected": 2, "lost": 12}
    assert health.error == "no connection"
    assert ledger.failing


def test_a_push_without_points_may_fail() -> None:
    """When there was no snapshot to push, that is a failure as well."""
    ledger = PushCounts("c")
    ledger.add(PushResult(reason="unexpected"))
    assert ledger.health.exports_total["failure"] == 1


def test_a_change_is_told_once() -> None:
    """A collector that is down for a night is one line in the log, and one when it is back."""
    ledger = PushCounts("http://c")
    with capture_logs() as lines:
        for report in (GOOD, GOOD, BAD, BAD, BAD, GOOD, PARTIAL, PARTIAL):
            ledger.add(report)
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("info", "metrics are pushed"),
        ("warning", "metrics cannot be pushed"),
        ("info", "metrics are pushed"),
        ("warning", "the receiver rejects some points"),
    ]
    assert lines[1]["error"] == "no connection"


def test_another_receiver_counts_on() -> None:
    """What went before stays counted; how it goes with the new one is told."""
    ledger = PushCounts("c")
    ledger.add(BAD)
    ledger.switch("d")
    assert not ledger.failing
    assert ledger.health.error is None
    with capture_logs() as lines:
        ledger.add(BAD)
    assert ledger.health.exports_total["failure"] == 2
    assert [line["receiver"] for line in lines] == ["d"]
