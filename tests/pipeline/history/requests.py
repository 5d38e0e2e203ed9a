"""Rows of parsed requests for the tests of history."""

from typing import Any

import pyarrow as pa

from quotascope.pipeline.history.schema import PLACE
from quotascope.pipeline.request_log.schema import REQUESTS

ORDER = ("user", "client_id", "broker", "timestamp", *PLACE)
"""What sorts the requests of each client, in any engine; files are in no order."""
START_MS = 1_700_000_000_000
"""A whole second."""

_USUAL: dict[str, Any] = {
    "timestamp": START_MS,
    "completed": START_MS + 5,
    "broker": "1",
    "listener": "SASL",
    "connection": "10.0.0.1:9092-10.0.0.9:40000-0-1",
    "correlation_id": 1,
    "api_key": 3,
    "api_version": 12,
    "user": "alice",
    "client_id": "app",
    "thread_time_ms": 0.5,
    "network_time_ms": 0.25,
    "mutations_known": True,
    "throttle_ms": 0,
    "broker_throttle_ms": 0,
    "refused": False,
    "forwarded": False,
    "follower": False,
}


def requests(*changes: dict[str, Any]) -> pa.Table:
    """Requests that differ from a usual Metadata request in what is given."""
    return pa.Table.from_pylist([_USUAL | change for change in changes], REQUESTS)
