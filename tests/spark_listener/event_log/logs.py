"""Event logs of tests: written bit by bit, and followed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.spark_listener.recordings import QUOTA, ended, python_failure

from quotascope.spark_listener.event_log import EventLog
from quotascope.spark_listener.events import FailureCause
from quotascope.spark_listener.job import Job

START = {"Event": "SparkListenerApplicationStart", "App Name": "a", "Timestamp": 1}
FAILED = python_failure(QUOTA)


def written(events: Iterable[Any]) -> bytes:
    """Lines as Spark writes them."""
    lines = (json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    return "".join(lines).encode()


def failures(count: int, first: int = 0) -> bytes:
    """Failed attempts."""
    return written(ended(FAILED, task=task) for task in range(first, first + count))


def add(path: Path, data: bytes) -> Path:
    """Append to a file."""
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(data)
    return path


Open = Callable[[Path], EventLog]


class Followed:
    """A log and the books that it feeds."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.job = Job("a")

    def finished(self) -> bool:
        """Whether nothing more can come."""
        return self.log.finished

    def read(self) -> tuple[int, int]:
        """How many failures are known after what is new was read, and how many lines that was."""
        lines = self.log.feed(self.job)
        return self.job.snapshot().failures[FailureCause.KAFKA_QUOTA], lines
