"""Requests of a history as NumPy columns, in the order in which sensors meet them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..kernels.compiled import Codes, Floats, Ints
from ..kernels.requests import FETCH, MUTATION, NO_KIND, PRODUCE, Requests
from .withheld import fill_withheld

FETCH_APIS = (1, 78)
"""Fetch and ShareFetch."""
STRICT_SINCE = {19: 6, 20: 5, 37: 3}
"""First versions of CreateTopics, DeleteTopics and CreatePartitions whose clients understand a refusal."""
_PERCENT_PER_NANO = 100.0 / 1e9
_ODD = np.uint64(0x9E3779B97F4A7C15)

Column: TypeAlias = Any  # pyarrow's stubs are of another release


def array(values: object) -> Column:
    """An Arrow array."""
    return pa.array(values)  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entities:
    """The users with their client ids in some rows; entity n is the n-th of each column."""

    users: Column
    client_ids: Column

    def only(self, numbers: Ints | Codes) -> Entities:
        """Some of them."""
        chosen = array(numbers)
        return Entities(
            users=self.users.take(chosen), client_ids=self.client_ids.take(chosen)
        )

    def names(self) -> list[tuple[str, str]]:
        """The pairs of names."""
        return list(
            zip(self.users.to_pylist(), self.client_ids.to_pylist(), strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """Some requests, complete in their groups."""

    requests: Requests
    entities: Entities
    brokers: Column
    pair_entities: Codes
    """By pair: number of its entity; pairs are sorted by it."""
    pair_brokers: Codes
    groups: Ints
    """By request: its group; requests are sorted by it, and then by time."""
    networks: Floats
    """By request: network thread's time, percent-seconds."""
    completed: Ints
    throttles: Ints
    """By request: what the log reports, ms; negative where it does not."""
    mutation_times: Ints
    """By request: when the controller charged it, epoch ms."""
    charged: Ints
    """By request: mutations that were charged as logged."""
    api_keys: Ints

    @property
    def kept(self) -> Ints:
        """By request: bytes or partitions that it charged in the end, of a refused mutation what it was granted."""
        requests = self.requests
        return np.where(requests.as_logged == 1, self.charged, requests.sizes)

    @property
    def pairs(self) -> int:
        """How many entities on brokers there are."""
        return len(self.pair_entities)


def entities_of(table: pa.Table) -> tuple[Entities, Codes]:
    """The entities of a history, and the number of each row's."""
    users = _encoded(table.column("user"))
    clients = _encoded(table.column("client_id"))
    count = max(1, len(clients.dictionary))
    combined = _indices(users).astype(np.int64) * count + _indices(clients)
    numbers, codes = dense(combined)
    return Entities(
        users=users.dictionary.take(array(numbers // count)),
        client_ids=clients.dictionary.take(array(numbers % count)),
    ), codes


def frame_of(table: pa.Table, entities: Entities, codes: Codes, groups: Ints) -> Frame:
    """
    The frame of some rows.

    Args:
        table: rows of a history, sorted by group and then by time.
        entities: all that occur.
        codes: of each row.
        groups: of each row.

    """
    brokers = _encoded(table.column("broker"))
    count = max(1, len(brokers.dictionary))
    numbers, pairs = dense(codes.astype(np.int64) * count + _indices(brokers))
    times = ints(table, "timestamp")
    return Frame(
        requests=_requests(table, pairs, times),
        entities=entities,
        brokers=brokers.dictionary,
        pair_entities=(numbers // count).astype(np.int32),
        pair_brokers=(numbers % count).astype(np.int32),
        groups=groups,
        networks=np.nan_to_num(percents(table, "network_ms")),
        completed=ints(table, "completed"),
        throttles=ints(table, "throttle_ms"),
        mutation_times=_or(table, "mutation_timestamp", times),
        charged=ints(table, "mutations_charged"),
        api_keys=ints(table, "api_key"),
    )


def _requests(table: pa.Table, pairs: Codes, times: Ints) -> Requests:
    connections = _connections(table, pairs)
    kinds, sizes, withheld = charges(table)
    fill_withheld(sizes, kinds == FETCH, withheld, connections)
    refused = (kinds == MUTATION) & _flags(table, "refused")
    return Requests(
        times=times,
        pairs=pairs,
        connections=connections,
        kinds=kinds,
        sizes=sizes,
        as_logged=(withheld | refused).astype(np.int8),
        permissive=_permissive(table),
        percents=percents(table, "request_ms"),
    )


def charges(
    table: pa.Table,
) -> tuple[NDArray[np.int8], Ints, NDArray[np.bool_]]:
    """Which quota beside the request quota each row charges, how much, and whether it is a Fetch of unknown size that was answered empty."""
    count = len(table)
    kinds = np.full(count, NO_KIND, np.int8)
    sizes = np.zeros(count, np.int64)
    columns = (
        (MUTATION, "mutations"),
        (FETCH, "fetch_bytes"),
        (PRODUCE, "produce_bytes"),
    )
    for kind, name in columns:
        known = _known(table, name)
        kinds[known] = kind
        sizes[known] = ints(table, name)[known]
    fetches = np.isin(ints(table, "api_key"), FETCH_APIS)
    timed = _known(table, "request_ms")
    throttled = ints(table, "throttle_ms") > 0
    withheld = fetches & throttled & timed & (kinds == NO_KIND)
    kinds[withheld] = FETCH
    return kinds, sizes, withheld


def percents(table: pa.Table, name: str) -> Floats:
    """Thread time in percent-seconds, as a broker makes them of ns; NaN where nothing is charged."""
    column: Column = table.column(name)
    ms = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
    ms = np.where(np.isfinite(ms), ms, np.nan)
    result: Floats = np.rint(ms * 1e6) * _PERCENT_PER_NANO
    return result


def _connections(table: pa.Table, pairs: Codes) -> Codes:
    # The same connection with another client id is another one: its requests meet in other sensors.
    hashes = ints(table, "connection").view(np.uint64)
    mixed = hashes ^ (pairs.astype(np.uint64) * _ODD)
    return _indices(pa.array(mixed.view(np.int64)).dictionary_encode())


def _permissive(table: pa.Table) -> NDArray[np.int8]:
    keys, versions = ints(table, "api_key"), ints(table, "api_version")
    result = np.zeros(len(table), np.int8)
    for key, first in STRICT_SINCE.items():
        result[(keys == key) & (versions < first)] = 1
    return result


def dense(codes: Ints) -> tuple[Ints, Codes]:
    """The different numbers, sorted, and the place of each element's among them; quick where equal ones stand together."""
    if not len(codes):
        return codes, codes.astype(np.int32)
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    numbers, places = np.unique(codes[starts], return_inverse=True)
    lengths = np.diff(np.r_[starts, len(codes)])
    return numbers, np.repeat(places.astype(np.int32), lengths)


def ints(table: pa.Table, name: str) -> Ints:
    """A column as int64, 0 for null."""
    column: Column = table.column(name)
    values = column.cast(pa.int64()).fill_null(0).to_numpy()
    return np.require(values, requirements=["C", "W"])


def _or(table: pa.Table, name: str, other: Ints) -> Ints:
    known = _known(table, name)
    return np.where(known, ints(table, name), other)


def _known(table: pa.Table, name: str) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = pc.is_valid(table.column(name)).to_numpy()
    return known


def _flags(table: pa.Table, name: str) -> NDArray[np.bool_]:
    column: Column = table.column(name)
    flags: NDArray[np.bool_] = column.fill_null(False).to_numpy()  # noqa: FBT003 - a value
    return flags


def _encoded(column: Column) -> Column:
    whole = column.combine_chunks()
    return whole.dictionary_encode()


def _indices(encoded: Column) -> Codes:
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return np.require(indices, np.int32, ["C", "W"])
