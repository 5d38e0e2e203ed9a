"""Search for gaps in a log: attempts of tasks without a line of their end, repeated lines, and lines out of order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..errors import UnreadableEvent
from ..events.fields import needed, number, part, text
from .order import Order, Partition

_PAGE: Final = 1 << 16
"""Number of task ids in a page of 8 kB."""
_MOST_PAGES: Final = 4_096
_MOST_OPEN: Final = 1_000_000
_MOST_HASHES: Final = 2_000_000


class Ids:
    """A set of task ids, with a bit for each id, since Spark counts them up from 0."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}
        """Bits of `_PAGE` ids each, by the number of the page."""
        self.count = 0
        self.highest = -1

    def add(self, number: int) -> bool:
        """Add an id, and return whether it is new. Ids that are negative or too high always count as new."""
        page, bit = divmod(number, _PAGE)
        bits = self._pages.get(page)
        if bits is None:
            if number < 0 or len(self._pages) >= _MOST_PAGES:
                return True
            bits = self._pages[page] = bytearray(_PAGE // 8)
        mask = 1 << (bit & 7)
        if bits[bit >> 3] & mask:
            return False
        bits[bit >> 3] |= mask
        self.count += 1
        self.highest = max(self.highest, number)
        return True

    def __contains__(self, number: int) -> bool:
        page, bit = divmod(number, _PAGE)
        bits = self._pages.get(page)
        return bits is not None and bool(bits[bit >> 3] & (1 << (bit & 7)))


class _Open(NamedTuple):
    """An attempt that started and has no line of its end yet."""

    partition: Partition
    number: int


class Coverage:
    """
    Counts of the starts and ends of attempts in a log, which is read line by line.

    TaskSchedulerImpl numbers attempts from 0 without gaps, so that a missing number belongs to an attempt without any
    line.
    """

    def __init__(self) -> None:
        self.repeated = 0
        """Number of lines that repeat an earlier one, and were left out."""
        self.first_ms: int | None = None
        """Earliest time of a line that is not passed on."""
        self.last_ms: int | None = None
        """Latest time of a line that is not passed on."""
        self._seen, self._started, self._ended, self._resubmitted = Ids(), Ids(), Ids(), Ids()
        self._open: dict[int, _Open] = {}
        self._repeats: dict[Partition, int] = {}
        """Highest number of an attempt that is not speculative, by partition, if it is above 0."""
        self._hashes: set[int] = set()
        """Hashes of lines, by which a repeated one is recognized."""
        self._order = Order()

    @property
    def disordered(self) -> bool:
        """True if lines are not in the order in which Spark wrote them."""
        return self._order.is_broken

    @property
    def unseen(self) -> int:
        """Number of attempts without any line, although later attempts have lines."""
        return self._seen.highest + 1 - self._seen.count

    @property
    def without_end(self) -> int:
        """Number of attempts without a line of their end that must have ended, since a later attempt repeats them."""
        return sum(self._repeats.get(attempt.partition, 0) > attempt.number for attempt in self._open.values())

    @property
    def still_open(self) -> int:
        """Number of attempts without a line of their end that may still have been running."""
        return len(self._open) - self.without_end

    def at(self, ms: int) -> None:
        """Record the time of a line that is not passed on."""
        if ms > 0:
            self.first_ms = ms if self.first_ms is None else min(self.first_ms, ms)
            self.last_ms = ms if self.last_ms is None else max(self.last_ms, ms)

    def started(self, task: int, partition: Partition, number: int, launch_ms: int, *, speculative: bool) -> bool:
        """Record the start of an attempt, and return whether it is new."""
        if not self._started.add(task):
            self.repeated += 1
            return False
        self._seen.add(task)
        if number and not speculative:
            self._repeats[partition] = max(number, self._repeats.get(partition, 0))
        has_ended = task in self._ended
        self._order.started(partition, launch_ms, has_ended=has_ended)
        if not has_ended and len(self._open) < _MOST_OPEN:
            self._open[task] = _Open(partition, number)
        return True

    def ended(self, task: int, partition: Partition, number: int, finish_ms: int, reason: str) -> bool:
        """
        Record the end of an attempt, and return whether it is new.

        An attempt whose output was lost has a second end, with the reason Resubmitted.
        """
        if reason == "Resubmitted":
            is_new = self._resubmitted.add(task)
            self.repeated += not is_new
            self._order.is_broken |= is_new and task not in self._ended
            return is_new
        if not self._ended.add(task):
            self.repeated += 1
            return False
        self._seen.add(task)
        self._open.pop(task, None)
        if reason != "Success":
            self._order.failed(partition, finish_ms, is_repeated=self._repeats.get(partition, 0) > number)
        self._order.ended(partition)
        return True

    def takes(self, event: Mapping[str, Any], line: bytes) -> bool:
        """Record an event that is to be passed on, and return whether it is new; a repeated one is left out."""
        info = event.get("Task Info")
        if not isinstance(info, dict):
            if not self._is_new(line):
                return False
            self._order.other(event)
            return True
        try:
            partition = Partition(
                needed(event, "Stage ID"), number(event, "Stage Attempt ID", 0) or 0, needed(info, "Index")
            )
            task, attempt, launch = (needed(info, key) for key in ("Task ID", "Attempt", "Launch Time"))
        except UnreadableEvent:
            return True  # the event is counted as lost
        if event["Event"] == "SparkListenerTaskStart":
            return self.started(task, partition, attempt, launch, speculative=info.get("Speculative") is True)
        finish = number(info, "Finish Time", None)
        reason = text(part(event, "Task End Reason"), "Reason")
        return self.ended(task, partition, attempt, launch if finish is None else finish, reason)

    def _is_new(self, line: bytes) -> bool:
        """Return whether no earlier line was the same, and count a repeated one."""
        if len(self._hashes) >= _MOST_HASHES:
            return True
        key = hash(line)
        if key in self._hashes:
            self.repeated += 1
            return False
        self._hashes.add(key)
        return True
