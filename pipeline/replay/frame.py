"""Requests of a history as the columns that kernels work on, in the order in which sensors measure them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.protocol import ApiKey

from ..columns import Column, array
from ..errors import PipelineError
from ..history.schema import BYTES_COLUMNS, HISTORY, PLACE
from .compiled import Codes, Flags, Floats, Ints, kernel, natural

_TYPES: Final = tuple(QuotaType)
PRODUCE: Final = _TYPES.index(QuotaType.PRODUCE)
FETCH: Final = _TYPES.index(QuotaType.FETCH)
REQUEST: Final = _TYPES.index(QuotaType.REQUEST)
MUTATION: Final = _TYPES.index(QuotaType.CONTROLLER_MUTATION)
KINDS: Final = len(_TYPES)
"""Number of quota types. A *kind* is the number of a quota type in kernels."""
NO_KIND: Final = -1
"""Kind of a request that charges no quota beside `REQUEST`."""

NEEDED: Final = (
    "user",
    "client_id",
    "broker",
    "timestamp",
    "completed",
    "connection",
    "api_key",
    "api_version",
    *BYTES_COLUMNS.values(),
    "thread_time_ms",
    "network_time_ms",
    "mutations",
    "mutations_charged",
    "mutation_timestamp",
    "refused",
    "throttle_ms",
    *PLACE,
)
"""Columns of a history that a replay reads; a history may lack the columns of `PLACE`."""
STRICT_SINCE = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""First version of each request at which clients understand a refusal."""
_PERCENT_PER_NANO = 100.0 / 1e9
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Odd factor that spreads small numbers over 64 bits: 2^64 divided by the golden ratio."""
_SMALL = 1 << 16
"""Number that no group reaches if groups fit in 16 bits."""


class RequestColumns(NamedTuple):
    """Requests, sorted by group (`plan.groups_of`), and then by the time of the broker's decision."""

    times: Ints
    """Time of the decision, epoch ms."""
    pairs: Codes
    """Number of the pair of entity and broker."""
    connections: Codes
    """Number of the connection."""
    kinds: Flags
    """Quota type beside `REQUEST` that is charged, `NO_KIND` for none."""
    sizes: Ints
    """Charged bytes or partitions."""
    as_logged: Flags
    """1 for a Fetch that the log shows as answered empty, or a refused mutation: its charge was given back."""
    permissive: Flags
    """1 if the request's version is so old that a mutation is never refused."""
    percents: Floats
    """Thread time that `REQUEST` is charged, percent-seconds; NaN for none."""


class RequestRow(NamedTuple):
    """One request of `RequestColumns`, so that it is read once for all candidates."""

    row: int
    time: int
    """Epoch ms."""
    pair: int
    connection: int
    kind: int
    size: int
    timed: bool
    """True if the request quota is charged."""


class TableSizes(NamedTuple):
    """Sizes of the flat tables."""

    candidates: int
    pairs: int
    connections: int
    slots: int
    """Number of tables of measurements: sensors that candidates share are measured once."""
    mutations: int


@kernel
def is_timed(requests: RequestColumns, row: int) -> bool:
    """Return whether the request quota is charged."""
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
    """Pairs of user and client id. An entity's number is its index in both columns."""

    users: Column
    client_ids: Column

    def only(self, numbers: Ints | Codes) -> Entities:
        """Return the entities with some numbers."""
        number_column = array(numbers)
        return Entities(users=self.users.take(number_column), client_ids=self.client_ids.take(number_column))

    def names(self) -> list[tuple[str, str]]:
        """Return the entities as tuples of user and client id."""
        return list(zip(self.users.to_pylist(), self.client_ids.to_pylist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """All requests of some groups."""

    requests: RequestColumns
    entities: Entities
    brokers: Column
    """Names of the brokers."""
    pair_entities: Codes
    """Number of the entity by pair of entity and broker; pairs are sorted by it."""
    pair_brokers: Codes
    """Number of the broker by pair."""
    groups: Ints
    """Group by request; requests are sorted by it, and then by time."""
    networks: Floats
    """Network thread's time by request, percent-seconds."""
    completed: Ints
    """Time by request when the response had left, epoch ms."""
    throttles: Ints
    """Reported throttle time by request, ms; negative if the log has none."""
    mutation_times: Ints
    """Time by request when the controller charged it, epoch ms."""
    charged: Ints
    """Charged mutations by request as logged."""
    files: Column
    """File of its log by request."""
    positions: Ints
    """Position in its file by request."""

    @property
    def final_sizes(self) -> Ints:
        """Bytes or partitions by request that were not given back; the granted partitions of a refused mutation."""
        requests = self.requests
        return np.where(requests.as_logged == 1, self.charged, requests.sizes)

    @property
    def unsized(self) -> NDArray[np.bool_]:
        """
        Mask of the Fetches (`_fill_withheld`) and mutations of unknown size, by request.

        Their size is 0. A known size is never 0: a Fetch has the bytes of a header, and a mutation has a partition.
        """
        requests = self.requests
        withheld = (requests.kinds == FETCH) & (requests.as_logged == 1)
        unsized: NDArray[np.bool_] = (withheld | (requests.kinds == MUTATION)) & (requests.sizes == 0)
        return unsized

    @property
    def pairs(self) -> int:
        """Number of pairs of entity and broker."""
        return len(self.pair_entities)

    @property
    def connections(self) -> int:
        """Number of connections."""
        return int(self.requests.connections.max(initial=-1)) + 1


def needed(table: pa.Table) -> pa.Table:
    """
    Return the columns of a history that a replay reads; a missing column of `PLACE` is null.

    Raises `PipelineError` if another column is missing, or has nulls that it must not have.
    """
    missing = [name for name in NEEDED if name not in (*table.column_names, *PLACE)]
    if missing:
        raise PipelineError(
            f"the history lacks the columns {', '.join(missing)}; the documentation (Usage history on "
            "disk) says what a history holds"
        )
    for name in PLACE:
        if name not in table.column_names:
            unknown = pa.nulls(len(table), HISTORY.field(name).type)
            table = table.append_column(name, unknown)
    for name in NEEDED:
        nulls = table.column(name).null_count
        if nulls and not HISTORY.field(name).nullable:
            raise PipelineError(
                f"the history's column {name} is null in {nulls:,} of {len(table):,} rows; "
                "the documentation (Usage history on disk) says what it holds"
            )
    return table.select(NEEDED)


def entities_of(table: pa.Table) -> tuple[Entities, Codes]:
    """Return the entities of a history, sorted by their names, and the number of the entity by row."""
    users, user_codes = _encoded(table.column("user"))
    clients, client_codes = _encoded(table.column("client_id"))
    count = max(1, len(clients))
    # an entity as one number, from which division by `count` gets both codes back
    pairs, codes = dense(user_codes.astype(np.int64) * count + client_codes)
    return Entities(users=users.take(array(pairs // count)), client_ids=clients.take(array(pairs % count))), codes


def in_order(table: pa.Table, groups: Ints) -> Ints:
    """
    Return the order of rows by group, time and place in the log.

    Tied rows without a place come first, by user, client id and broker, and otherwise keep their order.
    """
    times = ints(table, "timestamp")
    order = order_of(groups, times)
    # most rows have a time of their own, so only tied ones are compared by their place
    is_tied_with_next = (np.diff(groups[order]) == 0) & (np.diff(times[order]) == 0)
    if is_tied_with_next.any():
        tied_places = np.flatnonzero(np.r_[is_tied_with_next, False] | np.r_[False, is_tied_with_next])
        rows = order[tied_places]
        tied_rows = table.select((*PLACE, "user", "client_id", "broker")).take(array(rows))
        all_have_places = tied_rows.column("position").null_count == 0
        names = () if all_have_places else ("broker", "client_id", "user")
        name_ranks = [_text_ranks(tied_rows, name) for name in names]
        # `lexsort` sorts by its last key first
        keys = (*name_ranks, ints(tied_rows, "position"), _text_ranks(tied_rows, "file"), times[rows], groups[rows])
        order[tied_places] = rows[np.lexsort(keys)]
    return order


def _text_ranks(table: pa.Table, name: str) -> Ints:
    """Return the rank of each row's text in a column, the same for equal ones; null is the empty text."""
    text: Column = table.column(name).cast(pa.string())
    ranks: Ints = pc.rank(pc.fill_null(text, ""), tiebreaker="dense").to_numpy()
    return ranks


def order_of(groups: Ints, times: Ints) -> Ints:
    """Return the order of rows by group and then by time; equal rows keep their order."""
    by_time = np.argsort(times, kind="stable")  # quick, since logs are nearly in this order
    groups_by_time = groups[by_time]
    if groups_by_time.max(initial=0) < _SMALL:
        groups_by_time = groups_by_time.astype(np.uint16)  # NumPy sorts 16 bits by counting instead of comparing
    return by_time[np.argsort(groups_by_time, kind="stable")]


def frame_of(table: pa.Table, entities: Entities, codes: Codes, groups: Ints) -> Frame:
    """
    Return the frame of some rows.

    Args:
        table: rows of a history, sorted by group and then by time.
        entities: all entities of the rows.
        codes: number of each row's entity.
        groups: group of each row.

    """
    brokers, broker_codes = _encoded(table.column("broker"))
    count = max(1, len(brokers))
    # a pair as one number, from which division by `count` gets both codes back
    entities_and_brokers, pairs = dense(codes.astype(np.int64) * count + broker_codes)
    times = ints(table, "timestamp")
    charged_at = ints(table, "mutation_timestamp")
    return Frame(
        requests=_requests(table, pairs, times),
        entities=entities,
        brokers=brokers,
        pair_entities=(entities_and_brokers // count).astype(np.int32),
        pair_brokers=(entities_and_brokers % count).astype(np.int32),
        groups=groups,
        networks=np.nan_to_num(_percents(table, "network_time_ms")),
        completed=ints(table, "completed"),
        throttles=ints(table, "throttle_ms"),
        mutation_times=np.where(_is_valid(table, "mutation_timestamp"), charged_at, times),
        charged=ints(table, "mutations_charged"),
        files=table.column("file"),
        positions=ints(table, "position"),
    )


def _requests(table: pa.Table, pairs: Codes, times: Ints) -> RequestColumns:
    """Return the columns of requests, given their pairs of entity and broker, and the times of the decisions."""
    # A connection that is used with two client ids counts as two, since their requests are in different sensors.
    # So the hash of the connection is mixed with the number of the pair.
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
    for key, strict_version in STRICT_SINCE.items():
        permissive[(keys == key) & (versions < strict_version)] = 1
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
    """
    Return three arrays by row: the quota that is charged beside the request quota, the charged amount, and a mask.

    The mask marks Fetches of unknown size, which were answered empty.
    """
    kinds = np.full(len(table), NO_KIND, np.int8)
    sizes = ints(table, "mutations")
    has_unknown_mutations = _is_valid(table, "mutation_timestamp") & ~_is_valid(table, "mutations")
    # a request for no partition, as of an existing topic, fails before the quota
    kinds[has_unknown_mutations | (sizes > 0)] = MUTATION
    # reversed, so that the first column decides for a row that has several
    for kind, name in reversed(BYTES_COLUMNS.items()):
        has_size = _is_valid(table, name)
        kinds[has_size] = _TYPES.index(kind)
        sizes[has_size] = ints(table, name)[has_size]
    fetches = np.isin(ints(table, "api_key"), QuotaType.FETCH.apis)
    throttled = ints(table, "throttle_ms") > 0
    withheld = fetches & throttled & _is_valid(table, "thread_time_ms") & (kinds == NO_KIND)
    kinds[withheld] = FETCH
    return kinds, sizes, withheld


def _fill_withheld(sizes: Ints, fetches: NDArray[np.bool_], withheld: NDArray[np.bool_], connections: Codes) -> None:
    """
    Fill in the sizes of Fetches that were answered empty (`withheld`), which the log does not have.

    The client sends such a Fetch again. So its size is taken to be the size of the connection's next Fetch that was
    not answered empty; without one it stays 0. As the size is charged and given back at once, it only changes the
    throttle of the Fetch itself.
    """
    if not withheld.any():
        return
    rows = np.flatnonzero(fetches)
    rows = rows[np.argsort(connections[rows], kind="stable")]
    # `rows` are the Fetches of one connection after the other, in order of time. For each of them find the place in
    # `rows` of the next Fetch that has a size: the smallest such place from its own on; `count` if there is none.
    count = len(rows)
    sized_places = np.where(withheld[rows], count, np.arange(count))
    next_sized_place = np.minimum.accumulate(sized_places[::-1])[::-1]
    source = rows[np.minimum(next_sized_place, count - 1)]
    has_source = (next_sized_place < count) & (connections[source] == connections[rows])
    filled = withheld[rows] & has_source
    sizes[rows[filled]] = sizes[source[filled]]


def _percents(table: pa.Table, name: str) -> Floats:
    """Return a column of ms in percent-seconds of a thread, as a broker computes them from ns; NaN if it has none."""
    column: Column = table.column(name)
    ms = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
    ms = np.where(np.isfinite(ms), ms, np.nan)
    result: Floats = np.rint(ms * 1e6) * _PERCENT_PER_NANO
    return result


def dense(codes: Ints) -> tuple[Ints, Codes]:
    """
    Return the distinct codes, sorted, and the index of each element's code among them.

    It is fast if equal codes follow each other.
    """
    if not len(codes):
        return codes, codes.astype(np.int32)
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    numbers, places = np.unique(codes[starts], return_inverse=True)
    lengths = np.diff(np.r_[starts, len(codes)])
    return numbers, np.repeat(places.astype(np.int32), lengths)


def ints(table: pa.Table, name: str) -> Ints:
    """Return a column as int64, 0 for null."""
    column: Column = table.column(name)
    values = column.cast(pa.int64()).fill_null(0).to_numpy()
    return np.require(values, requirements=["C", "W"])


def _is_valid(table: pa.Table, name: str) -> NDArray[np.bool_]:
    """Return the mask of the rows in which a column is not null."""
    is_valid: NDArray[np.bool_] = pc.is_valid(table.column(name)).to_numpy()
    return is_valid


def _encoded(column: Column) -> tuple[Column, Codes]:
    """Return the distinct texts of a column, sorted, and the index of each row's text among them."""
    encoded = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order))
    return encoded.dictionary.take(array(order)), ranks[encoded.indices.to_numpy()]
