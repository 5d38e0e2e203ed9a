"""Histories of made-up requests with bytes, for tests of costs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.pipeline.table.rows import append

from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.request_log.schema import REQUESTS

_USUAL: dict[str, Any] = {
    "broker": "1",
    "listener": "PLAIN",
    "client_id": "app",
    "api_version": 9,
    "thread_time_ms": 0.5,
    "queue_time_ms": 0.0,
    "remote_time_ms": 0.0,
    "response_queue_time_ms": 0.0,
    "network_time_ms": 0.0,
    "throttle_ms": 0,
    "broker_throttle_ms": 0,
    "refused": False,
    "mutations_known": True,
    "forwarded": False,
    "follower": False,
    "file": "a.log",
}


def moved(when: str, user: str, *, produced: int = 0, fetched: int = 0, broker: str = "1") -> dict[str, Any]:
    """Return a request of a user at a time in ISO 8601, in UTC: a Produce, or a Fetch, of so many bytes."""
    time_ms = round(datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp() * 1_000)
    kind = {"api_key": 1, "fetch_bytes": fetched} if fetched else {"api_key": 0, "produce_bytes": produced}
    return _USUAL | kind | {"timestamp": time_ms, "completed": time_ms, "user": user, "broker": broker}


def stored(folder: Path, *requests: dict[str, Any]) -> str:
    """Return a folder with these requests and their history, each on a connection of its own."""
    rows = [
        request
        | {
            "position": place,
            "connection": f"10.0.0.{request['broker']}:9092-10.0.0.9:{10_000 + place}-0-{place}",
            "correlation_id": 1,
        }
        for place, request in enumerate(requests)
    ]
    table = IngestTables.create(str(folder)).requests
    append(table, "0", pa.Table.from_pylist(rows, REQUESTS))
    History.create(str(folder)).update(table)
    return str(folder)
