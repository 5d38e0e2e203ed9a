"""Estimation of the time that a streaming query needs to read its backlog, from the offsets of its micro-batches."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import linear_regression
from typing import NamedTuple

from ..events import KafkaOffsets, QueryProgressed

_QUOTA_WINDOW = 11.0
"""Length of all quota windows in seconds: the defaults of quota.window.num times quota.window.size.seconds."""
_MEASURED = 120.0
"""Time in seconds over which rates are measured; it is longer if one micro-batch takes longer."""
_APART = 1.0
"""Least time in seconds between the ends of two micro-batches that are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """Backlog of a query that reads Kafka, and the time to read it at the rates of the last two minutes."""

    backlog: float
    """Number of offsets that the query is behind at the end of its last micro-batch, with those added meanwhile."""
    read_per_second: float
    """Offsets that the query reads per second; under a constant throttle, as many as the quota allows."""
    added_per_second: float
    """Offsets that producers add per second."""
    seconds: float
    """Seconds until the query has read its backlog and all offsets added meanwhile; infinite if it cannot catch up."""


class _Position(NamedTuple):
    """Begin and end of a micro-batch, seconds since 1970, and its offsets."""

    began: float
    ended: float
    offsets: KafkaOffsets


class Positions:
    """
    Offsets at the ends of the last micro-batches of one run of a query.

    A client that was idle may read as much at once as a quota allows in all of its windows. So micro-batches that end
    within the windows after the begin of the run, or after idle time, are left out. The rates are those that last.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._positions: deque[_Position] = deque()
        self._idle = False

    def restarted(self) -> None:
        """Begin again with the next micro-batch, which belongs to a new run."""
        self._began, self._idle = None, False

    def idle(self) -> None:
        """
        Begin again with the next micro-batch, since the query had nothing to read.

        Until then the backlog counts as read, however long the last micro-batch took.
        """
        self._began, self._idle = None, True

    def add(self, event: QueryProgressed) -> None:
        """Add the position at the end of a micro-batch. A micro-batch without offsets removes all positions."""
        positions, offsets = self._positions, event.offsets
        if offsets is not None and not event.rows and offsets.end == offsets.newest:
            self.idle()  # older versions of Spark report idle time by such a micro-batch
            return
        self._idle = False
        if self._began is None:
            self._began = event.began
            positions.clear()
        if offsets is None or event.began is None or event.ended is None or self._began is None:
            positions.clear()
            return
        position = _Position(event.began, event.ended, offsets)
        if position.ended < self._began + _QUOTA_WINDOW:
            return  # at the begin, a client may read faster than it may in the long run
        if positions and position.offsets.end < positions[-1].offsets.end:
            positions.clear()  # the topic was created again
        if len(positions) > 1 and position.ended < positions[-2].ended + _APART:
            positions.pop()  # this one takes its place
        positions.append(position)
        # keep one position that is older than the measured time, so that the others cover all of it
        while len(positions) > 2 and positions[1].ended <= position.ended - _MEASURED:  # noqa: PLR2004
            positions.popleft()

    def catch_up(self) -> CatchUp | None:
        """
        Return the backlog and the time to read it; None until micro-batches of two quota windows show the rates.

        The rates are slopes of regression lines. Brokers throttle in a saw-tooth that is as long as the quota windows,
        so that the slope between two single points would depend on their phases.

        A query that is behind by no more than the offsets added during a micro-batch keeps up, in 0 s, unless its
        micro-batches get longer and longer: without `maxOffsetsPerTrigger`, a micro-batch reads everything.
        """
        if len(self._positions) < 2:  # noqa: PLR2004
            return None
        earliest, latest = self._positions[0], self._positions[-1]
        if latest.ended < earliest.ended + 2 * _QUOTA_WINDOW or latest.began <= earliest.began:
            return None  # within one tooth of the saw, or the clock was set
        begins = [position.began for position in self._positions]
        ends = [position.ended for position in self._positions]
        read_rate = linear_regression(ends, [position.offsets.end for position in self._positions]).slope
        newest = [position.offsets.newest for position in self._positions]
        added = max(0.0, linear_regression(begins, newest).slope)
        took = latest.ended - latest.began
        behind = max(0, latest.offsets.newest - latest.offsets.end)
        backlog = behind + added * took
        if self._idle:
            backlog = seconds = 0.0
        elif behind > added * took:
            seconds = backlog / (read_rate - added) if read_rate > added else math.inf
        else:
            grows = took > max(2 * (earliest.ended - earliest.began), _QUOTA_WINDOW)
            seconds = math.inf if grows else 0.0
        return CatchUp(backlog=backlog, read_per_second=read_rate, added_per_second=added, seconds=seconds)
