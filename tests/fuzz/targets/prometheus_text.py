"""Pages of Prometheus text, in all dialects."""

import math
from collections.abc import Iterator

from tests.exporter.recorded import CAPTURES
from tests.fuzz.target import Target

from quotascope.exporter.errors import SourceError
from quotascope.exporter.mapping import BeanColumn
from quotascope.exporter.sources.prometheus_text import TextPage, TextReader
from quotascope.exporter.sources.source import NodeId

_NEXT = b"\0"
"""Between two answers of one agent: what is learned from the first must not spoil the second."""
_SEED_BYTES = 4_000
_READS = 16


def _read(data: bytes) -> None:
    reader = TextReader()
    *earlier, latest = data.split(_NEXT)[:3]
    for page in earlier:
        try:
            reader.read(page)
        except SourceError:
            continue
    fresh = TextReader()
    expected = _outcome(fresh, latest)
    outcome = _outcome(reader, latest)
    if fresh.dialect == reader.dialect:  # a page that shows none is in that of the last one that did
        for _ in range(_READS):  # names in a spelling of their own, on a page of as many lines, are seen a little later
            if outcome == expected:
                break
            outcome = _outcome(reader, latest)
        assert outcome == expected
    reading = fresh.read(latest)
    assert fresh.read(latest).layout is reading.layout
    NodeId(None).of(reading.layout)


def _outcome(reader: TextReader, page: bytes) -> dict[BeanColumn, float | None] | type[SourceError]:
    try:
        return _numbers(reader.read(page))
    except SourceError as error:
        return type(error)


def _numbers(reading: TextPage) -> dict[BeanColumn, float | None]:
    columns, values = reading.layout.columns, reading.values
    assert len(set(columns)) == len(columns) == len(values)
    return {column: None if math.isnan(value) else value for column, value in zip(columns, values, strict=True)}


def _seeds() -> Iterator[bytes]:
    for path in sorted(CAPTURES.glob("**/*.txt")):
        text = path.read_bytes()
        yield text[:_SEED_BYTES]
        lines = [line for line in text.split(b"\n") if not line.startswith(b"#")]
        yield b"\n".join(lines[::7])[:_SEED_BYTES]
        yield b"\n".join(lines[:9]) + _NEXT + b"\n".join(lines[3:12])


TARGET = Target(
    name="prometheus_text",
    read=_read,
    refuses=(SourceError,),
    seeds=_seeds,
    words=(
        b"# TYPE ",
        b"# HELP ",
        b" # {",
        b'{client_id="',
        b'user="',
        b'quota_type="',
        b'\\"',
        b"\\\\",
        b"\\n",
        b"NaN",
        b"+Inf",
        b"1_0",
        b"kafka_server_Produce_byte_rate{",
        b"kafka_server_produce_byte_rate{",
        b"kafka_server_app_info_starttimems{",
        b"kafka_server_quota_",
        _NEXT,
    ),
)
