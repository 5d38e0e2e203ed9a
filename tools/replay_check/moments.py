"""
When a request that began a window was decided on, to the millisecond.

The log tells it within the time that the request took in a handler thread: Kafka looks at its clock somewhere in there, before it charges.
That is below a ms, but for a young JVM or a busy machine. Throttles are measured from the beginning of the oldest window, and each that
comes from a byte rate gives it away: one ms earlier makes it one ms shorter. So it is read from the first answer that shows it, within
what the handler's time allows.

The log's times are whole ms, put together from several. A throttled request shows its own moment, so that a ms or two are put right for
what comes later: where clients come back to the ms, as they do when each throttle is as long as the last, it decides which windows there
are.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from .request import NS_PER_MS, Request

ROUNDING_MS: Final = 2
"""How far off the log's times are when nothing is in the way."""


@dataclass(slots=True)
class Moments:
    """What one pass over a log learns."""

    found: dict[int, int] = field(default_factory=dict)
    """Ms by which requests were decided on earlier than the log says, by line."""
    measured: dict[int, tuple[str, int]] = field(default_factory=dict)
    """By line: the sensor of its bytes, and when the oldest window began that its throttle was measured from."""
    _at: dict[str, dict[int, Request]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Requests by sensor and moment."""
    _settled: dict[tuple[str, int], int] = field(default_factory=dict)
    """How much too late a window was taken to begin, by sensor and beginning."""

    def charged(self, sensor: str, oldest_ms: int, request: Request) -> None:
        """A sensor was charged, whose oldest window began then."""
        self.measured[request.line] = sensor, oldest_ms
        self._at[sensor].setdefault(request.decided_ms, request)

    def beside(self, sensor: str, start_ms: int, *, first: bool) -> int | None:
        """The line of the `first` request of a window, or of the one before it; None without one."""
        moments = self._at[sensor]
        if first:
            return moments[start_ms].line if start_ms in moments else None
        earlier = max((ms for ms in moments if ms < start_ms), default=None)
        return None if earlier is None else moments[earlier].line

    def answered(
        self, sensor: str, oldest_ms: int, request: Request, error_ms: int
    ) -> None:
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
