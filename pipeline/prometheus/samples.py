"""
The table of raw samples of clients: its columns, its series, and its rows as tracks.

A row is a sample. In a slice of an ingest, the first row of each series and UTC day has the labels of the series. So
there is no second table for labels, and a day can be read alone. A file has rows of one UTC day and one shard of
entities.
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
"""Columns that tracks are made of."""
_SERIES_A_SHARD: Final = 500
"""Approximate number of series of a shard in a new table."""
_MOST_SHARDS: Final = 64
"""Largest number of shards of a new table."""

Labels: TypeAlias = Mapping[str, str]


def series_id(labels: Labels) -> int:
    """Return the number of a series by its labels, which include the name."""
    digest = hashlib.blake2b(labels_text(labels).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def labels_text(labels: Labels) -> str:
    """Return labels as JSON, sorted by name; a label with an empty value is left out, as in Prometheus."""
    return json.dumps({name: value for name, value in sorted(labels.items()) if value}, separators=(",", ":"))


def samples_layout(series: int) -> TableLayout:
    """Return the layout of a table for a number of series."""
    shards = min(_MOST_SHARDS, 1 + series // _SERIES_A_SHARD)
    return TableLayout(shard_of="entity", shards=shards, day_of="timestamp")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A series in a table."""

    labels: Labels
    shard: int
    """Shard of the entity."""


def recorded_in(table: Table, engine: Engine, begin: float, end: float) -> dict[int, Recorded]:
    """Return the series of the UTC days of a period, Unix times in seconds, by `series_id`."""
    first_ms, last_ms = round(begin * 1_000), round(end * 1_000)
    # whole days, as the row with the labels of a series may lie before the period
    days = range(first_ms // DAY_MS, last_ms // DAY_MS + 1)
    files_by_shard: dict[int, Sequence[File]] = {}
    for shard, files in table.shards().items():
        files_of_days = tuple(file for file in files if file.day in days)
        if files_of_days:
            files_by_shard[shard] = files_of_days
    texts_by_shard = engine.map(partial(_labels_in, table), [*files_by_shard.values()])
    recorded: dict[int, Recorded] = {}
    for shard, texts in zip(files_by_shard, texts_by_shard, strict=True):
        for labels in map(json.loads, texts):
            recorded[series_id(labels)] = Recorded(labels, shard)
    return recorded


def _labels_in(table: Table, files: Sequence[File]) -> list[str]:
    """Return the labels of the series in some files, as JSON, each once. No other column is read."""
    texts: dict[str, None] = {}
    for batch in table.batches(files, ["labels"]):
        texts.update(dict.fromkeys(filter(None, batch.column("labels").drop_null().to_pylist())))
    return [*texts]


def origins_in(table: Table) -> list[Labels]:
    """Return the origins of the samples in a table, one for each ingest, from files of their own (`ORIGIN_DAY`)."""
    files = [file for file in table.files_of("") if file.day == ORIGIN_DAY]
    return [labels for labels in map(json.loads, _labels_in(table, files)) if labels[NAME] == ORIGIN]


def tracks_in(
    table: Table, files: Sequence[File], numbers: Iterable[int], begin: float, end: float
) -> dict[int, Track]:
    """
    Return the samples of some series in a range, and in the `LOOKBACK_MS` before it, by `series_id`.

    Args:
        table: table of samples.
        files: files of the table that have the series.
        numbers: `series_id` of each series.
        begin: begin of the range, Unix time in seconds.
        end: end of the range, Unix time in seconds, which is part of it.

    """
    since, until = round(begin * 1_000) - LOOKBACK_MS, round(end * 1_000)
    wanted = np.fromiter(numbers, np.int64)
    chunks: list[tuple[Times, Times, Floats, npt.NDArray[np.bool_]]] = []
    for batch in table.batches([file for file in files if file.overlaps(since, until + 1)], _READ):
        times, series = (np.asarray(batch.column(name).to_numpy(), np.int64) for name in _READ[:2])
        chosen = (times > since) & (times <= until) & np.isin(series, wanted)
        if chosen.any():
            value = batch.column("value")
            values = np.asarray(value.to_numpy(zero_copy_only=False), np.float64)
            ended = np.asarray(value.is_null().to_numpy(zero_copy_only=False), np.bool_)
            chunks.append((times[chosen], series[chosen], values[chosen], ended[chosen]))
    if not chunks:
        return {}
    time_chunks, series_chunks, value_chunks, ended_chunks = zip(*chunks, strict=True)
    times, series = np.concatenate(time_chunks), np.concatenate(series_chunks)
    values, ended = np.concatenate(value_chunks), np.concatenate(ended_chunks)
    order = np.argsort(series, kind="stable")
    numbers_in_order, firsts = np.unique(series[order], return_index=True)
    return {
        int(number): Track.of(times[part], values[part], ended[part])
        for number, part in zip(numbers_in_order, np.split(order, firsts[1:]), strict=True)
    }


def rows_of(series: Iterable[tuple[Labels, str, Times, Floats, Sequence[bool]]]) -> pa.Table:
    """
    Return rows of the table.

    A series has its labels, entity, times in ms, values, and a flag for each time at which it ended.
    """
    tables = [_rows(labels, entity, times, values, ended) for labels, entity, times, values, ended in series]
    return pa.concat_tables(tables) if tables else SAMPLES.empty_table()


def _rows(labels: Labels, entity: str, times_ms: Times, values: Floats, ended: Sequence[bool]) -> pa.Table:
    """Return the rows of a series; the first one of each day has the labels."""
    count = len(times_ms)
    # labels on every day, as a file has one day, and files of other days may not be read, or be dropped
    _, firsts = np.unique(times_ms // DAY_MS, return_index=True)
    # indices in `texts`: 0 for the labels, 1 for null
    text_or_null = np.full(count, 1, np.int32)
    text_or_null[firsts] = 0
    texts = pa.array([labels_text(labels), None], pa.string())
    columns = [
        pa.array(times_ms, pa.int64()),
        pa.array(np.full(count, series_id(labels)), pa.int64()),
        pa.array(values, pa.float64(), mask=np.asarray(ended, np.bool_)),
        pa.repeat(pa.scalar(entity, pa.string()), count),
        texts.take(pa.array(text_or_null, pa.int32())),
    ]
    return pa.table(columns, schema=SAMPLES)


def shards_by(table: Table, files: Iterable[File]) -> dict[int, tuple[File, ...]]:
    """Return files by shard."""
    by_shard: dict[int, list[File]] = {shard: [] for shard in range(table.layout.shards)}
    for file in files:
        by_shard[file.shard].append(file)
    return {shard: tuple(shard_files) for shard, shard_files in by_shard.items()}


def all_files(by_shard: Mapping[int, Sequence[File]]) -> list[File]:
    """Return the files of all shards."""
    return list(chain.from_iterable(by_shard.values()))
