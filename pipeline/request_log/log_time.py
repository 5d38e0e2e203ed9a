"""
The time in front of a line.

log4j's `%d` prints local time and no zone: whoever reads the log has to know it. A pattern that prints the offset is taken at its word.
"""

import re
from datetime import UTC, datetime, tzinfo

from .reasons import Reason, Unreadable

_SECONDS = slice(1, 20)
_MILLISECONDS = slice(21, 24)
_STAMP = re.compile(
    rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?"
)
_REMEMBERED = 10_000


class LogTime:
    """Reads times of one zone; a second is worked out once."""

    __slots__ = ("_known", "_zone")

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._known: dict[bytes, int] = {}

    def usual(self, line: bytes) -> int:
        """Ms UTC of a line that begins with `[2026-11-21 09:02:00,655]`, as Kafka's own configuration writes it. Raises `Unreadable`."""
        seconds = line[_SECONDS]
        known = self._known.get(seconds)
        if known is None:
            known = self._work_out(seconds)
        return known + int(line[_MILLISECONDS])

    def any(self, prefix: bytes) -> int:
        """Ms UTC of the first time in what is in front of the request. Raises `Unreadable` when there is none."""
        found = _STAMP.search(prefix)
        if found is None:
            raise Unreadable(Reason.NO_TIME, "no date and time in front of the request")
        day, clock, fraction, offset = found.groups()
        milliseconds = int((fraction or b"0").ljust(3, b"0")[:3])
        if offset is None:
            return self._work_out(day + b" " + clock) + milliseconds
        return _since_1970(day + b" " + clock + offset, None) + milliseconds

    def _work_out(self, text: bytes) -> int:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[text] = known = _since_1970(text, self._zone)
        return known


def _since_1970(text: bytes, zone: tzinfo | None) -> int:
    try:
        time = datetime.fromisoformat(text.decode())
        zoned = time if zone is None else time.replace(tzinfo=zone)
        return int(zoned.timestamp()) * 1000
    except (ValueError, OverflowError) as error:
        raise Unreadable(Reason.NO_TIME, f"no time of a calendar: {text!r}") from error
