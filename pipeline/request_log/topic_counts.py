"""
How many partitions a topic had at a time, as far as the log tells.

CreateTopics and CreatePartitions that went through tell it from then on, whatever order their lines come in; a snapshot tells it for the
time before the first of them. What neither tells is unknown: nothing is guessed.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping

_ALWAYS = -(1 << 62)


class TopicCounts:
    """Partitions by topic and time; times are ms."""

    def __init__(self, snapshot: Mapping[str, int] | None = None) -> None:
        """`snapshot`: partitions by topic before the first line."""
        self._events: dict[str, list[tuple[int, int]]] = {
            name: [(_ALWAYS, count)] for name, count in (snapshot or {}).items()
        }

    def learn(self, name: str, at: int, partitions: int) -> None:
        """A topic has so many partitions since then; 0 when it was deleted. Telling it twice changes nothing."""
        events = self._events.setdefault(name, [])
        event = (at, partitions)
        place = bisect_left(events, event)
        if events[place : place + 1] != [event]:
            insort(events, event)

    def before(self, name: str | None, at: int) -> int | None:
        """Partitions just before then; None when nothing tells, or the topic was deleted."""
        events = self._events.get(name or "", [])
        place = bisect_left(events, (at, -1))
        return (events[place - 1][1] or None) if place else None
