"""
Lines in, tables out: each line becomes a row of `requests` or of `quarantine`.

The same function serves a program on its own and the tasks of Spark.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.protocol import ApiKey

from ..releases import level_of
from .line import FIELDS, LineReader, Row
from .schema import PARSED_QUARANTINE, PARSED_REQUESTS, REQUESTS, TRAFFIC, Reason, Unreadable
from .sizes import Traffic

LONGEST: Final = 16 << 20
"""Bytes of the longest line that is read; a Fetch of ten thousand partitions has about 4 MB."""
SHORT: Final = 256
"""Bytes of an unreadable line that is looked at once; longer ones cost no more a byte than requests do."""
KEPT_TEXT: Final = 4096
"""Bytes of a line that the quarantine keeps."""
_API_KEY: Final = FIELDS.index("api_key")
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_FIELD_SCHEMA: Final = pa.schema([REQUESTS.field(name) for name in FIELDS])
_MISFIT: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for a value that does not fit its column."""
_Place: TypeAlias = tuple[int | None, bytes]
"""Number and text of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """Where lines come from."""

    file: str
    """The file's path, or a topic and its partition."""
    broker: str | None = None
    """Name of the broker that wrote the log; None takes the address that each line names."""
    zone: tzinfo = UTC
    """Zone of times without an offset."""
    numbered: bool = True
    """Whether the numbers of lines are those of the file or partition, not of a part of a file: those only grow."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What became of some lines."""

    requests: pa.Table
    """In `PARSED_REQUESTS`, in the order of the lines; what mutations follow from other lines is still missing (`MutationLedger`)."""
    quarantine: pa.Table
    """In `PARSED_QUARANTINE`."""

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch]) -> Self:
        """What batches of both tables hold together, in their order."""
        requests, quarantine = (
            pa.Table.from_batches([batch for batch in batches if batch.schema == schema], schema)
            for schema in (PARSED_REQUESTS, PARSED_QUARANTINE)
        )
        return cls(requests, quarantine)

    def combined(self) -> Self:
        """The same in a copy of one chunk; many small chunks take twice as long to be looked up and written."""
        return type(self)(self.requests.combine_chunks(), self.quarantine.combine_chunks())


def parse_lines(lines: Iterable[bytes | None], numbers: Iterable[int | None], source: LogSource) -> Parsed:
    """
    Read lines; None is an empty line.

    A short text that cannot be read is looked at once, however often it comes: a small compressed file may hold millions of empty lines.

    Args:
        lines: as they are, without their ends.
        numbers: of the lines, None where unknown.
        source: where they come from.

    """
    junk: dict[bytes, int] = {}
    read = LineReader(source.broker, source.zone).row
    rows: list[Row] = []
    places: list[_Place] = []
    refused: list[tuple[Unreadable, _Place]] = []
    for line, number in zip(lines, numbers, strict=True):
        text = line or b""
        # the hash of a long text takes as long as a tenth of its parsing
        if len(text) <= SHORT and text in junk:
            junk[text] += 1
            continue
        if len(text) > LONGEST:
            error = Unreadable(Reason.TOO_LONG, f"more than {LONGEST} bytes")
            refused.append((error, (number, text)))
            continue
        try:
            rows.append(read(text))
            places.append((number, text))
        except Unreadable as unreadable:
            refused.append((unreadable, (number, text)))
            if len(text) <= SHORT:
                junk[text] = 1
    try:
        batch = _batch(rows)
    except _MISFIT:
        misfits = dict(_misfits(rows, 0))
        refused += [(Unreadable(Reason.UNKNOWN_SHAPE, detail), places[index]) for index, detail in misfits.items()]
        fitting = [index for index in range(len(rows)) if index not in misfits]
        rows = [rows[index] for index in fitting]
        places = [places[index] for index in fitting]
        batch = _batch(rows)
    levels = [
        level_of(text) if row[_API_KEY] == _API_VERSIONS else None for row, (_, text) in zip(rows, places, strict=True)
    ]
    return Parsed(
        _requests(batch, [number for number, _ in places], levels, source), _quarantine(refused, junk, source)
    )


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows in `FIELDS` as columns, their types checked: a line's JSON may hold text where a number belongs. Raises one of `_MISFIT`."""
    columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    arrays: list[Any] = [
        _traffic(values) if field.name == "traffic" else pa.array(values, field.type)
        for values, field in zip(columns, _FIELD_SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=_FIELD_SCHEMA)


def _traffic(rows: Sequence[Traffic | None]) -> "pa.Array[Any]":
    """The column `traffic`; flat arrays take a third of the time of nested values."""
    flat = list(chain.from_iterable(filter(None, rows)))
    parts: list[Any] = [pa.array(flat[at::3], field.type) for at, field in enumerate(TRAFFIC)]
    sizes = np.array([-3 if row is None else len(row) for row in rows], np.int32) // 3
    ends = np.cumsum(np.maximum(sizes, 0), dtype=np.int32)
    return pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], ends)), pa.int32()),
        pa.StructArray.from_arrays(parts, fields=list(TRAFFIC)),
        mask=pa.array(sizes < 0),
    )


def _misfits(rows: Sequence[Row], first: int) -> Iterator[tuple[int, str]]:
    """Numbers of the rows that do not fit, with what is wrong, found by halves."""
    try:
        _batch(rows)
    except _MISFIT as error:
        if len(rows) == 1:
            yield first, str(error)
            return
        half = len(rows) // 2
        yield from _misfits(rows[:half], first)
        yield from _misfits(rows[half:], first + half)


def _requests(
    batch: pa.RecordBatch, numbers: list[int | None], levels: list[int | None], source: LogSource
) -> pa.Table:
    table = pa.Table.from_batches([batch])
    position = pa.array(numbers, pa.int64())
    given = {
        "mutations_known": pc.is_null(table["topics"]),
        "file": pa.repeat(source.file, len(table)),
        "position": position,
        "level": pa.array(levels, pa.int32()),
    } | ({"line": position} if source.numbered else {})
    return pa.table(
        [
            table[field.name]
            if field.name in table.column_names
            else given.get(field.name, pa.nulls(len(table), field.type))
            for field in PARSED_REQUESTS
        ],
        schema=PARSED_REQUESTS,
    )


def _quarantine(refused: list[tuple[Unreadable, _Place]], junk: Mapping[bytes, int], source: LogSource) -> pa.Table:
    rows = [
        (
            error.reason.value,
            error.detail,
            line[:KEPT_TEXT],
            len(line),
            source.file,
            number if source.numbered else None,
            # of the text alone: logs are renamed, copied and compressed
            blake2b(line, digest_size=16).digest(),
            junk.get(line, 1),
        )
        for error, (number, line) in refused
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(PARSED_QUARANTINE)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, PARSED_QUARANTINE, strict=True)]
    return pa.table(arrays, schema=PARSED_QUARANTINE)
