"""The throttle told in responses, added up: a counter out of a histogram's mean and count."""

from __future__ import annotations


class RequestThrottle:
    """
    Totals of one node by request, which never go back while the node runs.

    Kafka's ``ThrottleTimeMs`` is a histogram since the start, so mean times count is its sum, and that is
    a whole number of milliseconds. But the two are read one after the other, and requests come
    in between: a total can come out a little too high, and a counter that then went back would
    look like a restart.
    """

    def __init__(self) -> None:
        self._started_at: float | None = None
        self._totals: dict[str, tuple[float, float]] = {}

    def began(self, started_at: float | None) -> None:
        """Forget everything when the node was started anew; None when it does not tell."""
        if started_at != self._started_at:
            self._started_at = started_at
            self._totals.clear()

    def total_ms(self, request: str, mean_ms: float, count: float) -> float:
        """The total throttle of a request, in ms."""
        total = float(round(mean_ms * count))
        last_count, last_total = self._totals.get(request, (0.0, 0.0))
        if count >= last_count:
            total = max(total, last_total)
        self._totals[request] = (count, total)
        return total
