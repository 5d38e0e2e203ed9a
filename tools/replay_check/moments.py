"""
Inference of the moments of decisions to the millisecond, from the throttles that are measured from them.

**Begin of a window.** Kafka reads its clock at some time while a handler thread works on the request, before it charges
it. That takes less than a ms, except with a young JVM or on a busy machine. The throttle time of a byte rate is
measured from the begin of the oldest window: if the window began one ms earlier, the throttle is one ms shorter. So the
moment of the request that began the window follows from the first answer that is measured from there, within the
handler's time.

**A request's own moment.** Times of the log are sums of rounded ms. The throttle of a request shows its own moment,
too, so that an error of a ms or two is corrected for later requests. That matters if clients come back to the ms, as
they do while all throttles are equally long: then it decides where windows begin.

**Side of a border.** A window ends a second after the request that began it. A request that is charged within a ms or
two of the end may belong to that window or to the next one, and the rate differs by its bytes while that window is the
oldest. If the answers that are measured from there are far off, the request is tried on the other side of the border.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .log import NS_PER_MS, Request

ROUNDING_MS: Final = 2
"""Largest error of the log's times on an undisturbed machine."""
_LEAST_EXPLAINED: Final = 2
"""Least number of answers that moving a request must correct; a single one could be corrected by chance."""
_MOST_WRONG: Final = 0.1
"""Largest share of a sensor's answers that may be far off; with more, the cause is not an error of a ms or two."""


@dataclass(slots=True)
class Moments:
    """Moments that one pass over a log has learned."""

    found: dict[int, int] = field(default_factory=dict)
    """Ms by which the decision on a request was earlier than in the log, by line."""
    measured: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Sensor of a request's bytes, and the begin of the sensor's oldest window in epoch ms, by line."""
    _at: dict[str, dict[int, Request]] = field(default_factory=lambda: defaultdict(dict))
    """First request by sensor and moment of the decision."""
    _window_errors: dict[tuple[str, int], int] = field(default_factory=dict)
    """Ms by which a window began earlier than in the log, by sensor and begin; 0 if that explains no error."""

    def charged(self, sensor: str, oldest_ms: int, request: Request) -> None:
        """Record that a request charged a sensor, and the begin of the sensor's oldest window."""
        self.measured[request.line] = sensor, oldest_ms
        self._at[sensor].setdefault(request.decided_ms, request)

    def beside(self, sensor: str, start_ms: int, *, first: bool) -> int | None:
        """Return the line of the first request of a window, or, without `first`, of the last one before; or None."""
        moments = self._at[sensor]
        if first:
            return moments[start_ms].line if start_ms in moments else None
        earlier = max((ms for ms in moments if ms < start_ms), default=None)
        return None if earlier is None else moments[earlier].line

    def answered(self, sensor: str, oldest_ms: int, request: Request, error_ms: int) -> None:
        """
        Learn from the error of a prediction, in ms, for a throttle that was measured from `oldest_ms`.

        The first error of a window moves the window's first request, if that took long enough on its thread to have
        been decided so much earlier. An error that is left and as small as rounding moves the request itself.
        """
        window = sensor, oldest_ms
        first_request = self._at[sensor].get(oldest_ms)
        if window not in self._window_errors:
            self._window_errors[window] = 0
            if first_request is not None and 0 < error_ms <= first_request.thread_ns / NS_PER_MS + 1:
                self._window_errors[window] = error_ms
                self.found[first_request.line] = error_ms
        own_error_ms = error_ms - self._window_errors[window]
        if 0 < abs(own_error_ms) <= ROUNDING_MS:
            self.found.setdefault(request.line, -own_error_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A correction of the moment of a request beside the border of a window."""

    first: bool
    """True to move the window's first request to the window before; False to move the last one before to the window."""
    earlier_ms: int
    """Ms by which the moment is made earlier; negative to make it later."""


MOVES: Final = tuple(
    Move(first=is_first, earlier_ms=ms if is_first else -ms) for ms in (1, 2) for is_first in (False, True)
)


def moved(wrong: Collection[int], moments: Moments, move: Move) -> Mapping[str, int]:
    """
    Return the line of the request to move, by sensor.

    The request is beside the begin of the window from which the sensor's first wrong answer was measured. `wrong` has
    the lines of all wrong answers.
    """
    lines = {}
    for sensor, wrong_line in _first_wrong(wrong, moments):
        oldest_ms = moments.measured[wrong_line][1]
        line = moments.beside(sensor, oldest_ms, first=move.first)
        if line is not None:
            lines[sensor] = line
    return lines


def explained(wrong: Collection[int], remaining: Collection[int], moments: Moments) -> frozenset[str]:
    """Return the sensors with enough corrected answers; `wrong` has the wrong lines before moves, `remaining` after."""
    wrong_by_sensor, remaining_by_sensor = _counts(wrong, moments), _counts(remaining, moments)
    return frozenset(
        sensor for sensor, count in wrong_by_sensor.items() if count - remaining_by_sensor[sensor] >= _LEAST_EXPLAINED
    )


def _first_wrong(wrong: Collection[int], moments: Moments) -> Iterator[tuple[str, int]]:
    """Yield the sensors that may have a wrong border, and the line of their first wrong answer."""
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
