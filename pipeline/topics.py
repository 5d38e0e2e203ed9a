"""
Bytes by topic: which topics a client's produce or fetch quota went to, in sums by minute.

What the quota charges of a request is the records of its topics, and the protocol around them. Rows of each kind add up
to what `seconds` has for the client, broker and quota type, to the byte. Names of topics that newer versions name by id
only are rows of their own: the pair may be logged later, or by another broker, so that ids get their names on reading.
"""

from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.protocol import ApiKey

from .columns import CLIENT, CLIENT_COLUMNS, Column, added, column
from .errors import NoTable
from .table import Table, following
from .table.storage import DAY_MS


class Kind(StrEnum):
    """Subject of a row of `TOPICS`."""

    RECORDS = "records"
    """Bytes of records of a topic; a request counts under each of its topics."""
    PROTOCOL = "protocol"
    """Bytes that the quota charges for the same requests beside their records: headers, names, empty responses."""
    UNKNOWN_TOPIC = "unknown topic"
    """Bytes of requests whose topics are unknown."""
    UNKNOWN_SIZE = "unknown size"
    """Requests whose bytes are unknown, such as a throttled Fetch, or the partitions of a mutation."""
    NAME = "name"
    """Name of a topic's id, once a day, of no client."""


TOPICS: Final = pa.schema([
    *CLIENT_COLUMNS,
    column("quota_type", pa.string(), (
        "produce or fetch; controller_mutation for mutations of unknown size; empty for a name.")),
    column("start", pa.int64(), "Begin of the minute, of the day for a name: ms since 1970, UTC."),
    column("kind", pa.string(), "records, protocol, unknown topic, unknown size or name."),
    column("topic", pa.string(), "Name of the topic, where the request has it.", null=True),
    column("topic_id", pa.string(), "Id of the topic, where the request has it.", null=True),
    column("requests", pa.int64(), "Requests; those of protocol, unknown topic and unknown size are all, each once."),
    column("bytes", pa.int64(), "Bytes; null when unknown, and for a name.", null=True),
])  # fmt: skip
"""
Bytes by topic over a minute.

A table may hold several rows of one key. Records, protocol and unknown topic add up to what ROLLUP has of a client,
broker and quota type.
"""
_BYTES: Final = ("produce_bytes", "fetch_bytes")
COLUMNS: Final = (
    *CLIENT,
    "timestamp",
    "api_key",
    *_BYTES,
    "traffic",
    "topic_ids",
    "mutations_known",
    "forwarded",
    "follower",
)
"""Columns of `quotascope.pipeline.request_log.schema.REQUESTS` that are read."""
MINUTE_MS: Final = 60_000
"""Length of time of a sum."""
ID: Final = "id:"
"""Prefix of a topic's id if no name is known; no name of a topic has a colon."""
_KEY: Final = (*CLIENT, "quota_type", "start", "kind", "topic", "topic_id")
_APIS: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH)
_FALSE: Final[Column] = pa.scalar(False)  # noqa: FBT003 - Arrow's, not a flag


def topics_of(requests: pa.Table) -> pa.Table:
    """
    Return the bytes by topic of requests (at least `COLUMNS` of REQUESTS), and the names of ids in responses.

    These are rows of `TOPICS`, one for each key, in no particular order.
    """
    is_internal = pc.or_(pc.fill_null(requests["follower"], _FALSE), pc.fill_null(requests["forwarded"], _FALSE))
    has_bytes = pc.is_in(requests["api_key"], pa.array(_APIS, pa.int16()))
    is_unsized_mutation = pc.fill_null(pc.invert(requests["mutations_known"]), _FALSE)
    is_charged = pc.or_(pc.and_(has_bytes, pc.invert(is_internal)), is_unsized_mutation)
    charged_requests = requests.filter(is_charged)
    columns_of_names: dict[str, Column] = {name: charged_requests[name] for name in charged_requests.column_names}
    # one row for each topic of a request, and the row of its request
    traffic: Any = columns_of_names["traffic"].combine_chunks()
    parents: Any = pc.list_parent_indices(traffic)
    topics, ids, record_bytes = pc.list_flatten(traffic).flatten()
    records = np.zeros(len(charged_requests), np.int64)
    np.add.at(records, parents.to_numpy(), pc.fill_null(record_bytes, 0).to_numpy())
    # one row for each request: the rest of its charge, or all of it if its topics are unknown
    charged: Column = pc.coalesce(*(columns_of_names[name] for name in _BYTES))
    sized: Column = pc.is_valid(charged)
    unknown: Column = pc.if_else(sized, Kind.UNKNOWN_TOPIC, Kind.UNKNOWN_SIZE)
    kinds = pc.if_else(pc.and_(pc.is_valid(columns_of_names["traffic"]), sized), Kind.PROTOCOL, unknown)
    produces: Column = pc.equal(columns_of_names["api_key"], pa.scalar(int(ApiKey.PRODUCE)))
    types: Column = pc.if_else(produces, QuotaType.PRODUCE.label, QuotaType.FETCH.label)
    common = pa.table({
        **{name: pc.fill_null(columns_of_names[name], "") for name in CLIENT},
        "quota_type": pc.if_else(is_unsized_mutation.filter(is_charged), QuotaType.CONTROLLER_MUTATION.label, types),
        "start": columns_of_names["timestamp"].to_numpy() // MINUTE_MS * MINUTE_MS,
    })  # fmt: skip
    none: Column = pa.nulls(len(charged_requests), pa.string())
    beside_records = _rows(common, kinds, none, none, 1, pc.subtract(charged, pa.array(records)))
    has_topic = pc.or_(pc.is_valid(topics), pc.is_valid(ids))
    of_records = _rows(
        common.take(parents), pc.if_else(has_topic, Kind.RECORDS, Kind.UNKNOWN_TOPIC), topics, ids, 1, record_bytes
    )
    rows = pa.concat_tables([beside_records, of_records, _names(requests)])
    return added(rows, _KEY).cast(TOPICS)


def topic_names(folder: str, requests: Table | None = None) -> dict[str, str]:
    """
    Return the names of topics by id that a history has.

    A name may be much older than the requests that have its id, since clients ask for names when they start. A history
    whose first ingest was interrupted has none.

    Args:
        folder: folder of the history.
        requests: its table of `REQUESTS`, whose rows are searched, too, if an ingest was killed before it took them
            over to `topics`; None to leave them out.

    Raises:
        TableError: a table cannot be read.

    """
    try:
        table = Table.open(f"{folder.rstrip('/')}/topics", schema=TOPICS)
    except NoTable:
        return {}
    batches = table.batches(table.files_of(""), ("kind", "topic_id", "topic"))
    parts = [pa.Table.from_batches([batch]).filter(pc.field("kind") == Kind.NAME) for batch in batches]
    if requests is not None:
        _, files = requests.new_since(table.last_epoch(following(requests)))
        new = requests.batches(files, ("timestamp", "topic_ids"))
        parts += [_names(pa.Table.from_batches([batch])) for batch in new]
    return {row["topic_id"]: row["topic"] for rows in parts for row in rows.to_pylist()}


def _names(requests: pa.Table) -> pa.Table:
    """Return rows of `NAME`: a name belongs to a day, and to no client."""
    answered = requests.filter(pc.is_valid(requests["topic_ids"]))
    pairs: Any = answered["topic_ids"].combine_chunks()
    topics, ids = pc.list_flatten(pairs).flatten()
    times = answered["timestamp"].to_numpy()[pc.list_parent_indices(pairs).to_numpy()]
    none: Column = pa.repeat("", len(ids))
    common = pa.table({**dict.fromkeys((*CLIENT, "quota_type"), none), "start": times // DAY_MS * DAY_MS})
    kinds: Column = pa.repeat(Kind.NAME.value, len(ids))
    return _rows(common, kinds, topics, ids, 0, pa.nulls(len(ids), pa.int64()))


def _rows(
    common: pa.Table, kinds: Column, topics: Column, ids: Column, requests: int, sizes: Column
) -> pa.Table:  # fmt: skip
    """Return rows of `TOPICS` from their common columns and the others; each row counts `requests`."""
    counts: Column = pa.repeat(pa.scalar(requests, pa.int64()), len(common))
    columns = {"kind": kinds, "topic": topics, "topic_id": ids, "requests": counts, "bytes": sizes}
    return pa.table([*common.columns, *columns.values()], [*common.column_names, *columns])
