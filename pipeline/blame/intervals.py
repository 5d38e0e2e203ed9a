"""
Intervals of requests in flat columns for kernels: when a request was enqueued, taken by a handler thread, and released.

The log has the time of a line in ms, when the response had left, and the durations of the steps before it in us
(Kafka: `RequestChannel.Request.updateRequestMetrics`). So the distance between two intervals is off by at most 1 ms.
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
"""Durations that lead from the time of the line back to the time when the request was enqueued, latest step first."""
COLUMNS: Final = ("completed", *CLIENT, "listener", "api_key", *_DURATIONS)
"""
Columns of `REQUESTS` that are read, beside topics.

No request is left out: those of followers, exempt and forwarded ones hold handler threads, too.
"""
RESOLUTION_US: Final = 1_000
"""Resolution of the log's times: the distance between two intervals may be off by as much."""
SpanUs: TypeAlias = tuple[int, int]
"""Begin and end of a period, us since 1970."""
ALWAYS: Final[SpanUs] = (0, 1 << 62)
_NUMBERS: Final = ("enqueued", "dequeued", "released", "groups", "places", "rows")
_LONGEST_MS: Final = 86_400_000.0
"""Longest duration that is believed: a longer one counts as unknown."""
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
APIs that only controllers of KRaft serve.

A listener that serves one of them is a controller's. A controller has handler threads of its own, even beside a broker
in one process (KIP-1207).

Envelope, AllocateProducerIds and AlterPartition are missing, because with ZooKeeper they go to the broker that is the
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

    It is empty if the request has no topic, or an unknown one.
    """


class Place(NamedTuple):
    """A listener of a node."""

    broker: str
    listener: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """
    Requests, sorted by `dequeued`.

    A request waits from `enqueued` to `dequeued`, and holds a handler thread from then until `released`. Times are us
    since 1970, UTC. `enqueued`, `dequeued`, `released`, `groups`, `places` and `rows` have an element for each request.
    """

    enqueued: Ints
    dequeued: Ints
    released: Ints
    groups: Codes
    """Index of the request's group in `names`."""
    places: Codes
    """Index of the request's listener in `listeners`."""
    rows: Ints
    """Index of the request's row in the table that `intervals` was called with."""
    names: Sequence[Group]
    listeners: Sequence[Place]
    controllers: frozenset[Place]
    """Listeners of controllers."""
    unknown: Ints
    """Number of requests with an unknown queue time, by listener; they are in no other column."""

    def __len__(self) -> int:
        return len(self.dequeued)

    @cached_property
    def pools(self) -> tuple[list[str], Codes]:
        """
        Names of the pools of handler threads, sorted, and the number of the pool by listener.

        A broker has one pool for all of its listeners, and a controller has one.
        """
        names = [
            f"{place.broker} controller" if place in self.controllers else place.broker for place in self.listeners
        ]
        pools = sorted(set(names))
        return pools, np.asarray([pools.index(name) for name in names], np.int32)

    @cached_property
    def clients(self) -> tuple[list[tuple[str, str]], Codes]:
        """Pairs of user and client id, sorted, and the number of the pair by group."""
        clients = sorted({(group.user, group.client_id) for group in self.names})
        numbers = {client: number for number, client in enumerate(clients)}
        return clients, np.asarray([numbers[group.user, group.client_id] for group in self.names], np.int32)

    def of_pool(self, name: str) -> Intervals:
        """Return the requests of one pool of handler threads."""
        pools, pool_by_listener = self.pools
        number = pools.index(name) if name in pools else -1
        unknown = np.where(pool_by_listener == number, self.unknown, 0)
        return replace(self.only(pool_by_listener[self.places] == number), unknown=unknown)

    def with_rows_of(self, parts: Iterable[Intervals]) -> Intervals:
        """
        Return these requests with those of other parts, sorted by `dequeued`.

        All names and listeners of the parts must be among these. `unknown` is the sum over the parts.
        """
        group_numbers = {name: number for number, name in enumerate(self.names)}
        place_numbers = {place: number for number, place in enumerate(self.listeners)}
        unknown, renumbered = np.zeros(len(place_numbers), np.int64), [self]
        for part in parts:
            groups = np.asarray([group_numbers[name] for name in part.names], np.int32)
            places = np.asarray([place_numbers[place] for place in part.listeners], np.int32)
            np.add.at(unknown, places, part.unknown)
            renumbered.append(replace(part, groups=groups[part.groups], places=places[part.places]))
        columns: Any = {name: np.concatenate([getattr(part, name) for part in renumbered]) for name in _NUMBERS}
        joined = replace(self, **columns, unknown=unknown)
        return joined.only(np.argsort(joined.dequeued, kind="stable"))

    def only(self, chosen: NDArray[np.bool_] | Ints) -> Intervals:
        """Return the requests that a mask or an array of indices chooses, with the same names and listeners."""
        columns: Any = {name: getattr(self, name)[chosen] for name in _NUMBERS}
        return replace(self, **columns)


def read(
    table: Table, files: Iterable[File], names: Mapping[str, str] | None = None, span_us: SpanUs = ALWAYS
) -> Iterator[Intervals]:
    """
    Yield the intervals of the requests in some files of the table `requests`, for each batch of rows.

    `names` and `span_us` are as in `intervals`. Raises what `Table.batches` raises.
    """
    for rows in table.batches(files, COLUMNS if names is None else (*COLUMNS, "traffic")):
        yield intervals(pa.Table.from_batches([rows]), names, span_us)


def intervals(rows: pa.Table, names: Mapping[str, str] | None = None, span_us: SpanUs = ALWAYS) -> Intervals:
    """
    Return the intervals of the requests that waited or held a thread in a period.

    A request whose queue time or later duration is unknown is only counted, in `unknown`, if it was completed in the
    period.

    Args:
        rows: rows of `requests` in any order, with the columns `COLUMNS`.
        names: names of topics by id (`topic_names`), for which rows need the column `traffic`, too. None leaves topics
            out.
        span_us: begin and end of the period.

    """
    completed = rows["completed"].to_numpy() * 1_000
    sent, answered, remote, local, queued = (_us(rows, name) for name in _DURATIONS)
    is_known = np.minimum.reduce([sent, answered, remote, local, queued]) >= 0
    released = completed - sent - answered - remote
    dequeued = released - local
    begin, end = span_us
    # a request with unknown durations is in the period of its completion
    first_us = np.where(is_known, dequeued - queued, completed)
    last_us = np.where(is_known, released, completed)
    is_in_period = (last_us >= begin) & (first_us < end)
    if not np.all(is_in_period):  # again, for the requests in the period alone
        return intervals(rows.filter(pa.array(is_in_period)), names)
    topics: Column = pa.repeat("", len(rows)) if names is None else _topics(rows["traffic"].combine_chunks(), names)
    group_rows, groups = _encoded(rows.append_column("topic", topics), "user", "client_id", "api_key", "topic")
    place_rows, places = _encoded(rows, "broker", "listener")
    listeners = [Place(*row) for row in place_rows]
    for_controllers = np.isin(rows["api_key"].to_numpy(), _OF_CONTROLLERS)
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
        controllers=frozenset(listeners[place] for place in np.unique(places[for_controllers]).tolist()),
        unknown=np.bincount(places[~is_known], minlength=len(listeners))
    )  # fmt: skip


def merged(parts: Sequence[Intervals]) -> Intervals:
    """Return the requests of all parts in one, with sorted names and sorted listeners."""
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
    ).with_rows_of(parts)


def _us(rows: pa.Table, name: str) -> Ints:
    """Return a column of durations, ms, in us; -1 for unknown ones."""
    column: Column = rows[name]
    ms = column.fill_null(-1.0).to_numpy()
    valid = (ms >= 0) & (ms <= _LONGEST_MS)
    us: Ints = np.rint(np.where(valid, ms, -0.001) * 1_000).astype(np.int64)  # -0.001 ms becomes -1
    return us


def _topics(traffic: Column, names: Mapping[str, str]) -> Column:
    """Return the topic with the most bytes by row, the first of equal ones; null for a row without a topic."""
    row_by_entry: Column = pc.list_parent_indices(traffic)
    entries: Column = pc.list_flatten(traffic)
    sizes = entries.field("bytes").fill_null(0).to_numpy()
    order = np.lexsort((-np.arange(len(sizes)), sizes))  # by size, and of equal sizes the later entry first
    largest = np.full(len(traffic), -1)
    largest[row_by_entry.to_numpy()[order]] = order  # the last assignment to a row stays, its largest entry
    topics, ids = (entries.field(name).take(pa.array(largest, mask=largest < 0)) for name in ("topic", "id"))
    name_indices: Column = pc.index_in(ids, pa.array([*names], pa.string()))
    known_names: Column = pa.array([*names.values()], pa.string())
    return pc.coalesce(topics, known_names.take(name_indices), pc.binary_join_element_wise(ID, ids, ""))


def _encoded(rows: pa.Table, *names: str) -> tuple[list[tuple[Any, ...]], Codes]:
    """
    Return the distinct tuples of values in some columns, and the number of the tuple by row.

    Nulls become empty texts.
    """
    # A tuple of values is one number, whose digits are the indices in the columns' dictionaries.
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
