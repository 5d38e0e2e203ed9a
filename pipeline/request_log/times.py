"""
The time of a line.

Log4j's `%d` under any common pattern, beside times that log agents put in front, or in the field of an agent's JSON.

Agents write when they got a line, Kafka when the request was done. Each program puts its own text in front of what it
got, so of several times the last one in front of the request is Kafka's. A number may be a time since 1970 or anything
else, such as the id of a trace: beside a time of the calendar, it counts as a time only if it is near it.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from .schema import Reason, Unreadable

FEWEST: Final = 20
"""Number of requests without a fraction of a second that show that it is always 0."""
_MOST_SECONDS: Final = 10_000
"""Number of parsed seconds that are cached."""
_MONTHS: Final = {name: number for number, name in enumerate(
    (b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"), start=1
)}  # fmt: skip
_OFFSET: Final = (
    rb"(?:\s?(?P<offset{0}>[+-]\d\d:?\d\d(?!\d)|(?:Z|[+-]\d\d)(?![\w.]))"
    rb"|\s(?P<zone{0}>[A-Z]{{2,5}}|[A-Z][a-z]{{2,20}}/[A-Za-z_/]{{2,40}})(?![\w.]))?"
)
_FRACTION: Final = rb"(?:[.,](?P<fraction{0}>\d{{1,9}})|:(?P<colon{0}>\d{{3}})(?!\d))?"
_HALF: Final = rb"(?:\s?(?P<half{0}>[AaPp][Mm])\b)?"


def _part(pattern: bytes, number: bytes) -> bytes:
    """Return a part of `_TIMES`, with a number after the names of its groups: a name may be in a pattern only once."""
    return pattern.replace(b"{0}", number).replace(b"{{", b"{").replace(b"}}", b"}")


_TIMES: Final = re.compile(
    # 2026-11-21 09:02:00,655, the usual one: also with T, slashes, and an offset
    rb"(?P<day>\d{4}[-/.]\d\d[-/.]\d\d)[ T_](?P<clock>\d\d:\d\d:\d\d)"
    + b"".join(_part(pattern, b"") for pattern in (_FRACTION, _HALF, _OFFSET))
    # 21 Nov 2026 09:02:00,655 (log4j's DATE), 21/Nov/2026:09:02:00 +0000
    + rb"|(?<!\d)(?P<day_of_month>\d{1,2})[ /-](?P<month>[A-Za-z]{3})[ /-](?P<year>\d{4})[ :](?P<clock2>\d\d:\d\d:\d\d)"
    + b"".join(_part(pattern, b"2") for pattern in (_FRACTION, _HALF, _OFFSET))
    # 20261121090200655, 20261121T090200,655 (log4j's COMPACT and ISO8601_BASIC)
    + rb"|(?<![\w.:-])(?P<compact>(?:19|2\d)\d\d(?:0\d|1[0-2])[0-3]\d)T?(?P<compact_clock>[0-2]\d[0-5]\d[0-6]\d)"
    rb"(?:[.,]?(?P<fraction3>\d{3,9}))?" + _part(_OFFSET, b"3") + rb"(?![\w])"
    # since 1970: s, ms, us or ns
    rb"|(?<![\w.:/-])(?P<epoch>\d{10}(?:\.\d{1,9})?|\d{13}(?:\.\d{1,6})?|\d{16}|\d{19})(?![\w.:/-])"
    # no date, one without a year (syslog of RFC 3164), or no seconds
    rb"|(?<![\w.:+-])(?P<incomplete>\d\d:\d\d(?::\d\d)?)(?![\w:])"
)
_NEAR_MS: Final = 86_400_000
"""Greatest difference between a number since 1970 and a time of the calendar in front of it."""
_OF_LOG4J: Final = (10, 13)
"""Numbers of digits of log4j2's UNIX and UNIX_MILLIS; a number with others behind a time is not a time."""
_FIRST_MS: Final = int(datetime(2011, 1, 1, tzinfo=UTC).timestamp()) * 1_000
"""Kafka's first release: a number that is an earlier time is none."""
_ABBREVIATIONS: Final = frozenset(
    b"EST EDT CST CDT MST MDT PST PDT AKST AKDT HST AST ADT NST NDT CET CEST MEZ MESZ WET WEST EET EEST BST IST JST "
    b"KST SGT HKT AEST AEDT ACST "
    b"ACDT AWST NZST NZDT MSK WIB PHT PKT BRT ART CLT SAST EAT WAT CAT GST".split()
)
"""Abbreviations of zones; other words in capitals are levels or names."""
_DASHES: Final = bytes.maketrans(b"/.", b"--")
_OF_UTC: Final = frozenset((b"UTC", b"GMT", b"UT"))


class Moment(NamedTuple):
    """A time of a line."""

    at_ms: int
    """Time since 1970, UTC."""
    precision_ms: int
    """1, 10, 100 or 1,000, by the digits of the fraction of a second."""


class Clock:
    """Reads times of programs with clocks in one zone."""

    __slots__ = ("_zone", "seconds")

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self.seconds: dict[bytes, int] = {}
        """Ms since 1970 of seconds in the zone."""

    def second(self, text: bytes) -> int:
        """Return ms since 1970 of `2026-11-21 09:02:00` in the zone. Raises `Unreadable`."""
        second = self.seconds.get(text)
        if second is None:
            if len(self.seconds) >= _MOST_SECONDS:
                self.seconds.clear()
            self.seconds[text] = second = since_1970(text, self._zone)
        return second

    def last_in(self, prefix: bytes) -> Moment:
        """Return the last time of a text. Raises `Unreadable`, also if that time lacks its date."""
        times = [match.groupdict() for match in _TIMES.finditer(prefix)]
        if not times:
            raise Unreadable(Reason.NO_TIME, "no date and time in front of the request")
        written = [group for group in times if not group["epoch"]]
        if not written:
            return _of_numbers([group["epoch"].decode() for group in times])
        last_time = written[-1]
        if last_time["incomplete"]:
            raise Unreadable(
                Reason.NO_TIME,
                (
                    "the time in front of the request has no date, no year or no seconds, or a date of which the order "
                    "is not certain: use the pattern [%d] %p %m (%c)%n"
                ),
            )
        moment = self._written(last_time)
        if times[-1]["epoch"]:
            number = times[-1]["epoch"].decode()
            number_time = of_number(number)
            if abs(number_time.at_ms - moment.at_ms) <= _NEAR_MS:
                return number_time
            if len(number.partition(".")[0]) in _OF_LOG4J and number_time.at_ms >= _FIRST_MS:
                raise Unreadable(
                    Reason.NO_TIME,
                    (
                        f"two times in front of the request are more than a day apart, of the calendar and {number} "
                        "since 1970: leave one out of the pattern, or what an agent adds"
                    ),
                )
        return moment

    def _written(self, group: dict[str, bytes | None]) -> Moment:
        """
        Read the parts of a time of the calendar.

        `number` is the one after the names of the groups: none for a date of numbers, 2 for one with a name of a month,
        3 for one without separators.
        """
        date: bytes
        if day := group["day"]:
            date, number = day.translate(_DASHES), ""
        elif month := group["month"]:
            number_of_month = _MONTHS.get(month.lower())
            if number_of_month is None:
                raise Unreadable(Reason.NO_TIME, f"no month of English: {month.decode(errors='replace')}")
            date = b"%b-%02d-%02d" % (group["year"] or b"", number_of_month, int(group["day_of_month"] or 0))
            number = "2"
        else:
            digits = group["compact"] or b""
            date, number = b"-".join((digits[:4], digits[4:6], digits[6:])), "3"
        if number == "3":
            digits = group["compact_clock"] or b""
            clock = b":".join((digits[:2], digits[2:4], digits[4:]))
        else:
            clock = _of_24_hours(group[f"clock{number}"] or b"", group[f"half{number}"])
        fraction = group[f"fraction{number}"] or group.get(f"colon{number}") or b""
        second, offset = date + b" " + clock, group[f"offset{number}"]
        zone = group[f"zone{number}"]
        if offset is None and zone and b"/" in zone:
            at_ms = since_1970(second, _zone_of(zone))
        else:
            offset = offset or (self._offset_of(zone, second) if zone else None)
            at_ms = self.second(second) if offset is None else since_1970(second + offset, None)
        fraction_ms = int(fraction.ljust(3, b"0")[:3])
        precision_ms = 10 ** (3 - min(3, len(fraction)))
        return Moment(at_ms + fraction_ms, precision_ms)

    def _offset_of(self, zone: bytes, second: bytes) -> bytes | None:
        """
        Return the offset of a zone's abbreviation; None for the clock's own zone.

        Raises `Unreadable` for another one: CST has three meanings.
        """
        if zone in _OF_UTC:
            return b"Z"
        try:
            local = datetime.fromisoformat(second.decode()).replace(tzinfo=self._zone)
        except ValueError:
            return None  # refused with a better reason later
        names = {local.tzname(), local.replace(fold=1).tzname()}
        if zone not in _ABBREVIATIONS or zone.decode() in names:
            return None
        raise Unreadable(
            Reason.NO_TIME, f"the time is of the zone {zone.decode()}, which has several meanings: pass --log-time-zone"
        )


def _of_numbers(numbers: Sequence[str]) -> Moment:
    """Return the last time of numbers alone. Raises `Unreadable` if they may be of different days."""
    moments = [of_number(number) for number in numbers]
    possible = [moment for moment in moments if moment.at_ms >= _FIRST_MS] or moments
    if max(possible).at_ms - min(possible).at_ms > _NEAR_MS:
        raise Unreadable(
            Reason.NO_TIME,
            f"of the numbers {', '.join(numbers[:4])} in front of the request, it is not certain which is its time",
        )
    return possible[-1]


def has_time(prefix: bytes) -> bool:
    """Return whether a text contains a time, even an incomplete one."""
    return _TIMES.search(prefix) is not None


def of_number(text: str) -> Moment:
    """Return the time of a number since 1970: seconds, ms, us or ns, by its length. Raises `Unreadable`."""
    whole, _, fraction = text.partition(".")
    scale = {10: 0, 13: 3, 16: 6, 19: 9}.get(len(whole))
    if scale is None:
        raise Unreadable(Reason.NO_TIME, f"no time since 1970: {text[:40]!r}")
    digits = whole[10:] + fraction
    at_ms = int(whole[:10]) * 1_000 + int(digits.ljust(3, "0")[:3])
    return Moment(at_ms, 10 ** (3 - min(3, len(digits))))


def of_value(value: Any, clock: Clock) -> Moment | None:  # noqa: ANN401 - any value of JSON
    """Return the time in a field of JSON: a text, a number since 1970, or log4j2's `instant`; None for others."""
    try:
        if isinstance(value, dict):
            nano = value.get("nanoOfSecond", 0)
            return Moment(int(value["epochSecond"]) * 1_000 + int(nano) // 1_000_000, 1)
        if isinstance(value, str):
            return clock.last_in(value.encode("utf-8", "surrogatepass"))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return of_number(f"{value:.6f}" if isinstance(value, float) else str(value))
    except (Unreadable, KeyError, TypeError, ValueError, OverflowError):
        return None
    return None


def since_1970(text: bytes, zone: tzinfo | None) -> int:
    """Return ms since 1970 of a time, in `zone` if the time has no offset. Raises `Unreadable`."""
    try:
        time = datetime.fromisoformat(text.decode())
        zoned = time if zone is None else time.replace(tzinfo=zone)
        first_s, second_s = zoned.timestamp(), zoned.replace(fold=1).timestamp()
    except (ValueError, OverflowError) as error:
        raise Unreadable(Reason.NO_TIME, f"no time of a calendar: {text!r}") from error
    # A time that clocks show twice has a second meaning (`fold`), an hour later. If all such times were taken for the
    # first hour, it would have the requests of both.
    if first_s < second_s:
        advice = "read the lines of each by themselves with a zone that has no summer time, such as Etc/GMT-1"
        raise Unreadable(Reason.AMBIGUOUS_TIME, f"the clocks of {zone} show it twice: {advice}")
    return int(first_s) * 1_000


def _zone_of(name: bytes) -> tzinfo:
    """Return the zone of an IANA name. Raises `Unreadable`."""
    try:
        return ZoneInfo(name.decode())
    except (KeyError, OSError, ValueError) as error:
        raise Unreadable(Reason.NO_TIME, f"the time is of an unknown zone: {name[:60]!r}") from error


def _of_24_hours(clock: bytes, half: bytes | None) -> bytes:
    """Return a time of day such as `09:02:00` in 24 hours; `half` is AM or PM, None if it is already."""
    if half is None:
        return clock
    hour = int(clock[:2]) % 12 + (12 if half.lower() == b"pm" else 0)
    return b"%02d" % hour + clock[2:]
