"""The points of one family in protobuf, to be taken in pieces of any size."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from quotascope.metrics.catalog import Family
from quotascope.metrics.catalog.otel_names import otel_name
from quotascope.metrics.catalog.units import ucum

from .heads import GAUGE_NUMBERS, SUM_NUMBERS
from .protobuf import delimited

# Field numbers of opentelemetry/proto/metrics/v1/metrics.proto.
_NAME, _DESCRIPTION, _UNIT, _GAUGE, _SUM = 1, 2, 3, 5, 7
_CUMULATIVE_AND_MONOTONIC = bytes((2 << 3, 2, 3 << 3, 1))
_START, _TIME, _DOUBLE = (
    bytes((2 << 3 | 1,)),
    bytes((3 << 3 | 1,)),
    bytes((4 << 3 | 1,)),
)
_FIXED64 = struct.Struct("<Q").pack
_LENGTHS = 16
"""At least the bytes of the tags and lengths around the points of a family."""


class Points:
    """
    Hands out a family's points, each once.

    Args:
        family: The family.
        heads: The beginning of each point.
        values: What is measured, for each.
        starts_ns: Since when each counts, Unix time; None for gauges.
        at_ns: When the values were read, Unix time.

    """

    def __init__(
        self,
        family: Family,
        heads: Sequence[bytes],
        values: Sequence[float],
        starts_ns: Sequence[int] | None,
        at_ns: int,
    ) -> None:
        self._is_sum = starts_ns is not None
        self._described = _described(family)
        numbers = SUM_NUMBERS if self._is_sum else GAUGE_NUMBERS
        self._ends = list(accumulate([len(head) + numbers for head in heads]))
        self._pieces = _pieces(heads, values, starts_ns, at_ns)
        self._taken = 0

    @property
    def left(self) -> int:
        """How many points are still to be taken."""
        return len(self._ends) - self._taken

    def take(self, room: int, at_least: int) -> tuple[bytes, int]:
        """The next points as a ``Metric``, and their number: all that go into ``room`` bytes, but ``at_least`` some."""
        start = self._taken
        before = self._ends[start - 1] if start else 0
        free = room - len(self._described) - _LENGTHS
        stop = max(bisect_right(self._ends, before + free), start + at_least)
        if stop <= start:
            return b"", 0
        self._taken = stop
        points = b"".join(self._pieces[3 * start : 3 * stop])
        if self._is_sum:
            data = delimited(_SUM, points + _CUMULATIVE_AND_MONOTONIC)
        else:
            data = delimited(_GAUGE, points)
        return self._described + data, stop - start


def _described(family: Family) -> bytes:
    texts = {_NAME: otel_name(family), _DESCRIPTION: family.help, _UNIT: ucum(family)}
    return b"".join(
        delimited(number, text.encode()) for number, text in texts.items() if text
    )


def _pieces(
    heads: Sequence[bytes],
    values: Sequence[float],
    starts_ns: Sequence[int] | None,
    at_ns: int,
) -> list[bytes]:
    """Three for each point: attributes, times, value."""
    count = len(heads)
    time = _TIME + _FIXED64(at_ns) + _DOUBLE
    pieces = [time] * (3 * count)
    pieces[0::3] = heads
    if starts_ns is not None:
        pieces[1::3] = [_START + _FIXED64(start) + time for start in starts_ns]
    doubles = struct.pack(f"<{count}d", *values)
    pieces[2::3] = [doubles[place : place + 8] for place in range(0, 8 * count, 8)]
    return pieces
