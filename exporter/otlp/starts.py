"""Since when counters count: what OTLP asks of each, and what neither Kafka nor Prometheus's format tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from quotascope.metrics.catalog import Family

from ..exposition.series import Series

OWN_PREFIX: Final = "quotascope_"
FORGET_AFTER_NS: Final = 3600 * 10**9
"""Kafka keeps the sensors of an idle entity that long, too."""


class _Count(NamedTuple):
    start_ns: int
    seen_ns: int
    value: float


class Starts:
    """
    Remembers the counters of the last snapshots.

    The exporter's own counters count since it began. Any other counts since it was first seen here: its
    first point starts and ends at the same time, which is how OTLP's data model says that the true start is
    not known. When a counter has become smaller, the node that counts has started again since the last look.

    Args:
        began_ns: When the exporter began to count, as Unix time.

    """

    def __init__(self, began_ns: int) -> None:
        self._began_ns = began_ns
        self._counts: dict[tuple[str, tuple[str, ...]], _Count] = {}

    def of(self, family: Family, series: Sequence[Series], at_ns: int) -> list[int]:
        """The starts of a family's series in Unix nanoseconds; ``at_ns`` is when they were read."""
        if family.name.startswith(OWN_PREFIX):
            return [min(self._began_ns, at_ns)] * len(series)
        return [self._start(family.name, one, at_ns) for one in series]

    def forget(self, at_ns: int) -> None:
        """Drop the counters that have not been seen for an hour."""
        oldest = at_ns - FORGET_AFTER_NS
        self._counts = {
            key: count for key, count in self._counts.items() if count.seen_ns >= oldest
        }

    def _start(self, name: str, series: Series, at_ns: int) -> int:
        labels, value = series
        last = self._counts.get((name, labels))
        if last is None:
            start = at_ns
        elif value < last.value:
            start = last.seen_ns
        else:
            start = last.start_ns
        self._counts[name, labels] = _Count(start, at_ns, value)
        return start
