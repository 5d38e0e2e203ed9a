"""
Bytes by topic: which topics a client's produce or fetch quota went to, in sums by minute.

What the quota charges of a request is the records of its topics, and the protocol around them. Rows of each kind add up to what
`seconds` has for the client, broker and quota type, to the byte. Names of topics that newer versions name by id only are rows of their own:
the pair may be logged later, or by another broker, so that ids get their names on reading.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import QuotaType
from quotascope.metrics.protocol import ApiKey

from ..table.layout import DAY_MS, Column
from .schema import TOPICS, Kind

COLUMNS: Final = ("timestamp", "user", "client_id", "broker", "api_key", "produce_bytes", "fetch_bytes", "traffic", "topic_ids", "forwarded", "follower")  # fmt: skip
"""What is read of `quotascope.pipeline.request_log.schema.REQUESTS`."""
MINUTE_MS: Final = 60_000
"""The span of a sum."""
ID: Final = "id:"
"""In front of a topic's id where no name is known; no name of a topic has a colon."""
_CLIENT: Final = ("user", "client_id", "broker")
_KEY: Final = (*_CLIENT, "quota_type", "start", "kind", "topic", "topic_id")
_APIS: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH)
_TYPES: Final[Column] = pa.array([QuotaType.PRODUCE.label, QuotaType.FETCH.label])


def topics_of(requests: pa.Table) -> pa.Table:
    """
    Return the bytes by topic of the requests that history has, and the names that responses have with ids.

    Args:
        requests: at least `COLUMNS` of REQUESTS.

    Returns:
        Rows of `TOPICS`, one for each key, in no particular order.

    """
    false: Column = pa.scalar(False)  # noqa: FBT003 - Arrow's, not a flag
    left_out = pc.or_(pc.fill_null(requests["follower"], false), pc.fill_null(requests["forwarded"], false))  # fmt: skip
    moves = pc.is_in(requests["api_key"], pa.array(_APIS, pa.int16()))
    found = requests.filter(pc.and_(moves, pc.invert(left_out))).combine_chunks()
    names = requests.filter(pc.is_valid(requests["topic_ids"]))
    return pa.concat_tables([_bytes(found), _names(names)])


def _bytes(requests: pa.Table) -> pa.Table:
    given: dict[str, Column] = {name: requests[name] for name in _CLIENT}
    names: dict[str, Column] = {name: pc.fill_null(column, "").combine_chunks().dictionary_encode() for name, column in given.items()}  # fmt: skip
    traffic: Any = requests["traffic"].combine_chunks()
    of: Any = pc.list_parent_indices(traffic)
    topics, ids, held = pc.list_flatten(traffic).flatten()
    records = np.zeros(len(requests), np.int64)
    np.add.at(records, of.to_numpy(), pc.fill_null(held, 0).to_numpy())
    charged: Column = pc.coalesce(requests["produce_bytes"], requests["fetch_bytes"])
    split, sized = pc.is_valid(traffic), pc.is_valid(charged)
    unknown: Column = pc.if_else(sized, Kind.UNKNOWN_TOPIC, Kind.UNKNOWN_SIZE)
    named = pc.or_(pc.is_valid(topics), pc.is_valid(ids))
    common = {
        **{name: encoded.indices for name, encoded in names.items()},
        "quota_type": pc.if_else(pc.equal(requests["api_key"], pa.scalar(int(ApiKey.PRODUCE))), 0, 1),
        "start": requests["timestamp"].to_numpy() // MINUTE_MS * MINUTE_MS,
    }  # fmt: skip
    whole = pa.table(common | {
        "kind": pc.if_else(pc.and_(split, sized), Kind.PROTOCOL, unknown),
        "topic": pa.nulls(len(requests), pa.string()),
        "topic_id": pa.nulls(len(requests), pa.string()),
        "bytes": pc.subtract(charged, pa.array(records)),
    })  # fmt: skip
    parts = pa.table(common).take(of)
    values = {"kind": pc.if_else(named, Kind.RECORDS, Kind.UNKNOWN_TOPIC), "topic": topics, "topic_id": ids, "bytes": held}  # fmt: skip
    for name, column in values.items():
        parts = parts.append_column(name, column)
    rows = pa.concat_tables([whole, parts])
    rows = rows.append_column("requests", pa.repeat(pa.scalar(1, pa.int64()), len(rows)))  # fmt: skip
    sums = rows.group_by([*_KEY], use_threads=False).aggregate([("requests", "sum"), ("bytes", "sum")])  # fmt: skip
    columns: dict[str, Column] = {name: sums[name] for name in _KEY}
    columns |= {name: encoded.dictionary.take(sums[name]) for name, encoded in names.items()}  # fmt: skip
    columns |= {"quota_type": _TYPES.take(sums["quota_type"]), "requests": sums["requests_sum"], "bytes": sums["bytes_sum"]}  # fmt: skip
    return pa.table([columns[name] for name in TOPICS.names], schema=TOPICS)


def _names(requests: pa.Table) -> pa.Table:
    """The names of ids, once for each day."""
    ids: Any = requests["topic_ids"].combine_chunks()
    topics, numbers = pc.list_flatten(ids).flatten()
    days = requests["timestamp"].to_numpy()[pc.list_parent_indices(ids).to_numpy()] // DAY_MS * DAY_MS  # fmt: skip
    pairs = pa.table({"start": days, "topic": topics, "topic_id": numbers})
    pairs = pairs.group_by(["start", "topic", "topic_id"], use_threads=False).aggregate([])  # fmt: skip
    count = len(pairs)
    columns: dict[str, Column] = {name: pa.repeat("", count) for name in (*_CLIENT, "quota_type")}  # fmt: skip
    columns |= {name: pairs[name] for name in ("start", "topic", "topic_id")}
    columns |= {"kind": pa.repeat(Kind.NAME.value, count), "requests": pa.repeat(pa.scalar(0, pa.int64()), count), "bytes": pa.nulls(count, pa.int64())}  # fmt: skip
    return pa.table([columns[name] for name in TOPICS.names], schema=TOPICS)
