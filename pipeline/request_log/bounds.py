"""
Which durations and times a line can have.

A day makes a partition of a table, so one line with a time of another age would damage a table for good.
"""

from datetime import UTC, datetime
from typing import Any, Final

from .entry import Entry
from .reasons import Reason, Unreadable

_DAY_MS: Final = 86_400_000
LONGEST_WORK_MS: Final = _DAY_MS
"""Longest that a request is worked on, or its answer waits to be sent."""
LONGEST_WAIT_MS: Final = (1 << 31) - 1
"""Longest that a request waits for others: the protocol's timeouts are int32, and `max.poll.interval.ms` is set to all of it at times."""
FIRST_MS: Final = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 1000
LAST_MS: Final = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * 1000
"""Times from `FIRST_MS` to before this are read."""


def check(completed: int, entry: Entry[Any, Any]) -> None:
    """Raise `Unreadable` when a line was logged at a time, or holds a duration, that no broker writes."""
    if not FIRST_MS <= completed < LAST_MS:
        raise _refused("the time is not in the years 2000 to 2199")
    if not (
        0 <= entry.local_time_ms <= LONGEST_WORK_MS
        and 0 <= entry.response_queue_time_ms <= LONGEST_WORK_MS
        and 0 <= entry.send_time_ms <= LONGEST_WORK_MS
    ):
        raise _refused("a duration is below 0 or above a day")
    if not 0 <= entry.remote_time_ms <= LONGEST_WAIT_MS:
        raise _refused("`remoteTimeMs` is below 0 or more than an int32")


def _refused(why: str) -> Unreadable:
    return Unreadable(Reason.UNKNOWN_SHAPE, why)
