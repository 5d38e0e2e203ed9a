"""
What each request of a log charged to quotas.

Produce charges its request's size, a consumer's Fetch its response's (a throttled one is answered empty, and its size is unknown), every
request but those among brokers its thread time, at the decision what the handler took and at completion what the network thread took
(Kafka: `ClientQuotaManager`, `ClientRequestQuotaManager`, KIP-13, KIP-124), and CreateTopics, CreatePartitions and DeleteTopics their
partitions (KIP-599).
"""

from hashlib import blake2b
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .exempt import EXEMPT_APIS
from .schema import HISTORY, UNKNOWN_MS, Column

COLUMNS: Final = (
    "timestamp",
    "completed",
    "broker",
    "connection",
    "api_key",
    "api_version",
    "user",
    "client_id",
    "request_bytes",
    "response_bytes",
    "thread_time_ms",
    "network_time_ms",
    "partitions_created",
    "partitions_added",
    "partitions_deleted",
    "mutations",
    "mutation_timestamp",
    "throttle_ms",
    "quota_violated",
    "forwarded",
    "follower",
)
"""What is read of `quotascope.pipeline.request_log.schema.REQUESTS`."""

_NO_TIME: Final[Column] = pa.scalar(None, pa.float64())
_FALSE: Final[Column] = pa.scalar(False)  # noqa: FBT003 - Arrow's, not a flag


def history_of(requests: pa.Table) -> pa.Table:
    """
    Return the charges of requests, in their order.

    Left out are followers' fetches, and the controller's lines of forwarded requests that mutate nothing: their clients' lines are there.

    Args:
        requests: at least `COLUMNS` of REQUESTS.

    Returns:
        Rows of `HISTORY`.

    """
    asked = requests.append_column("asked", _asked(requests))
    seen = asked.filter(_seen(asked))
    exempt: Column = pc.is_in(seen.column("api_key"), pa.array(EXEMPT_APIS, pa.int16()))

    def given(name: str) -> Column:
        return seen.column(name)

    columns: dict[str, Column] = {
        "user": pc.fill_null(given("user"), ""),
        "client_id": pc.fill_null(given("client_id"), ""),
        "broker": pc.fill_null(given("broker"), ""),
        "timestamp": given("timestamp"),
        "completed": given("completed"),
        "connection": _connections(given("connection")),
        "api_key": given("api_key"),
        "api_version": given("api_version"),
        "produce_bytes": given("request_bytes"),
        "fetch_bytes": given("response_bytes"),
        "request_ms": pc.if_else(exempt, _NO_TIME, given("thread_time_ms")),
        "network_ms": pc.if_else(exempt, _NO_TIME, given("network_time_ms")),
        "mutations": given("asked"),
        "mutations_charged": given("mutations"),
        "mutation_timestamp": given("mutation_timestamp"),
        "refused": pc.fill_null(given("quota_violated"), _FALSE),
        "throttle_ms": pc.fill_null(given("throttle_ms"), UNKNOWN_MS),
    }
    return pa.table(columns, schema=HISTORY)


def _asked(requests: pa.Table) -> Column:
    kinds = ("partitions_created", "partitions_added", "partitions_deleted")
    columns: list[Column] = [requests.column(kind) for kind in kinds]
    return pc.coalesce(*columns)


def _seen(requests: pa.Table) -> Column:
    follower: Column = requests.column("follower")
    forwarded: Column = requests.column("forwarded")
    twin = pc.and_(
        pc.fill_null(forwarded, _FALSE), pc.is_null(requests.column("asked"))
    )
    return pc.invert(pc.or_(pc.fill_null(follower, _FALSE), twin))


def _connections(names: Column) -> Column:
    encoded = pc.fill_null(names, "").combine_chunks().dictionary_encode()
    known = np.asarray([_hash(name) for name in encoded.dictionary.to_pylist()], "<i8")
    return pa.array(known[encoded.indices.to_numpy(zero_copy_only=False)])


def _hash(connection: str) -> int:
    digest = blake2b(connection.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little", signed=True)
