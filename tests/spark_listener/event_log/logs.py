"""Event logs that tests write, and the failures in them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.spark_listener.recordings import QUOTA, ended, python_failure

FAILED = python_failure(QUOTA)


def written(events: Iterable[Any]) -> bytes:
    lines = (json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    return "".join(lines).encode()


def failures(count: int, first_task: int = 0) -> bytes:
    return written(ended(FAILED, task=task) for task in range(first_task, first_task + count))
