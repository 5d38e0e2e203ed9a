"""
Moments of the decisions on requests that began a window, to the millisecond.

The log shows it within the time that the request took in a handler thread: Kafka looks at its clock somewhere in there,
before it charges. That is below a ms, but for a young JVM or a busy machine. Throttles are measured from the beginning
of the oldest window, and each that comes from a byte rate gives it away: one ms earlier makes it one ms shorter. So it
is read from the first answer that shows it, within what the handler's time allows.

The log's times are whole ms, put together from several. A throttled request shows its own moment, so that a ms or two
are put right for what comes later: where clients come back to the ms, as they do when each throttle is as long as the
last, it decides which windows there are.

On which side of a window's end a request fell.

A window ends a second after the request that began it, both moments are whole ms in the log, and what is charged within
a ms or two of that end may belong to the window before or to the one after. Each is a request's bytes more or less for
as long as the window is the oldest. Answers measured from there show which it was: where they are far off, the request
beside the border is tried on its other side.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .log import NS_PER_MS, Request

ROUNDING_MS: Final = 2
"""Error of the log's times without disturbances."""
_LEAST_EXPLAINED: Final = 2
"""Answers that one moved request has to put right: a single one could be right by chance."""
_MOST_WRONG: Final = 0.1
"""Greatest share of a sensor's answers that may be far off: if it is larger, the error is not in a ms or two."""


@dataclass(slots=True)
class Moments:
    """Results of one pass over a log that are about moments."""

    found: dict[int, int] = field(default_factory=dict)
    """Ms by which requests were decided on before the time in the log, by line."""
    measured: dict[int, tuple[str, int]] = field(default_factory=dict)
    """
    Windows that throttles were measured from, by line: the sensor of its bytes, and the beginning of its oldest window.
    """
    _at: dict[str, dict[int, Request]] = field(default_factory=lambda: defaultdict(dict))
    """Requests by sensor and moment."""
    _settled: dict[tuple[str, int], int] = field(default_factory=dict)
    """Number of times that a window was taken to begin too late, by sensor and beginning."""

    def charged(self, sensor: str, oldest_ms: int, request: Request) -> None:
        """Record that a sensor was charged, and the beginning of its oldest window."""
        self.measured[request.line] = sensor, oldest_ms
        self._at[sensor].setdefault(request.decided_ms, request)

    def beside(self, sensor: str, start_ms: int, *, first: bool) -> int | None:
        """Return the line of the `first` request of a window, or of the one before it; None without one."""
        moments = self._at[sensor]
        if first:
            return moments[start_ms].line if start_ms in moments else None
        earlier = max((ms for ms in moments if ms < start_ms), default=None)
        return None if earlier is None else moments[earlier].line

    def answered(self, sensor: str, oldest_ms: int, request: Request, error_ms: int) -> None:
        """Record the error of the prediction for a throttle that was measured from a moment."""
        key = sensor, oldest_ms
        first_request = self._at[sensor].get(oldest_ms)
        if key not in self._settled:
            most_ms = 0.0 if first_request is None else first_request.thread_ns / NS_PER_MS + 1
            early = 0 < error_ms <= most_ms
            self._settled[key] = error_ms if early else 0
            if early and first_request is not None:
                self.found[first_request.line] = error_ms
        left_ms = error_ms - self._settled[key]
        if 0 < abs(left_ms) <= ROUNDING_MS:
            self.found.setdefault(request.line, -left_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A request beside a border, and its move by a ms or two."""

    first: bool
    """
    True if it is the window's first request, moved earlier into the window before; False for the one before it, moved
    later.
    """
    earlier_ms: int


MOVES: Final = tuple(
    Move(first=is_first, earlier_ms=ms if is_first else -ms) for ms in (1, 2) for is_first in (False, True)
)


def moved(wrong: Collection[int], moments: Moments, move: Move) -> Mapping[str, int]:
    """
    Return, by sensor, the line that a move is about.

    It is beside the beginning of the oldest window of the sensor's first wrong answer.
    """
    lines = {}
    for sensor, wrong_line in _first_wrong(wrong, moments):
        oldest_ms = moments.measured[wrong_line][1]
        line = moments.beside(sensor, oldest_ms, first=move.first)
        if line is not None:
            lines[sensor] = line
    return lines


def explained(wrong: Collection[int], remaining: Collection[int], moments: Moments) -> frozenset[str]:
    """Return the sensors with enough corrected answers: `wrong` were far off before the move, `remaining` still are."""
    wrong_by_sensor, remaining_by_sensor = _counts(wrong, moments), _counts(remaining, moments)
    return frozenset(
        sensor for sensor, count in wrong_by_sensor.items() if count - remaining_by_sensor[sensor] >= _LEAST_EXPLAINED
    )


def _first_wrong(wrong: Collection[int], moments: Moments) -> Iterator[tuple[str, int]]:
    """Yield the first wrong answer of each sensor with enough of them."""
    firsts: dict[str, int] = {}
    for line in sorted(wrong & moments.measured.keys()):
        firsts.setdefault(moments.measured[line][0], line)
    counts, answers = _counts(wrong, moments), _counts(moments.measured, moments)
    for sensor, line in firsts.items():
        if _LEAST_EXPLAINED <= counts[sensor] <= answers[sensor] * _MOST_WRONG:
            yield sensor, line


def _counts(lines: Collection[int], moments: Moments) -> Counter[str]:
    """Return the number of answers of each sensor among some lines."""
    return Counter(moments.measured[line][0] for line in lines if line in moments.measured)
