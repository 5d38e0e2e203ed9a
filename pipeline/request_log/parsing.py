"""
Lines in, tables out: each line becomes a row of `requests` or of `quarantine`.

The same function serves a program on its own and the tasks of Spark.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from hashlib import blake2b
from operator import attrgetter
from typing import Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.kafka.protocol import ApiKey

from ..columns import Column, array
from ..releases import level_of
from .blocks import BlockReader
from .joining import Joiner
from .line import USUAL, USUAL_AT, LineReader, Row, Several
from .rows import MISFIT, batch_of, misfits
from .schema import NOT_LOST, PARSED_QUARANTINE, PARSED_REQUESTS, NamedBy, Reason, Unreadable
from .wrapped import Named, named_in

LONGEST: Final = 16 << 20
"""Size in bytes of the longest line that is read; a Fetch of ten thousand partitions has about 4 MB."""
SHORT: Final = 256
"""Size in bytes up to which an unreadable line is looked at once; longer ones cost no more a byte than requests do."""
KEPT_TEXT: Final = 4096
"""Number of bytes of a line that the quarantine keeps."""
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_Place: TypeAlias = tuple[int | None, bytes]
"""Number and text of a line."""
_Ordered: TypeAlias = tuple[int, int | None, bytes]
"""Place among all messages, number, and text of a message."""


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
        """Return the requests and the unreadable lines of batches, told apart by schema, each in their order."""
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
    collected = _Lines(source)
    for message in joiner.rest():
        collected.add(*message)
    return collected.parsed()


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
    collected = _Lines(source)
    texts = [line or b"" for line in lines]
    usual = [text[USUAL_AT] == USUAL for text in texts]
    if texts and all(usual) and max(map(len, texts)) <= LONGEST:
        collected.add_usual(numbers, texts)
    else:
        joining = joiner or Joiner(LONGEST)
        for number, text, is_usual in zip(numbers, texts, usual, strict=True):
            if is_usual and len(text) <= LONGEST:
                collected.add_usual([number], [text])
            else:
                for message in joining.take(number, text):
                    collected.add(*message)
        if joiner is None:
            for message in joining.rest():
                collected.add(*message)
    return collected.parsed()


@dataclass(slots=True)
class _Refused:
    """A line that cannot be read."""

    order: tuple[int, int]
    """Number of the message, and of the refusal."""
    error: Unreadable
    place: _Place
    lines: int
    """Number of lines of this text so far."""


class _Lines:
    """Lines of a source, which become rows of requests, or lines that cannot be read."""

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._parse = LineReader(source.broker, source.zone).row
        self._count = 0
        """Number of messages so far, by which rows and refused lines are sorted: usual lines are parsed last."""
        self._usual: list[bytes] = []
        self._numbers: list[int | None] = []
        self._order: list[int] = []
        """Texts, numbers and places of usual lines."""
        self._rows: list[Row] = []
        self._of_rows: list[_Ordered] = []
        """The message of each row."""
        self._refused: list[_Refused] = []
        self._junk: dict[bytes, _Refused] = {}
        """Short lines among `_refused`, by text."""

    def add_usual(self, numbers: Iterable[int | None], texts: Sequence[bytes]) -> None:
        """Collect lines of Kafka's own pattern."""
        self._numbers += numbers
        self._usual += texts
        self._order += range(self._count, self._count + len(texts))
        self._count += len(texts)

    def add(self, number: int | None, text: bytes) -> None:
        """Collect a message of any kind."""
        self._add(self._count, number, text)
        self._count += 1

    def _add(self, order: int, number: int | None, text: bytes) -> None:
        """Read a message, or refuse it: one that is too long, and a short one that was refused before, are not read."""
        # the hash of a long text takes as long as a tenth of its parsing
        if len(text) <= SHORT and (junk := self._junk.get(text)):
            self._refuse(junk.error, order, number, text)
        elif len(text) > LONGEST:
            error = Unreadable(Reason.TOO_LONG, f"more than {LONGEST} bytes")
            self._refused.append(_Refused((order, len(self._refused)), error, (number, text), 1))
        else:
            self._add_row(order, number, text)

    def _add_row(self, order: int, number: int | None, text: bytes) -> None:
        """Read a message as a row, or as several if it has several requests; refuse it if it cannot be read."""
        try:
            self._rows.append(self._parse(text))
            self._of_rows.append((order, number, text))
        except Unreadable as unreadable:
            self._refuse(unreadable, order, number, text)
        except Several as several:
            for line in several.lines:
                self._add(order, number, line)

    def _refuse(self, error: Unreadable, order: int, number: int | None, text: bytes) -> None:
        """Keep an unreadable message; a short text that was refused before is only counted."""
        refused = _Refused((order, len(self._refused)), error, (number, text), 1)
        if len(text) <= SHORT:
            junk = self._junk.setdefault(text, refused)
            if junk is not refused:
                junk.lines += 1
                if refused.order < junk.order:  # a usual line, which was parsed later
                    junk.order, junk.place = refused.order, refused.place
                return
        self._refused.append(refused)

    def parsed(self) -> Parsed:
        """Return the requests and the unreadable lines among all added lines, in the order of the log."""
        block = BlockReader(self._source.broker, self._source.zone).read(self._usual)
        for index in block.refused:
            self._add_row(self._order[index], self._numbers[index], self._usual[index])
        self._refused.sort(key=attrgetter("order"))
        rows, numbers, texts = block.rows, self._numbers, self._usual
        if block.refused:
            numbers = [numbers[index] for index in block.places]
            texts = [texts[index] for index in block.places]
        if self._rows:
            single_rows, messages = self._batch()
            places = [self._order[index] for index in block.places] + [place for place, _, _ in messages]
            numbers = numbers + [number for _, number, _ in messages]
            texts = texts + [text for _, _, text in messages]
            in_order = np.argsort(places, kind="stable")
            rows = pa.concat_tables([rows, pa.Table.from_batches([single_rows])]).take(array(in_order))
            numbers = [numbers[index] for index in in_order.tolist()]
            texts = [texts[index] for index in in_order.tolist()]
        requests = _requests(rows, numbers, _levels_of(rows, texts), self._source)
        return Parsed(requests, _quarantine(self._refused, self._source))

    def _batch(self) -> tuple[pa.RecordBatch, list[_Ordered]]:
        """Return the rows that were read one by one, and their messages; those that do not fit are refused."""
        order = sorted(range(len(self._rows)), key=lambda index: self._of_rows[index][0])
        rows = [self._rows[index] for index in order]
        messages = [self._of_rows[index] for index in order]
        try:
            return batch_of(rows), messages
        except MISFIT:
            details = dict(misfits(rows))
        for index, detail in details.items():
            place, number, text = messages[index]
            error = Unreadable(Reason.UNKNOWN_SHAPE, detail)
            self._refused.append(_Refused((place, len(self._refused)), error, (number, text), 1))
        fitting = [index for index in range(len(rows)) if index not in details]
        return batch_of([rows[index] for index in fitting]), [messages[index] for index in fitting]


def _levels_of(rows: pa.Table, texts: Sequence[bytes]) -> list[int | None] | None:
    """Return the level that each ApiVersions request names, None for other rows; None when there is no such request."""
    api_versions = np.flatnonzero(rows["api_key"].to_numpy() == _API_VERSIONS)
    if not api_versions.size:
        return None
    levels: list[int | None] = [None] * len(rows)
    for index in api_versions.tolist():
        levels[index] = level_of(texts[index])
    return levels


def _requests(
    table: pa.Table, numbers: list[int | None], levels: list[int | None] | None, source: LogSource
) -> pa.Table:
    """Return rows in `FIELDS` as `PARSED_REQUESTS`, with numbers of lines, levels, and what the source says."""
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
    } | ({"line": position} if source.numbered else {})
    if levels is not None:
        derived["level"] = pa.array(levels, pa.int32())
    return pa.table(
        [
            table[field.name]
            if field.name in table.column_names
            else derived.get(field.name, pa.nulls(len(table), field.type))
            for field in PARSED_REQUESTS
        ],
        schema=PARSED_REQUESTS,
    )


def _quarantine(refused: Sequence[_Refused], source: LogSource) -> pa.Table:
    """Return unreadable lines as `PARSED_QUARANTINE`."""
    rows = []
    for unreadable in refused:
        error, (number, line) = unreadable.error, unreadable.place
        names = named_in(line) if error.reason not in NOT_LOST else Named()
        rows.append(
            (
                error.reason.value,
                error.detail,
                line[:KEPT_TEXT],
                len(line),
                source.file,
                number if source.numbered else None,
                source.broker or names.broker,
                names.api_key,
                names.user,
                names.client_id,
                unreadable.lines,
                # the hash is of the text alone, since logs are renamed, copied and compressed
                blake2b(line, digest_size=16).digest(),
            )
        )
    columns = zip(*rows, strict=True) if rows else [()] * len(PARSED_QUARANTINE)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, PARSED_QUARANTINE, strict=True)]
    return pa.table(arrays, schema=PARSED_QUARANTINE)
