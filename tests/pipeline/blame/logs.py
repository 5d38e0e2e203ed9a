"""Tables of requests that wait for each other, made on disk as `ingest` does."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.pipeline.table.rows import append

from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.request_log.schema import REQUESTS

BEGIN_MS = 1_795_392_000_000
"""2026-11-23 00:00:00 UTC"""


def row(at_ms: float, queued_ms: float | None, held_ms: float, user: str, **changed: Any) -> dict[str, Any]:
    """A request that is taken by a thread so long after `BEGIN_MS`."""
    completed = BEGIN_MS + round(at_ms + held_ms)
    return {
        "timestamp": completed,
        "completed": completed,
        "broker": "2",
        "listener": "PLAINTEXT",
        "user": user,
        "client_id": "app",
        "api_key": 0,
        "queue_time_ms": queued_ms,
        "thread_time_ms": float(held_ms),
        "remote_time_ms": 0.0,
        "response_queue_time_ms": 0.0,
        "network_time_ms": 0.0,
        "forwarded": False,
        "follower": False,
        "file": "a.log",
        "position": round(at_ms * 10),
        **changed,
    }


def stored(folder: Path, *batches: list[dict[str, Any]]) -> str:
    """A folder with these requests, a file for each batch."""
    table = IngestTables.create(str(folder)).requests
    for number, rows in enumerate(batches):
        append(table, f"{number}", pa.Table.from_pylist(rows, REQUESTS))
    return str(folder)


def saturated(user: str = "dana", others: int = 10, seconds: int = 60) -> list[dict[str, Any]]:
    """From the 20th second to the 40th a notebook of one user holds the one thread for 70 ms of each 100, of which it has a queue; all others wait 60 ms for it."""
    rows = []
    for tenth in range(seconds * 10):
        at = tenth * 100.0
        if 200 <= tenth < 400:
            rows.append(
                row(at, 900.0, 70, user, client_id="notebook", traffic=[{"topic": "raw", "id": None, "bytes": 9}])
            )
            rows.append(row(at + 70, 60.0, 2, f"app-{tenth % others}", api_key=1))
        else:
            rows.append(row(at, 0.1, 2, f"app-{tenth % others}", api_key=1))
    return rows
