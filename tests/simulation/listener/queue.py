"""
A model of `io.quotascope.spark.EventQueue` and of the bus before it, which runs without a JVM.

`tests/spark_listener/jvm/test_java.py` compares the model with the class itself, by random operations.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

LONGEST: Final = 1_000_000
"""Characters of JSON; of a longer event the queue gives the beginning."""
BEGINNING: Final = 100
_SCHEDULER: Final = "org.apache.spark.scheduler."


@dataclass(frozen=True, slots=True)
class Posted:
    """An event as Spark posts it, and the JSON that JsonProtocol makes of it."""

    event: Mapping[str, Any]
    json: str | None = None
    """The usual JSON for None; empty if JsonProtocol raises."""

    @property
    def class_name(self) -> str:
        """The name of the class in the JVM."""
        kind = str(self.event["Event"])
        return kind if "." in kind else _SCHEDULER + kind

    @property
    def is_ordinary(self) -> bool:
        """Return whether an event starts a task first in the first attempt at its stage, or ends a successful task."""
        if self.event["Event"] == "SparkListenerTaskStart":
            return bool(self.event["Stage Attempt ID"] == 0 and self.event["Task Info"]["Attempt"] == 0)
        ends = self.event["Event"] == "SparkListenerTaskEnd"
        return bool(ends and self.event["Task End Reason"]["Reason"] == "Success")

    def text(self) -> str:
        """Return the line that the queue gives."""
        text = json.dumps(self.event, separators=(",", ":")) if self.json is None else self.json
        return text if len(text) <= LONGEST else text[:BEGINNING]


@dataclass
class EventQueue:
    """The queue, with the names of its Java methods."""

    capacity: int
    wanted: Collection[str]
    successes: bool
    waiting: deque[Posted] = field(default_factory=deque)
    skipped: int = 0
    refused: int = 0
    is_gone: bool = False
    """Whether the JVM has ended."""

    def onEvent(self, posted: Posted) -> None:  # noqa: N802 - Spark's name
        """Keep an event, count it, or leave it out."""
        if posted.class_name not in self.wanted:
            return
        if not self.successes and posted.is_ordinary:
            self.skipped += 1
        elif len(self.waiting) < self.capacity:
            self.waiting.append(posted)
        else:
            self.refused += 1

    def take(self, most: int) -> str:
        """Return the lines of the oldest events, and both counts."""
        if self.is_gone:
            raise ConnectionError("the JVM is gone")
        lines = [self.waiting.popleft().text() for _ in range(min(most, len(self.waiting)))]
        return "\n".join([*lines, str(self.skipped), str(self.refused)])


@dataclass
class ListenerBus:
    """Spark's bus: a queue of its own, which drops what does not fit, before the listener."""

    queue: EventQueue | None = None
    dropped: int = 0

    @property
    def drops(self) -> ListenerBus:
        """Spark's counter."""
        return self

    def getCount(self) -> int:  # noqa: N802 - Spark's name
        """Return the number of dropped events."""
        if self.queue is not None and self.queue.is_gone:
            raise ConnectionError("the JVM is gone")
        return self.dropped

    def add(self, queue: EventQueue) -> None:
        """Register the listener."""
        self.queue = queue

    def remove(self, _queue: EventQueue) -> None:
        """Remove the listener."""

    def settle(self) -> None:
        """Deliver what was posted, which is done already."""
