"""Tables of requests that wait for each other, made on disk as `ingest` does."""

from dataclasses import replace
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.builders.requests import PRODUCE, Request
from tests.pipeline.table.rows import append

from quotascope.pipeline.blame.queueing import waits_of
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.request_log.schema import REQUESTS

BEGIN_MS = 1_795_392_000_000
"""2026-11-23 00:00:00 UTC"""

_USUAL = Request(api_version=4, network_us=0)
_OF_ALL: dict[str, Any] = {
    "connection": None,
    "remote_time_ms": 0.0,
    "response_queue_time_ms": 0.0,
    "throttle_ms": None,
    "file": "a.log",
}
"""Columns of all rows, where a row has no other value."""


def row(at_ms: float, queued_ms: float | None, held_ms: float, user: str, **changed: Any) -> dict[str, Any]:
    """Return a Produce that a thread of broker 2 takes so long after `BEGIN_MS`."""
    taken = replace(_USUAL, broker="2", api_key=PRODUCE, api_version=9, user=user)
    completed = BEGIN_MS + round(at_ms + held_ms)
    times = {"timestamp": completed, "completed": completed, "queue_time_ms": queued_ms, "thread_time_ms": held_ms}
    return taken.row(**{**_OF_ALL, "produce_bytes": None, **times, "position": round(at_ms * 10), **changed})


def stored(folder: Path, *batches: list[dict[str, Any]]) -> str:
    """A folder with these requests, a file for each batch, and their history."""
    table = IngestTables.create(str(folder)).requests
    for number, rows in enumerate(batches):
        append(table, f"{number}", pa.Table.from_pylist(rows, REQUESTS))
    History.create(str(folder)).update(table)
    return str(folder)


def saturated(user: str = "dana", other_clients: int = 10, seconds: int = 60) -> list[dict[str, Any]]:
    """
    Return requests in which a notebook saturates the one thread from the 20th second to the 40th.

    It holds the thread for 70 ms of each 100, of which it has a queue; all others wait 60 ms then, and else hardly.
    """
    rows = []
    for tenth in range(seconds * 10):
        time_ms = tenth * 100.0
        if 200 <= tenth < 400:
            rows.append(
                row(time_ms, 900.0, 70, user, client_id="notebook", traffic=[{"topic": "raw", "id": None, "bytes": 9}])
            )
            rows.append(row(time_ms + 70, 60.0, 2, f"app-{tenth % other_clients}", api_key=1))
        else:
            rows.append(row(time_ms, 0.1, 2, f"app-{tenth % other_clients}", api_key=1))
    return rows


AGGRESSOR, VICTIM = "aggressor", "victim"


def logged(seconds: int) -> pa.Table:
    """
    Return the log of a broker of one handler thread with a victim and an aggressor.

    The victim sends 50 requests/s of 1 ms, the aggressor 30 of 20 ms, which hold 60 % of the thread.
    """
    source = np.random.default_rng(3)
    time_ms = np.sort(source.integers(0, seconds * 1_000_000, seconds * 80))
    aggressive = source.random(len(time_ms)) < 30 / 80
    holds = np.where(aggressive, 20_000, 1_000)
    waits = waits_of(time_ms, holds, 1)
    done_ms = BEGIN_MS + (time_ms + waits + holds) // 1_000
    return pa.table(
        {
            "timestamp": done_ms,
            "completed": done_ms,
            "user": np.where(aggressive, AGGRESSOR, VICTIM),
            "connection": np.char.add(np.where(aggressive, "a", "v"), (np.arange(len(time_ms)) % 16).astype(str)),
            "queue_time_ms": (waits + 60) / 1_000,
            "thread_time_ms": holds / 1_000,
            "position": np.arange(len(time_ms)),
        }
    )


def full_load(requests: int) -> pa.Table:
    """
    A broker of one handler thread, and eight connections that send again 200 us after each answer.

    A request holds the thread for 500 us by the log, and for up to 200 us more that the log does not have; for up to
    600 us in the second half, as beside a busy neighbor.
    """
    source = np.random.default_rng(5)
    due = [(100 * number, number) for number in range(8)]
    heapify(due)
    free, rows = 0, []
    for later in source.integers(0, np.repeat([200, 600], requests // 2)).tolist():
        time_ms, connection = due[0]
        begin = max(time_ms, free)
        end = begin + 500
        free = end + later
        heapreplace(due, (end + 200, connection))
        done_ms = BEGIN_MS + end // 1_000
        rows.append((done_ms, done_ms, VICTIM, str(connection), (begin - time_ms) / 1_000, 0.5))
    names = ("timestamp", "completed", "user", "connection", "queue_time_ms", "thread_time_ms")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return pa.table({**columns, "position": np.arange(requests)})


def written(folder: Path, rows: pa.Table, **constant: Any) -> str:
    """Store rows of broker 1, filled up with the fields that all have in common."""
    return stored(folder, [_USUAL.row(**{**_OF_ALL, "throttle_ms": 0, **constant, **row}) for row in rows.to_pylist()])
