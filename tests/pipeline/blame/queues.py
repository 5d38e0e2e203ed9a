"""Tables of requests whose queue times are those of a queue."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.pipeline.table.rows import append

from quotascope.pipeline.blame.queueing import waits_of
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest.options import REQUESTS_LAYOUT
from quotascope.pipeline.request_log.schema import REQUESTS
from quotascope.pipeline.table import Table

BEGIN_MS = 1_795_392_000_000
AGGRESSOR, VICTIM = "aggressor", "victim"


def logged(seconds: int, dispatch_us: int = 60) -> pa.Table:
    """A broker of one handler thread: a victim with 50 requests/s of 1 ms, an aggressor with 30 of 20 ms, which hold 60 % of the thread."""
    source = np.random.default_rng(3)
    at = np.sort(source.integers(0, seconds * 1_000_000, seconds * 80))
    aggressive = source.random(len(at)) < 30 / 80
    holds = np.where(aggressive, 20_000, 1_000)
    waits = waits_of(at, holds, 1)
    done_ms = BEGIN_MS + (at + waits + holds) // 1_000
    return pa.table(
        {
            "timestamp": done_ms,
            "completed": done_ms,
            "user": np.where(aggressive, AGGRESSOR, VICTIM),
            "connection": np.where(
                aggressive,
                np.char.add("a", (np.arange(len(at)) % 16).astype(str)),
                np.char.add("v", (np.arange(len(at)) % 16).astype(str)),
            ),
            "queue_time_ms": (waits + dispatch_us) / 1_000,
            "thread_time_ms": holds / 1_000,
            "position": np.arange(len(at)),
        }
    )


CONSTANT: Mapping[str, Any] = {
    "broker": "1",
    "listener": "PLAIN",
    "client_id": "",
    "api_key": 3,
    "api_version": 4,
    "network_time_ms": 0.0,
    "remote_time_ms": 0.0,
    "response_queue_time_ms": 0.0,
    "throttle_ms": 0,
    "forwarded": False,
    "follower": False,
    "file": "a.log",
}


def written(folder: Path, rows: pa.Table, **constant: Any) -> str:
    """A folder with these rows of requests."""
    columns = {name: rows[name] for name in rows.column_names}
    columns = {name: pa.array([value] * len(rows)) for name, value in {**CONSTANT, **constant}.items()} | columns
    full = [
        columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(rows), field.type)
        for field in REQUESTS
    ]
    table = Table.create(f"{folder}/requests", REQUESTS, REQUESTS_LAYOUT)
    append(table, "all", pa.table(full, schema=REQUESTS))
    History.create(str(folder)).update(table)
    return str(folder)
