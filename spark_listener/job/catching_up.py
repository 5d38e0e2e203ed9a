"""How long a streaming query needs to read what it is behind, from the offsets of its micro-batches."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import linear_regression
from typing import NamedTuple

from ..events import KafkaOffsets, QueryProgressed

_QUOTA_WINDOW = 11.0
"""Seconds: quota.window.num times quota.window.size.seconds of a broker that sets neither."""
_MEASURED = 120.0
"""Seconds that rates are measured over; more where one micro-batch takes longer."""
_APART = 1.0
"""Seconds between the ends of micro-batches that are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """How a query that reads Kafka gets on with its backlog, at the rates of the last two minutes."""

    backlog: float
    """Offsets that it is behind at the end of its last micro-batch, those added while that ran included."""
    read_per_second: float
    """Offsets that it reads; where a quota throttles it all the time, what the limit allows."""
    added_per_second: float
    """Offsets that producers add."""
    seconds: float
    """Until it has read its backlog and what is added meanwhile; infinite if it cannot catch up."""


class _Position(NamedTuple):
    began: float
    ended: float
    offsets: KafkaOffsets


class Positions:
    """
    Where the last micro-batches of one run of a query ended.

    A broker lets a client that was idle read a whole quota window's worth at once. Micro-batches that end within such a window after
    the run began, or after the query was idle, are left out, so that the rates are those that last.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._found: deque[_Position] = deque()
        self._idle = False

    def restarted(self) -> None:
        """The next micro-batch is of a new run."""
        self._began, self._idle = None, False

    def idle(self) -> None:
        """There is nothing to read, however long the last micro-batch took; rates are measured again after that."""
        self._began, self._idle = None, True

    def add(self, event: QueryProgressed) -> None:
        """A micro-batch ended; one without offsets makes the position unknown."""
        found, offsets = self._found, event.offsets
        if offsets is not None and not event.rows and offsets.read == offsets.newest:
            self.idle()  # as older versions report it
            return
        self._idle = False
        if self._began is None:
            self._began = event.began
            found.clear()
        if offsets is None or event.began is None or event.ended is None or self._began is None:
            found.clear()
            return
        position = _Position(event.began, event.ended, offsets)
        if position.ended < self._began + _QUOTA_WINDOW:
            return
        if found and position.offsets.read < found[-1].offsets.read:
            found.clear()  # the topic was created again
        if len(found) > 1 and position.ended < found[-2].ended + _APART:
            found.pop()
        found.append(position)
        while len(found) > 2 and found[1].ended <= position.ended - _MEASURED:  # noqa: PLR2004 - a rate needs two
            found.popleft()

    def catch_up(self) -> CatchUp | None:
        """
        The time to read the backlog; None until there are micro-batches of two quota windows to measure rates by.

        The rates are slopes of regression lines: brokers throttle in a saw-tooth as long as the quota window, which two points would catch
        at any phase.

        A query keeps up (0 s) that is behind no more than what is added during a micro-batch, unless micro-batches get longer and longer:
        without `maxOffsetsPerTrigger` each takes all that there is.
        """
        if len(self._found) < 2:  # noqa: PLR2004 - a rate needs two
            return None
        first, last = self._found[0], self._found[-1]
        if last.ended < first.ended + 2 * _QUOTA_WINDOW or last.began <= first.began:
            return None  # within one tooth, or the clock was set
        ends, begins = [each.ended for each in self._found], [each.began for each in self._found]
        read = linear_regression(ends, [each.offsets.read for each in self._found]).slope
        newest = [each.offsets.newest for each in self._found]
        added = max(0.0, linear_regression(begins, newest).slope)
        took = last.ended - last.began
        behind = max(0, last.offsets.newest - last.offsets.read)
        backlog = behind + added * took
        if self._idle:
            backlog = seconds = 0.0
        elif behind > added * took:
            seconds = backlog / (read - added) if read > added else math.inf
        else:
            grows = took > max(2 * (first.ended - first.began), _QUOTA_WINDOW)
            seconds = math.inf if grows else 0.0
        return CatchUp(backlog=backlog, read_per_second=read, added_per_second=added, seconds=seconds)
