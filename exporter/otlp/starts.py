"""Since when counters count: OTLP wants it of each, and neither Kafka nor Prometheus's format has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from quotascope.metrics.catalog import Family

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
        self._counts: dict[tuple[str, bytes], _Count] = {}

    def of(
        self, family: Family, series: Mapping[bytes, float], at_ns: int
    ) -> list[int]:
        """The starts of a family's series, Unix time; these are given by whatever names them and their values at ``at_ns``."""
        if family.name.startswith(OWN_PREFIX):
            return [min(self._began_ns, at_ns)] * len(series)
        starts = []
        for one, value in series.items():
            last = self._counts.get((family.name, one))
            if last is None:
                start = at_ns
            elif value < last.value:
                start = last.seen_ns
            else:
                start = last.start_ns
            self._counts[family.name, one] = _Count(start, at_ns, value)
            starts.append(start)
        return starts

    def forget(self, at_ns: int) -> None:
        """Drop the counters that have not been seen for an hour."""
        oldest = at_ns - FORGET_AFTER_NS
        self._counts = {
            key: count for key, count in self._counts.items() if count.seen_ns >= oldest
        }
