from __future__ import annotations

from tests.exporter.examples import usage

from quotascope.exporter.ranking import most_pressing
from quotascope.metrics import QuotaType

THROTTLED = usage(user="throttled", throttle_time_seconds=2.0)
FULL = usage(user="full", usage=9.0, limit=10.0)
HALF = usage(user="half", usage=5.0, limit=10.0)
INDEBTED = usage(
    QuotaType.CONTROLLER_MUTATION, "indebted", tokens=-5.0, burst_tokens=10.0
)
IDLE = usage(user="idle", usage=0.0, limit=10.0)
UNLIMITED = usage(user="unlimited", usage=1e9)
NEGATIVE = usage(QuotaType.FETCH, "unrecorded", usage=-5.0, limit=10.0)


def test_throttled_come_first_then_the_closest_to_their_limit() -> None:
    """A bucket in debt counts as above its limit; who uses nothing or has no limit is left out."""
    everybody = [IDLE, HALF, UNLIMITED, INDEBTED, NEGATIVE, THROTTLED, FULL]
    assert most_pressing(everybody, 10) == [THROTTLED, INDEBTED, FULL, HALF]


def test_no_more_than_asked_for() -> None:
    """A list for people has an end."""
    assert most_pressing([HALF, FULL], 1) == [FULL]
    assert most_pressing([HALF, FULL], 0) == []
