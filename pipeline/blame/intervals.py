"""
The requests of brokers as intervals in flat columns for kernels: enqueued, taken by a handler thread, and released.

The log has the time of its line, when the response had left, in ms, and the durations of the steps before, in us
(Kafka: `RequestChannel.Request.updateRequestMetrics`). So intervals of two requests are at most 1 ms out of place to
each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.metrics.kafka.protocol import ApiKey

from ..columns import CLIENT, Column
from ..replay.compiled import Codes, Ints
from ..replay.frame import dense
from ..table import File, Table
from ..topics import ID

_DURATIONS: Final = ("network_time_ms", "response_queue_time_ms", "remote_time_ms", "thread_time_ms", "queue_time_ms")
"""Durations from the time of the line back to the time when the request was enqueued."""
COLUMNS: Final = ("completed", *CLIENT, "listener", "api_key", *_DURATIONS)
"""
Columns of `REQUESTS` that are read, beside topics.

Followers, exempt and forwarded requests hold handler threads as all others.
"""
RESOLUTION_US: Final = 1_000
"""Resolution of the log's times: the distance between two intervals may be off by as much."""
SpanUs: TypeAlias = tuple[int, int]
"""Begin and end of a period, us since 1970."""
ALWAYS: Final[SpanUs] = (0, 1 << 62)
_NUMBERS: Final = ("enqueued", "dequeued", "released", "groups", "places", "rows")
_LONGEST_MS: Final = 86_400_000.0
"""Longest duration: a longer one is taken for a damaged one, and unknown."""
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
APIs that are sent to controllers of KRaft only.

A listener with one of them is a controller's, whose handler threads are others than the broker's (KIP-1207).

Not among them are Envelope, AllocateProducerIds and AlterPartition, which with ZooKeeper go to the broker that is the
controller.
"""


class Group(NamedTuple):
    """Key by which requests are counted together."""

    user: str
    client_id: str
    api_key: int
    topic: str
    """
    Topic with the most bytes of records, or `id:` and its id if the log has no name.

    It is empty if there is no topic, or it is unknown.
    """


class Place(NamedTuple):
    """A listener of a node."""

    broker: str
    listener: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """Requests, sorted by `dequeued`. Times are us since 1970, UTC; all columns have one length."""

    enqueued: Ints
    dequeued: Ints
    """
    Times when a handler thread took the request.

    It waited from `enqueued` to here, and holds the thread until `released`.
    """
    released: Ints
    groups: Codes
    """Number of the request's group in `names`."""
    places: Codes
    """Number of its listener in `listeners`."""
    rows: Ints
    """Number of the row that the request was made of, within its part."""
    names: Sequence[Group]
    listeners: Sequence[Place]
    controllers: frozenset[Place]
    """Listeners of controllers."""
    unknown: Ints
    """Requests with an unknown queue time, by listener; they are in no other column."""

    def __len__(self) -> int:
        return len(self.dequeued)

    @cached_property
    def pools(self) -> tuple[list[str], Codes]:
        """
        Pools of handler threads, by name, and the number of each listener's pool.

        A broker has one for all of its listeners.
        """
        names = [
            f"{place.broker} controller" if place in self.controllers else place.broker for place in self.listeners
        ]
        pools = sorted(set(names))
        return pools, np.asarray([pools.index(name) for name in names], np.int32)

    @cached_property
    def clients(self) -> tuple[list[tuple[str, str]], Codes]:
        """Users with their client ids, sorted, and the number of each group's client."""
        clients = sorted({(group.user, group.client_id) for group in self.names})
        numbers = {client: number for number, client in enumerate(clients)}
        return clients, np.asarray([numbers[group.user, group.client_id] for group in self.names], np.int32)

    def of_pool(self, name: str) -> Intervals:
        """Return the requests of one pool of handler threads."""
        pools, of_listeners = self.pools
        number = pools.index(name) if name in pools else -1
        unknown = np.where(of_listeners == number, self.unknown, 0)
        return replace(self.only(of_listeners[self.places] == number), unknown=unknown)

    def filled(self, parts: Iterable[Intervals]) -> Intervals:
        """Return the rows of parts under these names and listeners, which include all that the parts have."""
        numbers = {name: number for number, name in enumerate(self.names)}
        places = {place: number for number, place in enumerate(self.listeners)}
        unknown, filled = np.zeros(len(places), np.int64), [self]
        for part in parts:
            of_names = np.asarray([numbers[name] for name in part.names], np.int32)
            of_places = np.asarray([places[place] for place in part.listeners], np.int32)
            np.add.at(unknown, of_places, part.unknown)
            filled.append(replace(part, groups=of_names[part.groups], places=of_places[part.places]))
        columns: Any = {name: np.concatenate([getattr(part, name) for part in filled]) for name in _NUMBERS}
        joined = replace(self, **columns, unknown=unknown)
        return joined.only(np.argsort(joined.dequeued, kind="stable"))

    def only(self, chosen: NDArray[np.bool_] | Ints) -> Intervals:
        """Return some rows, by a mask or their numbers, with the same names and listeners."""
        columns: Any = {name: getattr(self, name)[chosen] for name in _NUMBERS}
        return replace(self, **columns)


def read(
    table: Table, files: Iterable[File], names: Mapping[str, str] | None = None, span_us: SpanUs = ALWAYS
) -> Iterator[Intervals]:
    """
    Yield the intervals of files of `requests` (REQUESTS), batch by batch, as `intervals`.

    Raises what `Table.batches` raises.
    """
    for rows in table.batches(files, COLUMNS if names is None else (*COLUMNS, "traffic")):
        yield intervals(pa.Table.from_batches([rows]), names, span_us)


def intervals(rows: pa.Table, names: Mapping[str, str] | None = None, span_us: SpanUs = ALWAYS) -> Intervals:
    """
    Return the intervals of requests.

    Args:
        rows: rows of `requests`, at least `COLUMNS`, in any order.
        names: names of topics by id (`topic_names`); None leaves topics out, else `traffic` is among the columns.
        span_us: the period in which a request waits or holds a thread. If its queue time, or one of the times after it,
            is unknown, it is counted in `unknown` if it was completed in the period.

    """
    completed = rows["completed"].to_numpy() * 1_000
    sent, answered, remote, local, queued = (_us(rows, name) for name in _DURATIONS)
    is_known = np.minimum.reduce([sent, answered, remote, local, queued]) >= 0
    released = completed - sent - answered - remote
    dequeued = released - local
    begin, end = span_us
    touched = (np.where(is_known, released, completed) >= begin) & (
        np.where(is_known, dequeued - queued, completed) < end
    )
    if not np.all(touched):
        return intervals(rows.filter(pa.array(touched)), names)
    topics: Column = pa.repeat("", len(rows)) if names is None else _topics(rows["traffic"].combine_chunks(), names)
    group_rows, groups = _encoded(rows.append_column("topic", topics), "user", "client_id", "api_key", "topic")
    place_rows, places = _encoded(rows, "broker", "listener")
    listeners = [Place(*row) for row in place_rows]
    of_controllers = np.isin(rows["api_key"].to_numpy(), _OF_CONTROLLERS)
    order = np.flatnonzero(is_known)
    order = order[np.argsort(dequeued[order], kind="stable")]
    return Intervals(
        enqueued=(dequeued - queued)[order],
        dequeued=dequeued[order],
        released=released[order],
        groups=groups[order],
        places=places[order],
        rows=order,
        names=[Group(*row) for row in group_rows],
        listeners=listeners,
        controllers=frozenset(listeners[place] for place in np.unique(places[of_controllers]).tolist()),
        unknown=np.bincount(places[~is_known], minlength=len(listeners))
    )  # fmt: skip


def together(parts: Sequence[Intervals]) -> Intervals:
    """Return all rows of parts, with one list of names and one of listeners, both sorted."""
    listeners = sorted({place for part in parts for place in part.listeners})
    return Intervals(
        enqueued=np.zeros(0, np.int64),
        dequeued=np.zeros(0, np.int64),
        released=np.zeros(0, np.int64),
        groups=np.zeros(0, np.int32),
        places=np.zeros(0, np.int32),
        rows=np.zeros(0, np.int64),
        names=sorted({name for part in parts for name in part.names}),
        listeners=listeners,
        controllers=frozenset(place for part in parts for place in part.controllers),
        unknown=np.zeros(len(listeners), np.int64),
    ).filled(parts)


def _us(rows: pa.Table, name: str) -> Ints:
    """Return a duration in us; -1 if it is unknown."""
    column: Column = rows[name]
    ms = column.fill_null(-1.0).to_numpy()
    valid = (ms >= 0) & (ms <= _LONGEST_MS)
    us: Ints = np.rint(np.where(valid, ms, -0.001) * 1_000).astype(np.int64)
    return us


def _topics(traffic: Column, names: Mapping[str, str]) -> Column:
    """Return by row the topic with the most bytes, the first one of equals; null without a topic."""
    of_rows: Column = pc.list_parent_indices(traffic)
    entries: Column = pc.list_flatten(traffic)
    sizes = entries.field("bytes").fill_null(0).to_numpy()
    order = np.lexsort((-np.arange(len(sizes)), sizes))
    largest = np.full(len(traffic), -1)
    largest[of_rows.to_numpy()[order]] = order  # of several topics of a row, the last assignment stays
    topics, ids = (entries.field(name).take(pa.array(largest, mask=largest < 0)) for name in ("topic", "id"))
    name_indices: Column = pc.index_in(ids, pa.array([*names], pa.string()))
    known_names: Column = pa.array([*names.values()], pa.string())
    return pc.coalesce(topics, known_names.take(name_indices), pc.binary_join_element_wise(ID, ids, ""))


def _encoded(rows: pa.Table, *names: str) -> tuple[list[tuple[Any, ...]], Codes]:
    """Return the distinct rows of some columns, in which null is the empty text, and the number of each row's."""
    mixed = np.zeros(len(rows), np.int64)
    dictionaries: list[Column] = []
    for name in names:
        column: Column = rows[name].combine_chunks()
        encoded = (column.fill_null("") if column.null_count else column).dictionary_encode()
        dictionaries.append(encoded.dictionary)
        mixed = mixed * len(dictionaries[-1]) + encoded.indices.to_numpy()
    numbers, codes = dense(mixed)
    indices = np.unravel_index(numbers, [max(1, len(values)) for values in dictionaries])
    values = (
        dictionary.take(pa.array(index)).to_pylist() for dictionary, index in zip(dictionaries, indices, strict=True)
    )
    return list(zip(*values, strict=True)), codes
