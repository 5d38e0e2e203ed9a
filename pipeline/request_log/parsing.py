"""
Lines in, tables out: each line becomes a row of `requests` or of `quarantine`.

The same function serves a program on its own and the tasks of Spark.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .conversion import batch_of, misfits
from .reasons import Reason, Unreadable
from .record import FIELDS, LineReader, Row
from .releases import API_VERSIONS, level_of
from .schema import QUARANTINE, REQUESTS

LONGEST: Final = 16 << 20
"""Bytes of the longest line that is read; a Fetch of ten thousand partitions has about 4 MB."""
SHORT: Final = 256
"""Bytes of an unreadable line that is remembered; longer ones cost no more a byte than requests do."""
MOST_JUNK: Final = 100_000
"""How many of them are remembered."""
KEPT_TEXT: Final = 4096
"""Bytes of a line that the quarantine keeps."""
_API_KEY: Final = FIELDS.index("api_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where lines come from."""

    file: str
    """The file's path, or a topic and its partition."""
    broker: str | None = None
    """Name of the broker whose log it is; None takes the address that each line names."""
    zone: tzinfo = UTC
    """Zone of times without an offset."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What became of some lines."""

    requests: pa.Table
    """In `REQUESTS`, in the order of the lines; what mutations follow from other lines is still missing (`MutationLedger`)."""
    quarantine: pa.Table
    """In `QUARANTINE`."""
    levels: Any
    """By request, an Arrow column: the newest `metadata.version` that its answer names (`level_of`); null for nearly all."""
    again: int = 0
    """Lines that cannot be read whose text came before: they are in neither table."""


def parse(
    lines: "pa.Array[Any] | pa.ChunkedArray[Any]",
    numbers: "pa.Array[Any] | None",
    source: Source,
) -> Parsed:
    """Read lines that are Arrow strings or bytes; `numbers` are theirs, null or None where they are not known."""
    given = [None] * len(lines) if numbers is None else numbers.to_pylist()
    return parse_lines(lines.cast(pa.binary()).to_pylist(), given, source)


def parse_lines(
    lines: Iterable[bytes | None],
    numbers: Iterable[int | None],
    source: Source,
    junk: set[bytes] | None = None,
) -> Parsed:
    """
    `parse`, of Python values; None is an empty line.

    A short text that cannot be read is looked at once, however often it comes: a small compressed file may hold millions of empty lines.

    Args:
        lines: as they are, without their ends.
        numbers: of the lines.
        source: where they come from.
        junk: such texts of earlier lines, and of these afterwards.

    """
    known = set[bytes]() if junk is None else junk
    again = 0
    read = LineReader(source.broker, source.zone).row
    rows: list[Row] = []
    places: list[tuple[int | None, bytes]] = []
    refused: list[tuple[Unreadable, int | None, bytes]] = []
    for line, number in zip(lines, numbers, strict=True):
        text = line or b""
        if text in known:
            again += 1
            continue
        if len(text) > LONGEST:
            error = Unreadable(Reason.TOO_LONG, f"more than {LONGEST} bytes")
            refused.append((error, number, text))
            continue
        try:
            rows.append(read(text))
            places.append((number, text))
        except Unreadable as unreadable:
            refused.append((unreadable, number, text))
            if len(text) <= SHORT and len(known) < MOST_JUNK:
                known.add(text)
    return replace(_tables(rows, places, refused, source), again=again)


def _tables(
    rows: list[Row],
    places: list[tuple[int | None, bytes]],
    refused: list[tuple[Unreadable, int | None, bytes]],
    source: Source,
) -> Parsed:
    try:
        batch = batch_of(rows)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        wrong = misfits(rows)
        refused += [
            (Unreadable(Reason.UNKNOWN_SHAPE, told), *places[index])
            for index, told in wrong.items()
        ]
        right = [index for index in range(len(rows)) if index not in wrong]
        rows, places = (
            [rows[index] for index in right],
            [places[index] for index in right],
        )
        batch = batch_of(rows)
    return Parsed(
        _requests(batch, [number for number, _ in places], source),
        _quarantine(refused, source.file),
        pa.array([level_of(text) if row[_API_KEY] == API_VERSIONS else None for row, (_, text) in zip(rows, places, strict=True)], pa.int32()),
    )  # fmt: skip


def _requests(
    batch: pa.RecordBatch, numbers: list[int | None], source: Source
) -> pa.Table:
    table = pa.Table.from_batches([batch])
    given = {
        "mutations_known": pc.is_null(table["topics"]),
        "file": pa.repeat(source.file, len(table)),
        "line": pa.array(numbers, pa.int64()),
    }
    return pa.table(
        [
            table[field.name]
            if field.name in table.column_names
            else given.get(field.name, pa.nulls(len(table), field.type))
            for field in REQUESTS
        ],
        schema=REQUESTS,
    )


def _quarantine(
    refused: list[tuple[Unreadable, int | None, bytes]], file: str
) -> pa.Table:
    rows = [
        (
            error.reason.value,
            error.detail,
            line[:KEPT_TEXT],
            len(line),
            file,
            number,
            _identity(line),
        )
        for error, number, line in refused
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(QUARANTINE)
    return pa.table(
        [
            pa.array(values, field.type)
            for values, field in zip(columns, QUARANTINE, strict=True)
        ],
        schema=QUARANTINE,
    )


def _identity(line: bytes) -> bytes:
    """Of the text alone: logs are renamed, copied and compressed."""
    return blake2b(line, digest_size=16).digest()
