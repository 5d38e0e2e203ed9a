"""Time that a streaming query needs to read its backlog, from the offsets of its micro-batches."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import linear_regression
from typing import NamedTuple

from ..events import KafkaOffsets, QueryProgressed

_QUOTA_WINDOW = 11.0
"""Seconds of a quota window: quota.window.num times quota.window.size.seconds of a broker that sets neither."""
_MEASURED = 120.0
"""Seconds that rates are measured over; more where one micro-batch takes longer."""
_APART = 1.0
"""Seconds between the ends of micro-batches that are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """Progress of a query that reads Kafka through its backlog, at the rates of the last two minutes."""

    backlog: float
    """Offsets that it is behind at the end of its last micro-batch, including those added while that ran."""
    read_per_second: float
    """Offsets that it reads in a second; where a quota throttles it all the time, as many as the limit allows."""
    added_per_second: float
    """Offsets that producers add in a second."""
    seconds: float
    """Seconds until it has read its backlog and the offsets added meanwhile; infinite if it cannot catch up."""


class _Position(NamedTuple):
    began: float
    ended: float
    offsets: KafkaOffsets


class Positions:
    """
    Offsets at the ends of the last micro-batches of one run of a query.

    A broker lets a client that was idle read a whole quota window's worth at once. Micro-batches that end within such a
    window after the run began, or after the query was idle, are left out, so that the rates are those that last.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._positions: deque[_Position] = deque()
        self._idle = False

    def restarted(self) -> None:
        """Forget the positions, as the next micro-batch is of a new run."""
        self._began, self._idle = None, False

    def idle(self) -> None:
        """
        Forget the positions, as there is nothing to read, however long the last micro-batch took.

        Rates are measured again after that.
        """
        self._began, self._idle = None, True

    def add(self, event: QueryProgressed) -> None:
        """Add the position at the end of a micro-batch; one without offsets makes the position unknown."""
        positions, offsets = self._positions, event.offsets
        if offsets is not None and not event.rows and offsets.end == offsets.newest:
            self.idle()  # older versions report it so
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
            return
        if positions and position.offsets.end < positions[-1].offsets.end:
            positions.clear()  # the topic was created again
        if len(positions) > 1 and position.ended < positions[-2].ended + _APART:
            positions.pop()
        positions.append(position)
        while len(positions) > 2 and positions[1].ended <= position.ended - _MEASURED:  # noqa: PLR2004
            positions.popleft()

    def catch_up(self) -> CatchUp | None:
        """
        Return the time to read the backlog.

        None until there are micro-batches of two quota windows to measure rates by.

        The rates are slopes of regression lines: brokers throttle in a saw-tooth as long as the quota window, which two
        points would catch at any phase.

        A query keeps up (0 s) that is behind no more than what is added during a micro-batch, unless micro-batches get
        longer and longer: without `maxOffsetsPerTrigger` each takes all that there is.
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
