"""An application that was throttled, with names of the reader's choice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.builders.spark_events import (
    QUOTA,
    TIMEOUT,
    Event,
    application_ended,
    application_started,
    ended,
    python_failure,
    query_progressed,
    query_started,
    stage_completed,
    stage_submitted,
    started,
    written,
)

from quotascope.clients.accounting import Client, ClientTotals
from quotascope.spark_listener.task import note

BEGAN = 1_700_000_000
QUERY = "00000000-0000-0000-0000-000000000007"
HOSTILE = "</title><script>alert(1)</script> \x1b[31m[red]\u202e $x$ \ud800\n\"'&"


def stage(number: int, attempt: int, begin: int, end: int, name: str, query: str = "") -> tuple[Event, Event]:
    info = {"Stage Name": name, "Submission Time": (BEGAN + begin) * 1_000, "Number of Tasks": 0}
    over = {**info, "Completion Time": (BEGAN + end) * 1_000}
    return stage_submitted(number, attempt, query, info), stage_completed(number, attempt, info=over)


def attempt(reason: Event | str, begin: float, end: float, **numbers: Any) -> Event:
    return ended(reason, began=BEGAN + begin, over=BEGAN + end, **numbers)


def noted(line: str, client: Client, throttled_ms: int, ids: note.AttemptKey) -> Event:
    totals = ClientTotals(client, throttled_ms, 4, throttled_ms // 2, 0, 1)
    return python_failure(line, note.text_of(ids, note.Note("", (totals,))))


def throttled(name: str = "") -> Iterator[Event]:
    """Yield the events of a throttled job; `name` is part of each name that comes from outside."""
    client = Client("alice", f"billing{name}", "write")
    yield application_started(BEGAN, f"nightly{name}", f"app-1{name}")
    submitted, completed = stage(0, 0, 1, 20, f"foreachPartition{name}")
    yield submitted
    yield attempt(noted(TIMEOUT, client, 4_000, note.AttemptKey(0, 0, 0)), 2, 9, task=0)
    yield started(began=BEGAN + 9, task=1, number=1)
    yield attempt("Success", 9, 12, number=1, task=1)
    yield attempt(python_failure(QUOTA), 3, 5, partition=1, task=2)
    yield attempt({"Reason": "ExecutorLostFailure"}, 4, 6, partition=2, task=3)
    yield completed
    yield query_started(QUERY, "1", f"clicks{name}", BEGAN + 20)
    for batch in range(3):
        begin = 22 + 10 * batch
        submitted, completed = stage(batch + 1, 0, begin, begin + 8, "start", QUERY)
        yield submitted
        if batch == 1:
            reader = Client("alice", "clicks-reader", "read")
            yield attempt(noted(TIMEOUT, reader, 1_500, note.AttemptKey(2, 0, 4)), 33, 38, stage=2, task=4)
        yield completed
        yield progress(batch, begin, f"clicks{name}")
    yield application_ended(BEGAN + 60)


def progress(batch: int, begin: float, name: str, **more: object) -> Event:
    metrics = {"maxOffsetsBehindLatest": "9000", "avgOffsetsBehindLatest": "2500.5"}
    reported = {"batchId": batch, "durationMs": {"triggerExecution": 8_000}, **more}
    source: Event = {"numInputRows": 500, "metrics": metrics}
    return query_progressed(source, query=QUERY, run="1", name=name, began=BEGAN + begin, **reported)


def log(path: Path, name: str = "") -> Path:
    path.write_bytes(written(throttled(name)))
    return path
