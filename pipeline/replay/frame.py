"""Requests of a history as the columns that kernels work on, in the order in which sensors measure them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.metrics.protocol import ApiKey

from ..columns import Column, array
from ..errors import PipelineError
from ..history.schema import HISTORY, PLACE
from .compiled import Codes, Flags, Floats, Ints, kernel, natural

PRODUCE: Final = 0
FETCH: Final = 1
REQUEST: Final = 2
MUTATION: Final = 3
KINDS: Final = 4
"""The quota types, as kernels number them; a request charges at most one of them beside `REQUEST`."""
NO_KIND: Final = -1

NEEDED: Final = (
    "user",
    "client_id",
    "broker",
    "timestamp",
    "completed",
    "connection",
    "api_key",
    "api_version",
    "produce_bytes",
    "fetch_bytes",
    "thread_time_ms",
    "network_time_ms",
    "mutations",
    "mutations_charged",
    "mutation_timestamp",
    "refused",
    "throttle_ms",
    *PLACE,
)
"""The columns of a history that a replay reads; it can do without those of the place."""
FETCH_APIS = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
STRICT_SINCE = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""The first version of each request at which clients understand a refusal."""
_PERCENT_PER_NANO = 100.0 / 1e9
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SMALL = 1 << 16


class RequestColumns(NamedTuple):
    """Requests in order of decision within each group of entities that can meet in a sensor."""

    times: Ints
    """Decision, epoch ms."""
    pairs: Codes
    """Number of the entity on its broker."""
    connections: Codes
    kinds: Flags
    """The quota type beside `REQUEST` that is charged, `NO_KIND` for none."""
    sizes: Ints
    """Bytes or partitions that it is charged."""
    as_logged: Flags
    """1 where the log shows a Fetch answered empty, or a mutation refused: it was not charged in the end."""
    permissive: Flags
    """1 where the version is too old for a mutation to be refused."""
    percents: Floats
    """Thread time in percent-seconds that `REQUEST` is charged, NaN for none."""


class RequestRow(NamedTuple):
    """One request, taken out of the columns once for all candidates."""

    row: int
    time: int
    """Epoch ms."""
    pair: int
    connection: int
    kind: int
    size: int
    timed: bool
    """Whether the request quota is charged."""


class TableSizes(NamedTuple):
    """Sizes of the flat tables."""

    candidates: int
    pairs: int
    connections: int
    slots: int
    """Tables of measurements: sensors that candidates share are measured once."""
    mutations: int
    longest_ms: int
    """Where the throttle times of rates stop before they are cut to 32 bits (`metrics.KafkaRelease.longest_rate_ms`)."""


@kernel
def is_timed(requests: RequestColumns, row: int) -> bool:
    """Whether the request quota is charged."""
    percent: float = requests.percents[row]
    return percent == percent  # noqa: PLR0124 - NaN is not


@kernel
def request_at(requests: RequestColumns, row: int) -> RequestRow:
    """Return a request of the columns."""
    return RequestRow(
        row=row,
        time=requests.times[row],
        pair=natural(requests.pairs[row]),
        connection=natural(requests.connections[row]),
        kind=requests.kinds[row],
        size=requests.sizes[row],
        timed=is_timed(requests, row),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entities:
    """The users with their client ids in some rows; entity n is the n-th of each column."""

    users: Column
    client_ids: Column

    def only(self, numbers: Ints | Codes) -> Entities:
        """Some of them."""
        chosen = array(numbers)
        return Entities(users=self.users.take(chosen), client_ids=self.client_ids.take(chosen))

    def names(self) -> list[tuple[str, str]]:
        """The pairs of names."""
        return list(zip(self.users.to_pylist(), self.client_ids.to_pylist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """Some requests, complete in their groups."""

    requests: RequestColumns
    entities: Entities
    brokers: Column
    pair_entities: Codes
    """By pair of entity and broker: number of its entity; pairs are sorted by it."""
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
    positions: Ints
    """By request: where it stood in its file."""

    @property
    def kept(self) -> Ints:
        """By request: bytes or partitions that it charged in the end, of a refused mutation the granted partitions."""
        requests = self.requests
        return np.where(requests.as_logged == 1, self.charged, requests.sizes)

    @property
    def unsized(self) -> NDArray[np.bool_]:
        """By request: whether it is a Fetch (`_fill_withheld`) or a mutation of unknown size: others have at least the bytes of a head, or a partition."""
        requests = self.requests
        withheld = (requests.kinds == FETCH) & (requests.as_logged == 1)
        unsized: NDArray[np.bool_] = (withheld | (requests.kinds == MUTATION)) & (requests.sizes == 0)
        return unsized

    @property
    def pairs(self) -> int:
        """How many entities on brokers there are."""
        return len(self.pair_entities)

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return int(self.requests.connections.max(initial=-1)) + 1


def needed(table: pa.Table) -> pa.Table:
    """The columns that a replay reads, null where a request's place is unknown. Raises `PipelineError` when another one is missing, or null."""
    missing = [name for name in NEEDED if name not in (*table.column_names, *PLACE)]
    if missing:
        raise PipelineError(f"the history lacks the columns {', '.join(missing)}; make it with this release")
    for name in PLACE:
        if name not in table.column_names:
            unknown = pa.nulls(len(table), HISTORY.field(name).type)
            table = table.append_column(name, unknown)
    for name in NEEDED:
        nulls = table.column(name).null_count
        if nulls and not HISTORY.field(name).nullable:
            raise PipelineError(
                f"the history's column {name} is null in {nulls:,} of {len(table):,} rows; docs/history.md says what it holds"
            )
    return table.select(NEEDED)


def entities_of(table: pa.Table) -> tuple[Entities, Codes]:
    """The entities of a history, sorted by their names, and the number of each row's."""
    users, of_users = _encoded(table.column("user"))
    clients, of_clients = _encoded(table.column("client_id"))
    count = max(1, len(clients))
    numbers, codes = dense(of_users.astype(np.int64) * count + of_clients)
    return Entities(users=users.take(array(numbers // count)), client_ids=clients.take(array(numbers % count))), codes


def in_order(table: pa.Table, groups: Ints) -> Ints:
    """The order of rows by group, time and place; those of unknown places come first, by user, client id and broker, and else as they are."""
    times = ints(table, "timestamp")
    order = order_of(groups, times)
    tied = (np.diff(groups[order]) == 0) & (np.diff(times[order]) == 0)
    if tied.any():
        chosen = np.flatnonzero(np.r_[tied, False] | np.r_[False, tied])
        rows = order[chosen]
        some = table.select((*PLACE, "user", "client_id", "broker")).take(array(rows))
        known = some.column("position").null_count == 0
        names = ("file",) if known else ("broker", "client_id", "user", "file")
        ranks: dict[str, Ints] = {}
        for name in names:
            text: Column = some.column(name).cast(pa.string())
            ranks[name] = pc.rank(pc.fill_null(text, ""), tiebreaker="dense").to_numpy()
        file = ranks.pop("file")
        keys = (
            *ranks.values(),
            ints(some, "position"),
            file,
            times[rows],
            groups[rows],
        )
        order[chosen] = rows[np.lexsort(keys)]
    return order


def order_of(groups: Ints, times: Ints) -> Ints:
    """The order of rows by group and then by time, equal ones as they are."""
    by_time = np.argsort(times, kind="stable")  # quick: logs are nearly in it
    later = groups[by_time]
    if later.max(initial=0) < _SMALL:
        later = later.astype(np.uint16)  # for which NumPy counts instead of comparing
    return by_time[np.argsort(later, kind="stable")]


def frame_of(table: pa.Table, entities: Entities, codes: Codes, groups: Ints) -> Frame:
    """
    The frame of some rows.

    Args:
        table: rows of a history, sorted by group and then by time.
        entities: all that occur.
        codes: of each row.
        groups: of each row.

    """
    brokers, of_brokers = _encoded(table.column("broker"))
    count = max(1, len(brokers))
    numbers, pairs = dense(codes.astype(np.int64) * count + of_brokers)
    times = ints(table, "timestamp")
    charged_at = ints(table, "mutation_timestamp")
    return Frame(
        requests=_requests(table, pairs, times),
        entities=entities,
        brokers=brokers,
        pair_entities=(numbers // count).astype(np.int32),
        pair_brokers=(numbers % count).astype(np.int32),
        groups=groups,
        networks=np.nan_to_num(_percents(table, "network_time_ms")),
        completed=ints(table, "completed"),
        throttles=ints(table, "throttle_ms"),
        mutation_times=np.where(_known(table, "mutation_timestamp"), charged_at, times),
        charged=ints(table, "mutations_charged"),
        positions=ints(table, "position"),
    )


def _requests(table: pa.Table, pairs: Codes, times: Ints) -> RequestColumns:
    # The same connection with another client id is another one: its requests meet in other sensors.
    hashes = ints(table, "connection").view(np.uint64)
    mixed = hashes ^ (pairs.astype(np.uint64) * _ODD)
    encoded = pa.array(mixed.view(np.int64)).dictionary_encode()
    connections = np.require(encoded.indices.to_numpy(), np.int32, ["C", "W"])
    kinds, sizes, withheld = _charges(table)
    _fill_withheld(sizes, kinds == FETCH, withheld, connections)
    column: Column = table.column("refused")
    refused = (kinds == MUTATION) & column.fill_null(False).to_numpy()  # noqa: FBT003 - a value
    keys, versions = ints(table, "api_key"), ints(table, "api_version")
    permissive = np.zeros(len(table), np.int8)
    for key, first in STRICT_SINCE.items():
        permissive[(keys == key) & (versions < first)] = 1
    return RequestColumns(
        times=times,
        pairs=pairs,
        connections=connections,
        kinds=kinds,
        sizes=sizes,
        as_logged=(withheld | refused).astype(np.int8),
        permissive=permissive,
        percents=_percents(table, "thread_time_ms"),
    )


def _charges(table: pa.Table) -> tuple[Flags, Ints, NDArray[np.bool_]]:
    """Which quota beside the request quota each row charges, how much, and whether it is a Fetch of unknown size that was answered empty."""
    kinds = np.full(len(table), NO_KIND, np.int8)
    sizes = ints(table, "mutations")
    unknown = _known(table, "mutation_timestamp") & ~_known(table, "mutations")
    kinds[unknown | (sizes > 0)] = MUTATION  # one of none, as for a topic that exists, fails before the quota is asked
    for kind, name in ((FETCH, "fetch_bytes"), (PRODUCE, "produce_bytes")):
        known = _known(table, name)
        kinds[known] = kind
        sizes[known] = ints(table, name)[known]
    fetches = np.isin(ints(table, "api_key"), FETCH_APIS)
    throttled = ints(table, "throttle_ms") > 0
    withheld = fetches & throttled & _known(table, "thread_time_ms") & (kinds == NO_KIND)
    kinds[withheld] = FETCH
    return kinds, sizes, withheld


def _fill_withheld(sizes: Ints, fetches: NDArray[np.bool_], withheld: NDArray[np.bool_], connections: Codes) -> None:
    """
    Fill in the sizes of Fetches that were answered empty: the log has their empty answers only.

    The client sends the Fetch again, so its size is taken to be that of its connection's next Fetch that was answered; without one, 0. It
    is charged and given back at once, and matters for its own throttle only.
    """
    if not withheld.any():
        return
    rows = np.flatnonzero(fetches)
    rows = rows[np.argsort(connections[rows], kind="stable")]
    last = len(rows)
    known = np.where(withheld[rows], last, np.arange(last))
    following = np.minimum.accumulate(known[::-1])[::-1]
    unknown = withheld[rows] & (following < last)
    source = rows[np.minimum(following, last - 1)]
    unknown &= connections[source] == connections[rows]
    sizes[rows[unknown]] = sizes[source[unknown]]


def _percents(table: pa.Table, name: str) -> Floats:
    """Thread time in percent-seconds, as a broker makes them of ns; NaN where no time is charged."""
    column: Column = table.column(name)
    ms = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
    ms = np.where(np.isfinite(ms), ms, np.nan)
    result: Floats = np.rint(ms * 1e6) * _PERCENT_PER_NANO
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


def _known(table: pa.Table, name: str) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = pc.is_valid(table.column(name)).to_numpy()
    return known


def _encoded(column: Column) -> tuple[Column, Codes]:
    """The different names of a column, sorted, and the number of each row's."""
    encoded = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order))
    return encoded.dictionary.take(array(order)), ranks[encoded.indices.to_numpy()]
