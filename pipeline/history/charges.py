"""
Charges of the requests of a log to quotas, and their sums by second.

Produce charges its request's size, a consumer's Fetch its response's (a throttled one is answered empty, and its size
is unknown). Every request but those among brokers charges its thread time: at the decision what the handler took, and
at completion what the network thread took (Kafka: `ClientQuotaManager`, `ClientRequestQuotaManager`, KIP-13, KIP-124).
CreateTopics, CreatePartitions and DeleteTopics charge their partitions (KIP-599).
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.protocol import ApiKey

from ..columns import CLIENT, Column, added, numbers_of
from ..errors import IncompleteRequests
from .connections import hash_of
from .schema import BYTES_COLUMNS, HISTORY, PLACE, ROLLUP, UNKNOWN_MS

EXEMPT_APIS: Final = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.ALTER_PARTITION,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.UPDATE_RAFT_VOTER,
)
"""
The APIs that every node answers with `sendResponseExemptThrottle`: what brokers and controllers send to each other.

The first four went with ZooKeeper. A follower's Fetch is exempt as well. What the log does not show is taken for the
usual case: an exempt request that was refused for want of permission is charged by Kafka, and the thread time of a
Produce with `acks=0` is not.
"""
SECOND_MS: Final = 1_000
"""The span of a sum."""
_PARTITIONS: Final = ("partitions_created", "partitions_added", "partitions_deleted")
COLUMNS: Final = (*(name for name in HISTORY.names if name != "mutations"), *_PARTITIONS, "forwarded", "follower")
"""
Columns of `quotascope.pipeline.request_log.schema.REQUESTS` that are read.

The same quantity has the same name there.
"""
_FILLED: Final = (*CLIENT, "connection", "refused", "throttle_ms")
_NEEDED: Final = tuple(field.name for field in HISTORY if not field.nullable and field.name not in _FILLED)
_NOT_SUMMED: Final = (*PLACE, "connection", "api_key", "api_version", "mutations")
ROLLUP_COLUMNS: Final = tuple(name for name in HISTORY.names if name not in _NOT_SUMMED)
"""Columns of HISTORY that a sum needs."""

_NO_TIME: Final[Column] = pa.scalar(None, pa.float64())
_ZERO: Final[Column] = pa.scalar(0, pa.int32())
_FALSE: Final[Column] = pa.scalar(False)  # noqa: FBT003 - Arrow's, not a flag


def history_of(requests: pa.Table) -> pa.Table:
    """
    Return the charges (`HISTORY`) of requests (at least `COLUMNS` of REQUESTS), in their order.

    Followers' fetches are left out, and so are the controller's lines of forwarded requests that mutate nothing, since
    the log has the clients' lines. Other lines of the controller charge their partitions alone, as the client's line,
    which may come later, has the thread time.

    Raises:
        IncompleteRequests: a row has no value in a column that `HISTORY` has in all rows.

    """
    for name in _NEEDED:
        if missing := requests.column(name).null_count:
            raise IncompleteRequests(name, missing)
    mutations: Column = pc.coalesce(*(requests.column(kind) for kind in _PARTITIONS))
    follower, forwarded = (pc.fill_null(requests.column(name), _FALSE) for name in ("follower", "forwarded"))
    second_line = pc.and_(forwarded, pc.is_null(requests.column("mutation_timestamp")))
    client_lines = requests.append_column("mutations", mutations).filter(pc.invert(pc.or_(follower, second_line)))
    exempt = pc.or_(
        pc.is_in(client_lines.column("api_key"), pa.array(EXEMPT_APIS, pa.int16())),
        pc.fill_null(client_lines.column("forwarded"), _FALSE),
    )
    columns: dict[str, Column] = {name: client_lines.column(name) for name in HISTORY.names}
    columns |= {name: pc.fill_null(columns[name], "") for name in CLIENT}
    columns |= {name: pc.if_else(exempt, _NO_TIME, columns[name]) for name in ("thread_time_ms", "network_time_ms")}
    columns["connection"] = numbers_of(columns["connection"], hash_of)
    columns["refused"] = pc.fill_null(columns["refused"], _FALSE)
    columns["throttle_ms"] = pc.fill_null(columns["throttle_ms"], UNKNOWN_MS)
    return pa.table(columns, schema=HISTORY)


def rollup(history: pa.Table) -> pa.Table:
    """
    Add up history by client, quota type and second: rows of `ROLLUP`, one for each key, in no particular order.

    Bytes, handler time and partitions count when they were charged, network time when the response had left. All sums
    are integers, and thread time is taken in whole microseconds, which is what brokers log: so they are the same
    whatever is added first.
    """
    names: dict[str, Column] = {name: history.column(name).combine_chunks().dictionary_encode() for name in CLIENT}
    decided = history.column("timestamp")
    mutated = pc.coalesce(history.column("mutation_timestamp"), decided)
    throttle_ms = pc.max_element_wise(history.column("throttle_ms"), _ZERO)
    throttled = pc.or_(pc.greater(throttle_ms, _ZERO), history.column("refused"))
    clients = {name: encoded.indices for name, encoded in names.items()}
    decisions = {"requests": pa.repeat(1, len(history)), "throttled": throttled, "throttle_ms": throttle_ms}
    charges: dict[QuotaType, list[tuple[Column, Column, dict[str, Column]]]] = {
        **{kind: [(decided, history.column(name), decisions)] for kind, name in BYTES_COLUMNS.items()},
        QuotaType.REQUEST: [
            (decided, _us(history.column("thread_time_ms")), decisions),
            (history.column("completed"), _us(history.column("network_time_ms")), {}),
        ],
        QuotaType.CONTROLLER_MUTATION: [(mutated, history.column("mutations_charged"), decisions)],
    }  # fmt: skip
    tables = []
    for quota_type, parts in charges.items():
        charged = pa.concat_tables([_charged(clients, *part) for part in parts])
        sums_by_key = added(charged, (*CLIENT, "start"))
        columns: dict[str, Column] = {name: sums_by_key.column(name) for name in sums_by_key.column_names}
        columns |= {name: encoded.dictionary.take(columns[name]) for name, encoded in names.items()}
        columns["quota_type"] = pa.repeat(quota_type.label, len(sums_by_key))
        tables.append(pa.table(columns, schema=ROLLUP))
    return pa.concat_tables(tables)


def _charged(clients: dict[str, Column], times: Column, amounts: Column, decisions: dict[str, Column]) -> pa.Table:
    """
    Return the seconds and amounts of the requests that charge something.

    Without `decisions`, amounts of zero are left out, and no request is counted.
    """
    starts = times.to_numpy() // SECOND_MS * SECOND_MS
    columns: dict[str, Column] = {**clients, "start": starts, "amount": amounts.cast(pa.int64())}
    for name in ("requests", "throttled", "throttle_ms"):
        counts = decisions.get(name, pa.repeat(0, len(times)))
        columns[name] = counts.cast(pa.int64())
    charged: Column = pc.is_valid(amounts) if decisions else pc.greater(amounts, _ZERO)
    return pa.table(columns).filter(charged)


def _us(times_ms: Column) -> Column:
    """Return times in ms as whole us."""
    return pc.round(pc.multiply(times_ms, 1000.0)).cast(pa.int64(), safe=False)
