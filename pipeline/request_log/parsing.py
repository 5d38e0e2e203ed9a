"""
Lines in, tables out: each line becomes a row of `requests` or of `quarantine`.

The same function serves a program on its own and the tasks of Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.protocol import ApiKey

from ..columns import Column
from ..releases import level_of
from .joining import Joiner
from .line import FIELDS, USUAL, USUAL_AT, LineReader, Row, Several
from .schema import NOT_LOST, PARSED_QUARANTINE, PARSED_REQUESTS, TRAFFIC, NamedBy, Reason, Unreadable
from .sizes import Traffic
from .wrapped import Named, named_in

LONGEST: Final = 16 << 20
"""Size in bytes of the longest line that is read; a Fetch of ten thousand partitions has about 4 MB."""
SHORT: Final = 256
"""Size in bytes up to which an unreadable line is looked at once; longer ones cost no more a byte than requests do."""
KEPT_TEXT: Final = 4096
"""Number of bytes of a line that the quarantine keeps."""
_API_KEY: Final = FIELDS.index("api_key")
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_FIELD_SCHEMA: Final = pa.schema([PARSED_REQUESTS.field(name) for name in FIELDS])
_MISFIT: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""Errors of Arrow for a value that does not fit its column."""
_Place: TypeAlias = tuple[int | None, bytes]
"""Number and text of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """File, broker and zone of lines."""

    file: str
    """Path of the file, or a topic and its partition."""
    broker: str | None = None
    """Name of the broker that wrote the log; None takes the address that each line names."""
    zone: tzinfo = UTC
    """Zone of times without an offset."""
    numbered: bool = True
    """
    Whether the numbers of lines count from the begin of the file or partition.

    Those of a part of a file only grow.
    """


@dataclass(frozen=True, slots=True)
class Parsed:
    """Requests and unreadable lines of a log."""

    requests: pa.Table
    """
    Requests in `PARSED_REQUESTS`, in the order of the lines.

    Mutations that follow from other lines are still missing (`MutationLedger`).
    """
    quarantine: pa.Table
    """Unreadable lines in `PARSED_QUARANTINE`."""

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch]) -> Self:
        """Return the rows of batches of both tables, in their order."""
        requests, quarantine = (
            pa.Table.from_batches([batch for batch in batches if batch.schema == schema], schema)
            for schema in (PARSED_REQUESTS, PARSED_QUARANTINE)
        )
        return cls(requests, quarantine)

    def combined(self) -> Self:
        """Return the same rows in one chunk; many small chunks take twice as long to look up and write."""
        return type(self)(self.requests.combine_chunks(), self.quarantine.combine_chunks())


def parse_rest(joiner: Joiner, source: LogSource) -> Parsed:
    """Parse the messages that have no end where the lines of a source end."""
    collected = _Lines(LineReader(source.broker, source.zone).row)
    for message in joiner.rest():
        collected.add(*message)
    return collected.parsed(source)


def parse_lines(
    lines: Iterable[bytes | None], numbers: Iterable[int | None], source: LogSource, joiner: Joiner | None = None
) -> Parsed:
    """
    Parse lines; None is an empty line.

    A short unreadable text is parsed once, however often it comes: a small compressed file may hold millions of empty
    lines.

    Args:
        lines: without their line feeds.
        numbers: numbers of the lines, None if unknown.
        source: file, broker and zone of the lines.
        joiner: holds the beginning of a message that is cut into several lines until more lines come; None if no more
            lines come.

    """
    parse = LineReader(source.broker, source.zone).row
    collected = _Lines(parse)
    rows, places = collected.rows, collected.places
    joining = joiner or Joiner(LONGEST)
    for number, line in zip(numbers, lines, strict=True):
        text = line or b""
        if text[USUAL_AT] == USUAL and len(text) <= LONGEST:
            try:
                rows.append(parse(text))
                places.append((number, text))
            except Unreadable as unreadable:
                collected.refuse(unreadable, number, text)
            except Several as several:
                collected.add_each(number, several.lines)
        else:
            for message in joining.take(number, text):
                collected.add(*message)
    if joiner is None:
        for message in joining.rest():
            collected.add(*message)
    return collected.parsed(source)


class _Lines:
    """Collected rows of requests, and lines that cannot be read."""

    __slots__ = ("_junk", "_parse", "_refused", "places", "rows")

    def __init__(self, parse: Callable[[bytes], Row]) -> None:
        self._parse = parse
        self.rows: list[Row] = []
        self.places: list[_Place] = []
        self._refused: list[tuple[Unreadable, _Place]] = []
        self._junk: dict[bytes, int] = {}

    def add(self, number: int | None, text: bytes) -> None:
        """Parse a line and collect its row."""
        # the hash of a long text takes as long as a tenth of its parsing
        if len(text) <= SHORT and text in self._junk:
            self._junk[text] += 1
            return
        if len(text) > LONGEST:
            error = Unreadable(Reason.TOO_LONG, f"more than {LONGEST} bytes")
            self._refused.append((error, (number, text)))
            return
        try:
            self.rows.append(self._parse(text))
            self.places.append((number, text))
        except Unreadable as unreadable:
            self.refuse(unreadable, number, text)
        except Several as several:
            self.add_each(number, several.lines)

    def add_each(self, number: int | None, lines: Iterable[bytes]) -> None:
        """Parse the requests of one line."""
        for line in lines:
            self.add(number, line)

    def refuse(self, unreadable: Unreadable, number: int | None, text: bytes) -> None:
        """Collect a line that cannot be read."""
        if len(text) <= SHORT:
            self._junk[text] = self._junk.get(text, 0) + 1
            if self._junk[text] > 1:
                return
        self._refused.append((unreadable, (number, text)))

    def parsed(self, source: LogSource) -> Parsed:
        """Return both tables."""
        rows, places = self.rows, self.places
        try:
            batch = _batch(rows)
        except _MISFIT:
            misfits = dict(_misfits(rows, 0))
            self._refused += [
                (Unreadable(Reason.UNKNOWN_SHAPE, detail), places[index]) for index, detail in misfits.items()
            ]
            fitting = [index for index in range(len(rows)) if index not in misfits]
            rows = [rows[index] for index in fitting]
            places = [places[index] for index in fitting]
            batch = _batch(rows)
        levels = [
            level_of(text) if row[_API_KEY] == _API_VERSIONS else None
            for row, (_, text) in zip(rows, places, strict=True)
        ]
        requests = _requests(batch, [number for number, _ in places], levels, source)
        return Parsed(requests, _quarantine(self._refused, self._junk, source))


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """
    Return rows in `FIELDS` as columns.

    Raises one of `_MISFIT`: a line's JSON may hold text where a number belongs.
    """
    columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
    arrays: list[Any] = [
        _traffic(values) if field.name == "traffic" else pa.array(values, field.type)
        for values, field in zip(columns, _FIELD_SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=_FIELD_SCHEMA)


def _traffic(rows: Sequence[Traffic | None]) -> "pa.Array[Any]":
    """Return the column `traffic`; flat arrays take a third of the time of nested values."""
    flat = list(chain.from_iterable(filter(None, rows)))
    columns: list[Any] = [pa.array(flat[offset::3], field.type) for offset, field in enumerate(TRAFFIC)]
    sizes = np.array([-3 if row is None else len(row) for row in rows], np.int32) // 3
    ends = np.cumsum(np.maximum(sizes, 0), dtype=np.int32)
    return pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], ends)), pa.int32()),
        pa.StructArray.from_arrays(columns, fields=list(TRAFFIC)),
        mask=pa.array(sizes < 0),
    )


def _misfits(rows: Sequence[Row], first_row: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers of the rows that do not fit, with the error; they are found by halving."""
    try:
        _batch(rows)
    except _MISFIT as error:
        if len(rows) == 1:
            yield first_row, str(error)
            return
        half = len(rows) // 2
        yield from _misfits(rows[:half], first_row)
        yield from _misfits(rows[half:], first_row + half)


def _requests(
    batch: pa.RecordBatch, numbers: list[int | None], levels: list[int | None], source: LogSource
) -> pa.Table:
    table = pa.Table.from_batches([batch])
    position = pa.array(numbers, pa.int64())
    if source.broker:
        named_by: Column = pa.repeat(NamedBy.OPTION.value, len(table))
    else:
        named_by = pc.if_else(pc.is_valid(table["node"]), NamedBy.LINE.value, NamedBy.ADDRESS.value)
    derived = {
        "named_by": named_by,
        "mutations_known": pc.is_null(table["topics"]),
        "file": pa.repeat(source.file, len(table)),
        "position": position,
        "level": pa.array(levels, pa.int32()),
    } | ({"line": position} if source.numbered else {})
    return pa.table(
        [
            table[field.name]
            if field.name in table.column_names
            else derived.get(field.name, pa.nulls(len(table), field.type))
            for field in PARSED_REQUESTS
        ],
        schema=PARSED_REQUESTS,
    )


def _quarantine(refused: list[tuple[Unreadable, _Place]], junk: Mapping[bytes, int], source: LogSource) -> pa.Table:
    rows = []
    for error, (number, line) in refused:
        named = named_in(line) if error.reason not in NOT_LOST else Named()
        rows.append(
            (
                error.reason.value,
                error.detail,
                line[:KEPT_TEXT],
                len(line),
                source.file,
                number if source.numbered else None,
                source.broker or named.broker,
                named.api_key,
                named.user,
                named.client_id,
                junk.get(line, 1),
                # of the text alone: logs are renamed, copied and compressed
                blake2b(line, digest_size=16).digest(),
            )
        )
    columns = zip(*rows, strict=True) if rows else [()] * len(PARSED_QUARANTINE)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, PARSED_QUARANTINE, strict=True)]
    return pa.table(arrays, schema=PARSED_QUARANTINE)
