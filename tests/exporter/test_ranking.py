from __future__ import annotations

from typing import Any

import pytest
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


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"throttle_time_seconds": 0.01}, {"usage": 9_000.0, "limit": 10.0}),
        ({"throttle_time_seconds": 2.0}, {"throttle_time_seconds": 1.0, "usage": 90.0, "limit": 10.0}),
        ({"throttle_time_seconds": 1.0, "usage": 9.0, "limit": 10.0}, {"throttle_time_seconds": 1.0}),
        ({"usage": 9.0, "limit": 10.0}, {"usage": 80.0, "limit": 100.0}),
        ({"usage": 1.0, "limit": 10.0, "tokens": 1.0, "burst_tokens": 10.0}, {"usage": 8.0, "limit": 10.0}),
        ({"usage": 9.0, "limit": 10.0, "tokens": 9.0, "burst_tokens": 10.0}, {"usage": 8.0, "limit": 10.0}),
    ],
)  # fmt: skip
def test_of_two_the_more_pressing(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Any throttle before any use, the longer one first; then the fuller of rate and burst, by its part and not its amount."""
    pressing, other = usage(user="a", **first), usage(user="b", **second)
    assert most_pressing([other, pressing], 2) == [pressing, other]
