"""
The requests of brokers as intervals: when each was enqueued, taken by a handler thread, and done with it, in flat columns for kernels.

The log has the time of its line, of 1 ms, when the response had left, and the durations of what was before, of 1 us (Kafka:
`RequestChannel.Request.updateRequestMetrics`). Intervals of two requests are so at most 1 ms out of place to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.metrics.protocol import ApiKey

from ..history.topics import ID
from ..replay.compiled import Codes, Ints
from ..replay.frame import dense
from ..table import File, Table
from ..table.layout import Column

COLUMNS: Final = (
    "completed",
    "broker",
    "listener",
    "user",
    "client_id",
    "api_key",
    "thread_time_ms",
    "network_time_ms",
    "queue_time_ms",
    "remote_time_ms",
    "response_queue_time_ms",
    "traffic",
    "topic_ids",
)
"""What is read of `REQUESTS`: followers, exempt and forwarded requests hold handler threads as all others."""
OF_TOPICS: Final = ("traffic", "topic_ids")
RESOLUTION_US: Final = 1_000
"""Of the log's times: by so much two intervals may be out of place to each other."""
SpanUs: TypeAlias = tuple[int, int]
"""Begin and end of a period, us since 1970."""
ALWAYS: Final[SpanUs] = (0, 1 << 62)
_NUMBERS: Final = ("enqueued", "dequeued", "released", "groups", "places", "rows")
_LONGEST_MS: Final = 86_400_000.0
"""A duration above a day is taken for a damaged one, and unknown."""
_OF_CONTROLLERS: Final = (
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
)
"""
Sent to controllers of KRaft only: a listener with one of them is a controller's, whose handler threads are others than the broker's (KIP-1207).

Not among them are Envelope, AllocateProducerIds and AlterPartition, which with ZooKeeper go to the broker that is the controller.
"""


class Group(NamedTuple):
    """What requests are counted together by."""

    user: str
    client_id: str
    api_key: int
    topic: str | None
    """The topic with the most bytes of records, or `id:` and its id where the log has no name; None where there is none, or it is unknown."""


class Place(NamedTuple):
    """A listener of a node."""

    broker: str
    listener: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """Requests, sorted by `dequeued`. Times are us since 1970, UTC; all columns have one length."""

    enqueued: Ints
    dequeued: Ints
    """When a handler thread took it: it waited from `enqueued` to here, and holds the thread from here to `released`."""
    released: Ints
    groups: Codes
    """Number of its group in `names`."""
    places: Codes
    """Number of its listener in `listeners`."""
    rows: Ints
    """Its number among the rows that it was made of, with others of its part."""
    names: Sequence[Group]
    listeners: Sequence[Place]
    controllers: frozenset[Place]
    """Listeners of controllers."""
    topics: Mapping[str, str]
    """Names of topics by `id:` and id, as responses have both."""
    unknown: Ints
    """By listener: requests whose queue time is unknown, and which are in no other column: rows of a release that did not keep it."""

    def __len__(self) -> int:
        return len(self.dequeued)

    @cached_property
    def pools(self) -> tuple[list[str], Codes]:
        """Pools of handler threads, by name, and by listener the number of its pool: a broker has one for all of its listeners."""
        names = [f"{each.broker} controller" if each in self.controllers else each.broker for each in self.listeners]
        found = sorted(set(names))
        return found, np.asarray([found.index(name) for name in names], np.int32)

    @cached_property
    def clients(self) -> tuple[list[tuple[str, str]], Codes]:
        """The users with their client ids, sorted, and the number of each group's."""
        found = sorted({(each.user, each.client_id) for each in self.names})
        numbers = {entity: number for number, entity in enumerate(found)}
        return found, np.asarray([numbers[each.user, each.client_id] for each in self.names], np.int32)

    def of_pool(self, name: str) -> Intervals:
        """Those that one pool of handler threads serves."""
        pools, of_listeners = self.pools
        number = pools.index(name) if name in pools else -1
        unknown = np.where(of_listeners == number, self.unknown, 0)
        return replace(self.only(of_listeners[self.places] == number), unknown=unknown)

    def filled(self, parts: Iterable[Intervals]) -> Intervals:
        """Rows of parts under these names and listeners, of which the parts have no others."""
        numbers = {name: number for number, name in enumerate(self.names)}
        places = {each: number for number, each in enumerate(self.listeners)}
        unknown, filled = np.zeros(len(places), np.int64), [self]
        for part in parts:
            named = (name._replace(topic=self.topics.get(name.topic or "", name.topic)) for name in part.names)
            of_names = np.asarray([numbers[name] for name in named], np.int32)
            of_places = np.asarray([places[each] for each in part.listeners], np.int32)
            np.add.at(unknown, of_places, part.unknown)
            filled.append(replace(part, groups=of_names[part.groups], places=of_places[part.places]))
        columns: Any = {name: np.concatenate([getattr(part, name) for part in filled]) for name in _NUMBERS}
        whole = replace(self, **columns, unknown=unknown)
        return whole.only(np.argsort(whole.dequeued, kind="stable"))

    def only(self, chosen: NDArray[np.bool_] | Ints) -> Intervals:
        """Some rows, by a mask or their numbers, of the same names and listeners."""
        columns: Any = {name: getattr(self, name)[chosen] for name in _NUMBERS}
        return replace(self, **columns)


def read(table: Table, files: Iterable[File], *, topics: bool = True, span_us: SpanUs = ALWAYS) -> Intervals:
    """The intervals of files of `requests`, on request without topics, as of `intervals`. Raises what `Table.batches` raises."""
    columns = [name for name in COLUMNS if name in table.schema.names and (topics or name not in OF_TOPICS)]
    batches = table.batches(files, columns)
    return together([intervals(pa.Table.from_batches([rows]), span_us) for rows in batches])


def intervals(rows: pa.Table, span_us: SpanUs = ALWAYS) -> Intervals:
    """
    The intervals of rows of `requests`, in any order, that wait or hold a thread in a period; and the names of topics that any row has.

    Rows whose queue time, or one of the times after it, is unknown are counted in `unknown` if they were completed in it.
    """
    size = len(rows)
    completed = rows["completed"].to_numpy() * 1_000
    sent, answered, remote, local, queued = (
        _us(rows, name)
        for name in ("network_time_ms", "response_queue_time_ms", "remote_time_ms", "thread_time_ms", "queue_time_ms")
    )
    known = np.minimum.reduce([sent, answered, remote, local, queued]) >= 0
    released = completed - sent - answered - remote
    dequeued = released - local
    begin, end = span_us
    touched = (np.where(known, released, completed) >= begin) & (np.where(known, dequeued - queued, completed) < end)
    if not np.all(touched):
        return replace(intervals(rows.filter(pa.array(touched))), topics=_named(rows))
    names, groups = _encoded(rows["user"], rows["client_id"], rows["api_key"], _topics(rows))
    found, places = _encoded(rows["broker"], rows["listener"])
    listeners = [Place(broker or "", listener or "") for broker, listener in found]
    keys = np.asarray([group[2] for group in names], np.int64)
    of_controllers = np.isin(keys, _OF_CONTROLLERS)[groups] if size else np.zeros(0, bool)
    order = np.flatnonzero(known)
    order = order[np.argsort(dequeued[order], kind="stable")]
    return Intervals(
        enqueued=(dequeued - queued)[order],
        dequeued=dequeued[order],
        released=released[order],
        groups=groups[order],
        places=places[order],
        rows=order,
        names=[Group(user or "", client_id or "", int(key), topic) for user, client_id, key, topic in names],
        listeners=listeners,
        controllers=frozenset(listeners[place] for place in np.unique(places[of_controllers]).tolist()),
        topics=_named(rows),
        unknown=np.bincount(places[~known], minlength=len(listeners))
    )  # fmt: skip


def together(parts: Sequence[Intervals]) -> Intervals:
    """All rows of parts, with one list of names and one of listeners, both sorted; a topic whose name one of the parts has is named in all."""
    topics = {each: name for part in parts for each, name in part.topics.items()}
    names = {name._replace(topic=topics.get(name.topic or "", name.topic)) for part in parts for name in part.names}
    listeners = sorted({each for part in parts for each in part.listeners})
    return Intervals(
        enqueued=np.zeros(0, np.int64),
        dequeued=np.zeros(0, np.int64),
        released=np.zeros(0, np.int64),
        groups=np.zeros(0, np.int32),
        places=np.zeros(0, np.int32),
        rows=np.zeros(0, np.int64),
        names=sorted(names, key=_sorted_by),
        listeners=listeners,
        controllers=frozenset(each for part in parts for each in part.controllers),
        topics=topics,
        unknown=np.zeros(len(listeners), np.int64),
    ).filled(parts)


def _sorted_by(group: Group) -> tuple[str, str, int, bool, str]:
    return (*group[:3], group.topic is not None, group.topic or "")


def _us(rows: pa.Table, name: str) -> Ints:
    """A duration in us; -1 where it is unknown."""
    if name not in rows.column_names:
        return np.full(len(rows), -1, np.int64)
    column: Column = rows[name]
    ms = column.fill_null(-1.0).to_numpy()
    valid = (ms >= 0) & (ms <= _LONGEST_MS)
    us: Ints = np.rint(np.where(valid, ms, -0.001) * 1_000).astype(np.int64)
    return us


def _topics(rows: pa.Table) -> Column:
    """By row: the topic with the most bytes, the first of several with as many; else null."""
    if "traffic" not in rows.column_names:
        return pa.nulls(len(rows), pa.string())
    lists: Column = rows["traffic"].combine_chunks()
    of_rows: Column = pc.list_parent_indices(lists)
    entries: Column = pc.list_flatten(lists)
    sizes = entries.field("bytes").fill_null(0).to_numpy()
    order = np.lexsort((-np.arange(len(sizes)), sizes))
    largest = np.full(len(rows), -1)
    largest[of_rows.to_numpy()[order]] = order  # of those of a row the last stays
    ids = pc.binary_join_element_wise(ID, entries.field("id"), "")
    topics: Column = pc.coalesce(entries.field("topic"), ids)
    return topics.take(pa.array(largest, mask=largest < 0))


def _named(rows: pa.Table) -> dict[str, str]:
    """The names of topics, by `id:` and id, that rows have."""
    if "topic_ids" not in rows.column_names:
        return {}
    found: Column = pc.list_flatten(rows["topic_ids"].combine_chunks())
    pairs = pa.table({name: found.field(name) for name in ("id", "topic")}).drop_null()
    different = pairs.group_by(["id", "topic"]).aggregate([]).to_pylist()
    return {f"{ID}{each['id']}": each["topic"] for each in different}


def _encoded(*columns: Column) -> tuple[list[tuple[Any, ...]], Codes]:
    """The different rows of some columns, and the number of each row's."""
    mixed = np.zeros(len(columns[0]), np.int64)
    found: list[Column] = []
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        found.append(encoded.dictionary)
        mixed = mixed * len(found[-1]) + encoded.indices.to_numpy()
    numbers, codes = dense(mixed)
    parts = np.unravel_index(numbers, [max(1, len(values)) for values in found])
    values = (each.take(pa.array(part)).to_pylist() for each, part in zip(found, parts, strict=True))
    return list(zip(*values, strict=True)), codes
