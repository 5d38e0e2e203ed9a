"""Rows of parsed requests for the tests of history."""

from typing import Any

import pyarrow as pa
from tests.builders.requests import Request

from quotascope.pipeline.history.schema import PLACE
from quotascope.pipeline.request_log.schema import REQUESTS

ORDER = ("user", "client_id", "broker", "timestamp", *PLACE)
"""What sorts the requests of each client, in any engine; files are in no order."""
_USUAL = Request(api_version=12, request_us=500, network_us=250, network_after_ms=5).row(
    connection="10.0.0.1:9092-10.0.0.9:40000-0-1"
)


def requests(*changes: dict[str, Any]) -> pa.Table:
    """Return requests that differ from a usual Metadata request in these columns."""
    return pa.Table.from_pylist([_USUAL | change for change in changes], REQUESTS)
