"""
Connections of a log by minute: the number of requests, and the first and the last of their correlation ids.

Clients number their requests one by one, so numbers between the first and the last that are not in the log are of
requests that it lacks. Controllers' lines of forwarded requests have the client's number on another connection, and are
left out.
"""

from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ..columns import CLIENT, CLIENT_COLUMNS, Column, column
from ..topics import MINUTE_MS

CONNECTIONS: Final = pa.schema([
    *CLIENT_COLUMNS,
    column("connection", pa.int64(), "Hash of the connection, as in history."),
    column("peer", pa.string(), "Host of the client, as the broker sees it."),
    column("address", pa.string(), "Host and port of the broker's end."),
    column("listener", pa.string(), "Listener of the broker."),
    column("software", pa.string(), "The client's library, as it reports itself; unknown until it has."),
    column("start", pa.int64(), "Begin of the minute in which requests were completed: ms since 1970, UTC."),
    column("requests", pa.int64(), "Requests, of all APIs, followers' fetches included."),
    column("first_id", pa.int64(), "Lowest correlation id."),
    column("last_id", pa.int64(), "Highest correlation id."),
    column("whole_seconds", pa.int64(), "Requests whose time has no fraction of a second."),
    column("precision_ms", pa.int64(), "Worst precision of their times: 1, 10, 100 or 1,000 ms."),
])  # fmt: skip
"""
Rows by connection and minute.

A table may have several rows of one key: their counts add up, and the lowest and the highest id count.
"""
COLUMNS: Final = (
    *CLIENT,
    "connection",
    "listener",
    "software",
    "completed",
    "correlation_id",
    "time_precision_ms",
    "forwarded",
)
"""Columns of `quotascope.pipeline.request_log.schema.REQUESTS` that are read."""
_SECOND_MS: Final = 1_000
_NAMES: Final = (*CLIENT, "listener", "software")
_FALSE: Final[Column] = pa.scalar(False)  # noqa: FBT003 - Arrow's, not a flag


def connections_of(requests: pa.Table) -> pa.Table:
    """
    Add up requests (at least `COLUMNS` of REQUESTS) by connection and minute.

    Return rows of `CONNECTIONS`, in no particular order.
    """
    has_own_id = pc.and_(
        pc.invert(pc.fill_null(requests["forwarded"], _FALSE)),
        pc.and_(pc.is_valid(requests["correlation_id"]), pc.is_valid(requests["connection"])),
    )
    rows = requests.filter(has_own_id)
    completed = rows["completed"]
    # rows are grouped by the indices of their texts, and the sums get the texts back
    encoded: dict[str, Column] = {}
    for name in (*_NAMES, "connection"):
        filled: Column = pc.fill_null(rows[name], pa.scalar("unknown" if name == "software" else ""))
        encoded[name] = filled.combine_chunks().dictionary_encode()
    numbers: Column = rows["correlation_id"].cast(pa.int64())
    columns: dict[str, Column] = {name: names.indices for name, names in encoded.items()}
    columns["start"] = pc.multiply(pc.divide(completed, MINUTE_MS), MINUTE_MS)
    columns["id"] = numbers
    columns["whole"] = pc.equal(pc.multiply(pc.divide(completed, _SECOND_MS), _SECOND_MS), completed).cast(pa.int64())
    precision: Column = rows["time_precision_ms"].cast(pa.int64())
    columns["precision"] = pc.fill_null(precision, pa.scalar(1))
    sums = (
        pa.table(columns)
        .group_by([*encoded, "start"], use_threads=False)
        .aggregate([("id", "count"), ("id", "min"), ("id", "max"), ("whole", "sum"), ("precision", "max")])
    )
    table: dict[str, Column] = {name: encoded[name].dictionary.take(sums[name]) for name in _NAMES}
    texts: list[Any] = encoded["connection"].dictionary.to_pylist()
    connections = [_parts(connection) for connection in texts]
    index: Column = sums["connection"]
    for field, name in enumerate(("connection", "address", "peer")):
        values: Column = pa.array([connection[field] for connection in connections], CONNECTIONS.field(name).type)
        table[name] = values.take(index)
    table |= {
        "start": sums["start"],
        "requests": sums["id_count"],
        "first_id": sums["id_min"],
        "last_id": sums["id_max"],
    }
    table |= {"whole_seconds": sums["whole_sum"], "precision_ms": sums["precision_max"]}
    return pa.table({name: table[name] for name in CONNECTIONS.names}).cast(CONNECTIONS)


def hash_of(connection: str) -> int:
    """Return the number that stands for a connection in history."""
    digest = blake2b(connection.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _parts(connection: str) -> tuple[int, str, str]:
    """Return the hash of a connection, the broker's host and port, and the client's host."""
    address, _, client = connection.partition("-")
    return hash_of(connection), address, client.partition("-")[0].rpartition(":")[0]
