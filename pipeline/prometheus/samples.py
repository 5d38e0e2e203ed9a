"""
The table of raw samples of clients: its columns, its series, and tracks of its rows.

A row is a sample. The first row of each series and UTC day in a slice of an ingest has the series's labels, so that the
table needs no other, and each day can be read alone. Files are of one UTC day and one shard of entities.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..columns import column
from ..engine import Engine
from ..table import File, Table, TableLayout
from ..table.storage import DAY_MS
from .figures import LOOKBACK_MS, Floats, Times, Track

SAMPLES: Final = pa.schema([
    column("timestamp", pa.int64(), "Time of the scrape: ms since 1970, UTC."),
    column("series", pa.int64(), "Number of the series: a hash of its labels."),
    column("value", pa.float64(), "The number as it was scraped; null where the series ended.", null=True),
    column("entity", pa.string(), "User, or client-id of an entity without one: its shard. Empty for nodes."),
    column("labels", pa.string(), "All labels as JSON, on the first row of a series and day in a slice.", null=True),
])  # fmt: skip
"""Columns of the table."""
NAME: Final = "__name__"
ORIGIN: Final = "quotascope_ingest"
"""Name of a series without samples that says where samples are from: address and selector, and which hours they are."""
ORIGIN_DAY: Final = 0
"""Day of its rows, 1970-01-01, of which a Prometheus has no samples: they are read without any sample."""
_READ: Final = ("timestamp", "series", "value")
_SERIES_A_SHARD: Final = 500
_MOST_SHARDS: Final = 64

Labels: TypeAlias = Mapping[str, str]


def series_id(labels: Labels) -> int:
    """Return the number of a series by its labels, among which is its name."""
    digest = hashlib.blake2b(labels_text(labels).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def labels_text(labels: Labels) -> str:
    """Return labels as JSON, in the order of their names; an empty value is none, as in Prometheus."""
    return json.dumps({name: value for name, value in sorted(labels.items()) if value}, separators=(",", ":"))


def samples_layout(series: int) -> TableLayout:
    """Return the layout of a table for so many series."""
    shards = min(_MOST_SHARDS, 1 + series // _SERIES_A_SHARD)
    return TableLayout(shard_of="entity", shards=shards, day_of="timestamp")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A series in a table."""

    labels: Labels
    shard: int
    """The shard of its entity."""


def recorded_in(table: Table, engine: Engine, begin: float, end: float) -> dict[int, Recorded]:
    """Return the series of the days of a period, Unix times in seconds, by `series_id`."""
    first_ms, last_ms = round(begin * 1_000), round(end * 1_000)
    # by day, as a series may have its labels on a row of the day before the period
    days = range(first_ms // DAY_MS, last_ms // DAY_MS + 1)
    by_shard = {
        shard: of_days
        for shard, files in table.shards().items()
        if (of_days := tuple(file for file in files if file.day in days))
    }
    found = engine.map(partial(_labels_in, table), [*by_shard.values()])
    recorded: dict[int, Recorded] = {}
    for shard, texts in zip(by_shard, found, strict=True):
        for labels in map(json.loads, texts):
            recorded[series_id(labels)] = Recorded(labels, shard)
    return recorded


def _labels_in(table: Table, files: Sequence[File]) -> list[str]:
    """Return the labels of the series in files; of other columns, which have a value in each row, nothing is read."""
    texts: dict[str, None] = {}
    for batch in table.batches(files, ["labels"]):
        texts.update(dict.fromkeys(filter(None, batch.column("labels").drop_null().to_pylist())))
    return [*texts]


def origins_in(table: Table) -> list[Labels]:
    """Return where the samples of a table are from, ingest by ingest, which is in files of its own (`ORIGIN_DAY`)."""
    files = [file for file in table.files_of("") if file.day == ORIGIN_DAY]
    return [labels for labels in map(json.loads, _labels_in(table, files)) if labels[NAME] == ORIGIN]


def tracks_in(
    table: Table, files: Sequence[File], numbers: Iterable[int], begin: float, end: float
) -> dict[int, Track]:
    """
    Return the samples of some series from `LOOKBACK_MS` before a time up to another.

    Args:
        table: the table.
        files: its files with these series.
        numbers: their `series_id`.
        begin: Unix time in seconds.
        end: likewise, which is in the range.

    """
    since, until = round(begin * 1_000) - LOOKBACK_MS, round(end * 1_000)
    wanted = np.fromiter(numbers, np.int64)
    columns: list[tuple[Times, Times, Floats, npt.NDArray[np.bool_]]] = []
    for batch in table.batches([file for file in files if file.overlaps(since, until + 1)], _READ):
        times, series = (np.asarray(batch.column(name).to_numpy(), np.int64) for name in _READ[:2])
        chosen = (times > since) & (times <= until) & np.isin(series, wanted)
        if chosen.any():
            value = batch.column("value")
            values = np.asarray(value.to_numpy(zero_copy_only=False), np.float64)
            ended = np.asarray(value.is_null().to_numpy(zero_copy_only=False), np.bool_)
            columns.append((times[chosen], series[chosen], values[chosen], ended[chosen]))
    if not columns:
        return {}
    of_times, of_series, of_values, of_ends = zip(*columns, strict=True)
    times, series = np.concatenate(of_times), np.concatenate(of_series)
    values, ended = np.concatenate(of_values), np.concatenate(of_ends)
    order = np.argsort(series, kind="stable")
    numbers_in_order, firsts = np.unique(series[order], return_index=True)
    return {
        int(number): Track.of(times[part], values[part], ended[part])
        for number, part in zip(numbers_in_order, np.split(order, firsts[1:]), strict=True)
    }


def rows_of(series: Iterable[tuple[Labels, str, Times, Floats, Sequence[bool]]]) -> pa.Table:
    """Return rows of the table from series: labels, entity, times in ms, values, and whether the series ended there."""
    tables = [_rows(*one) for one in series]
    return pa.concat_tables(tables) if tables else SAMPLES.empty_table()


def _rows(labels: Labels, entity: str, times_ms: Times, values: Floats, ended: Sequence[bool]) -> pa.Table:
    count = len(times_ms)
    # on each day, as files are of one, and those of other days may not be read, or be dropped
    _, firsts = np.unique(times_ms // DAY_MS, return_index=True)
    places = np.full(count, 1, np.int32)
    places[firsts] = 0
    texts = pa.array([labels_text(labels), None], pa.string())
    columns = [
        pa.array(times_ms, pa.int64()),
        pa.array(np.full(count, series_id(labels)), pa.int64()),
        pa.array(values, pa.float64(), mask=np.asarray(ended, np.bool_)),
        pa.repeat(pa.scalar(entity, pa.string()), count),
        texts.take(pa.array(places, pa.int32())),
    ]
    return pa.table(columns, schema=SAMPLES)


def shards_by(table: Table, files: Iterable[File]) -> dict[int, tuple[File, ...]]:
    """Return files by shard."""
    by_shard: dict[int, list[File]] = {shard: [] for shard in range(table.layout.shards)}
    for file in files:
        by_shard[file.shard].append(file)
    return {shard: tuple(of_shard) for shard, of_shard in by_shard.items()}


def all_files(by_shard: Mapping[int, Sequence[File]]) -> list[File]:
    """Return the files of all shards."""
    return list(chain.from_iterable(by_shard.values()))
