"""What a histogram of Kafka added up: a counter out of its mean and its count."""

from __future__ import annotations


class HistogramSums:
    """
    Sums of one node's histograms by name, which never go back while the node runs.

    Kafka's histograms run since the start, so mean times count is the sum, and of milliseconds that is
    a whole number. But the two are read one after the other, and events come in between: a
    sum can come out a little too high, and a counter that then went back would look like a restart.
    """

    def __init__(self) -> None:
        self._started_at: float | None = None
        self._sums: dict[str, tuple[float, float]] = {}

    def began(self, started_at: float | None) -> None:
        """Forget everything when the node was started anew; None when it does not tell."""
        if started_at != self._started_at:
            self._started_at = started_at
            self._sums.clear()

    def sum_ms(self, name: str, mean_ms: float, count: float) -> float:
        """The sum of the histogram of this name, in ms."""
        total = float(round(mean_ms * count))
        last_count, last_total = self._sums.get(name, (0.0, 0.0))
        if count >= last_count:
            total = max(total, last_total)
        self._sums[name] = (count, total)
        return total
