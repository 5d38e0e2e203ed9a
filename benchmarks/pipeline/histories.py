"""Histories as they would be after so many requests, in their order, deterministic by seed."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from benchmarks.pipeline.crowd import CLIENTS_OF_A_USER, Crowd, Floats, Integers
from benchmarks.pipeline.logs import BROKERS, START_MS

from quotascope.pipeline.history.schema import HISTORY

Column: TypeAlias = Any
"""Column of Arrow, whose stubs are of another release."""
DAY_MS: Final = 86_400_000
MINUTE_MS: Final = 60_000
BURST_MS: Final = 10_000
"""Half of the requests come in the first seconds of each minute, so that a limit above the mean is passed, too."""
SLICE: Final = 1_000_000
"""About as many rows are drawn at once; the giant's are all drawn at once."""
API_KEYS: Final = (0, 1, 12, 19)
"""Produce, Fetch, Heartbeat, CreateTopics."""
API_VERSIONS: Final = (10, 16, 3, 7)
MIX: Final = (0.83, 0.155, 0.013, 0.002)
THROTTLED: Final = 0.01


def history(rows: int, crowd: Crowd, *, seed: int = 7) -> Iterator[pa.Table]:
    """
    Yield one day of so many requests to a few brokers, in tables that together are sorted by client, broker and time.

    No user is in two of the tables.
    """
    counts = crowd.counts(rows)
    for number, (begin, end) in enumerate(_slices(counts)):
        random = np.random.default_rng([seed, number])
        yield _table(crowd, begin, counts[begin:end], random)


def _slices(counts: Integers) -> Iterator[tuple[int, int]]:
    """Yield first and last rank of neighbors that have about `SLICE` rows together, whole users only."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        requests_before = ends[begin] - counts[begin]
        end = int(np.searchsorted(ends, requests_before + SLICE)) + 1
        end += -end % CLIENTS_OF_A_USER
        yield begin, min(end, len(counts))
        begin = end


def _table(crowd: Crowd, first_rank: int, counts: Integers, random: np.random.Generator) -> pa.Table:
    rank, broker, timestamp = _requests(counts, random)
    rows = len(rank)
    kind = random.choice(len(MIX), rows, p=MIX)
    size = random.lognormal(7.0, 1.2, rows).astype(np.int64)
    partitions = (size % 12 + 1).astype(np.int32)
    mutations = pa.array(partitions, mask=kind != API_KEYS.index(19))
    request_ms, network_ms, waited = _times(rows, random)
    ranks = range(first_rank, first_rank + len(counts))
    columns = {
        "user": _named([crowd.user(position) for position in ranks], rank),
        "client_id": _named([crowd.client_id(position) for position in ranks], rank),
        "broker": _named([str(index + 1) for index in range(BROKERS)], broker),
        "timestamp": timestamp,
        "completed": timestamp + waited.astype(np.int64),
        "connection": _connections(rank + first_rank, broker, random),
        "api_key": np.array(API_KEYS, np.int16)[kind],
        "api_version": np.array(API_VERSIONS, np.int16)[kind],
        "produce_bytes": pa.array(size, mask=kind != API_KEYS.index(0)),
        "fetch_bytes": pa.array(size, mask=kind != API_KEYS.index(1)),
        "thread_time_ms": request_ms,
        "network_time_ms": network_ms,
        "mutations": mutations,
        "mutations_charged": mutations,
        "mutation_timestamp": pa.array(timestamp, mask=kind != API_KEYS.index(19)),
        "refused": np.zeros(rows, np.bool_),
        "throttle_ms": _throttles(rows, random),
        "file": _named([f"/logs/broker-{index + 1}.log" for index in range(BROKERS)], broker),
        "position": np.argsort(np.argsort(timestamp, kind="stable")),
    }
    unknown = {field.name: pa.nulls(rows, field.type) for field in HISTORY if field.name not in columns}
    return pa.table(columns | unknown, schema=HISTORY)


def _requests(counts: Integers, random: np.random.Generator) -> tuple[Integers, Integers, Integers]:
    """Return client, broker and time of each request, sorted by all three."""
    ranks = np.repeat(np.arange(len(counts)), counts)
    minute = random.integers(0, DAY_MS // MINUTE_MS, len(ranks))
    spread = np.where(random.random(len(ranks)) < 0.5, BURST_MS, MINUTE_MS)  # noqa: PLR2004 - half
    within = (random.random(len(ranks)) * spread).astype(np.int64)
    series = ranks * BROKERS + random.integers(0, BROKERS, len(ranks))
    order = np.sort(series * DAY_MS + minute * MINUTE_MS + within)
    series, time_ms = np.divmod(order, DAY_MS)
    return *np.divmod(series, BROKERS), START_MS + time_ms


def _times(rows: int, random: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Thread time, network time, and from the decision to the end, in ms."""
    request = random.lognormal(np.log(0.11), 0.9, rows).round(3)
    network = random.lognormal(np.log(0.05), 0.9, rows).round(3)
    return request, network, network + random.lognormal(np.log(0.06), 0.9, rows)


def _throttles(rows: int, random: np.random.Generator) -> Integers:
    throttled = random.random(rows) < THROTTLED
    return np.where(throttled, random.integers(1, 1_500, rows), 0).astype(np.int32)


def _connections(rank: Integers, broker: Integers, random: np.random.Generator) -> Integers:
    """Return two connections of each client to each broker."""
    numbers = (rank * BROKERS + broker) * 2 + random.integers(0, 2, len(rank))
    return numbers * np.int64(2_654_435_761)


def _named(names: list[str], places: Integers) -> Column:
    """Return a column of names from their numbers."""
    codes = pa.array(places.astype(np.int32), pa.int32())
    return pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())
