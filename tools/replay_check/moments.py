"""
When a request that began a window was decided on, to the millisecond.

The log shows it within the time that the request took in a handler thread: Kafka looks at its clock somewhere in there, before it charges.
That is below a ms, but for a young JVM or a busy machine. Throttles are measured from the beginning of the oldest window, and each that
comes from a byte rate gives it away: one ms earlier makes it one ms shorter. So it is read from the first answer that shows it, within
what the handler's time allows.

The log's times are whole ms, put together from several. A throttled request shows its own moment, so that a ms or two are put right for
what comes later: where clients come back to the ms, as they do when each throttle is as long as the last, it decides which windows there
are.

On which side of a window's end a request fell.

A window ends a second after the request that began it, both moments are whole ms in the log, and what is charged within a ms or two of
that end may belong to the window before or to the one after. Each is a request's bytes more or less for as long as the window is the
oldest. Answers measured from there show which it was: where they are far off, the request beside the border is tried on its other side.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .log import NS_PER_MS, Request

ROUNDING_MS: Final = 2
"""How far off the log's times are when nothing is in the way."""
_LEAST_EXPLAINED: Final = 2
"""Answers that one moved request has to put right: a single one could be right by chance."""
_MOST_WRONG: Final = 0.1
"""Share of a sensor's answers: where more are far off, it is not a ms that is wrong."""


@dataclass(slots=True)
class Moments:
    """What one pass over a log learns."""

    found: dict[int, int] = field(default_factory=dict)
    """Ms by which requests were decided on earlier than the log says, by line."""
    measured: dict[int, tuple[str, int]] = field(default_factory=dict)
    """By line: the sensor of its bytes, and when the oldest window began that its throttle was measured from."""
    _at: dict[str, dict[int, Request]] = field(default_factory=lambda: defaultdict(dict))
    """Requests by sensor and moment."""
    _settled: dict[tuple[str, int], int] = field(default_factory=dict)
    """How much too late a window was taken to begin, by sensor and beginning."""

    def charged(self, sensor: str, oldest_ms: int, request: Request) -> None:
        """A sensor was charged; its oldest window began then."""
        self.measured[request.line] = sensor, oldest_ms
        self._at[sensor].setdefault(request.decided_ms, request)

    def beside(self, sensor: str, start_ms: int, *, first: bool) -> int | None:
        """The line of the `first` request of a window, or of the one before it; None without one."""
        moments = self._at[sensor]
        if first:
            return moments[start_ms].line if start_ms in moments else None
        earlier = max((ms for ms in moments if ms < start_ms), default=None)
        return None if earlier is None else moments[earlier].line

    def answered(self, sensor: str, oldest_ms: int, request: Request, error_ms: int) -> None:
        """A throttle measured from then on was predicted with this error."""
        key = sensor, oldest_ms
        first = self._at[sensor].get(oldest_ms)
        if key not in self._settled:
            most_ms = 0.0 if first is None else first.thread_ns / NS_PER_MS + 1
            early = 0 < error_ms <= most_ms
            self._settled[key] = error_ms if early else 0
            if early and first is not None:
                self.found[first.line] = error_ms
        left_ms = error_ms - self._settled[key]
        if 0 < abs(left_ms) <= ROUNDING_MS:
            self.found.setdefault(request.line, -left_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A request beside a border, moved by a ms or two."""

    first: bool
    """Whether it is the window's first request, moved earlier into the window before; else the one before it, moved later."""
    earlier_ms: int


MOVES: Final = tuple(Move(first=first, earlier_ms=ms if first else -ms) for ms in (1, 2) for first in (False, True))


def moved(wrong: Collection[int], moments: Moments, move: Move) -> Mapping[str, int]:
    """By sensor: the line that a move is about, beside the beginning of the oldest window of the sensor's first wrong answer."""
    found = {}
    for sensor, line in _first_wrong(wrong, moments):
        oldest_ms = moments.measured[line][1]
        beside = moments.beside(sensor, oldest_ms, first=move.first)
        if beside is not None:
            found[sensor] = beside
    return found


def explained(wrong: Collection[int], left: Collection[int], moments: Moments) -> frozenset[str]:
    """Sensors of which a move put enough answers right; `wrong` were far off before it, `left` still are."""
    before, after = _counts(wrong, moments), _counts(left, moments)
    return frozenset(sensor for sensor, count in before.items() if count - after[sensor] >= _LEAST_EXPLAINED)


def _first_wrong(wrong: Collection[int], moments: Moments) -> Iterator[tuple[str, int]]:
    """Of each sensor with enough wrong answers the first of them."""
    firsts: dict[str, int] = {}
    for line in sorted(wrong & moments.measured.keys()):
        firsts.setdefault(moments.measured[line][0], line)
    counts, answers = _counts(wrong, moments), _counts(moments.measured, moments)
    for sensor, line in firsts.items():
        if _LEAST_EXPLAINED <= counts[sensor] <= answers[sensor] * _MOST_WRONG:
            yield sensor, line


def _counts(lines: Collection[int], moments: Moments) -> Counter[str]:
    """How many of some answers each sensor has."""
    return Counter(moments.measured[line][0] for line in lines if line in moments.measured)
