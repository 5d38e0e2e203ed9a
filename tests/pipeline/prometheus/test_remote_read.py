"""Messages of remote read, and dumps of blocks."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.pipeline.errors import UnreadableLog
from quotascope.pipeline.prometheus.dumps import Dump, listed_in
from quotascope.pipeline.prometheus.dumps import series_of as series_of_dump
from quotascope.pipeline.prometheus.remote_read import Matchers, NotRemoteRead, request_of, series_of

STALE = struct.pack("<Q", 0x7FF0000000000002)


def field(number: int, content: bytes) -> bytes:
    """Return a field of protobuf with bytes of its own, shorter than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def snappy(content: bytes) -> bytes:
    packed: bytes = pa.Codec("snappy").compress(content).to_pybytes()
    return packed


def test_an_answer_has_samples_and_ends() -> None:
    """A staleness marker ends a series, and another NaN does not; 0 is left out of a message."""
    label = field(1, field(1, b"user") + field(2, b"alice"))
    values = [struct.pack("<d", 1.5), STALE, struct.pack("<d", float("nan")), b""]
    samples = b"".join(
        field(2, (b"\x09" + value if value else b"") + b"\x10" + varint(1_700_000_000_000 + place))
        for place, value in enumerate(values)
    )
    series = label + samples
    timeseries = b"\x0a" + varint(len(series)) + series
    body = b"\x0a" + varint(len(timeseries)) + timeseries
    (series_read,) = series_of(snappy(body))
    assert series_read.labels == {"user": "alice"}
    assert series_read.times_ms.tolist() == [1_700_000_000_000 + place for place in range(4)]
    assert series_read.ended.tolist() == [False, True, False, False]
    assert (series_read.values[0], series_read.values[3]) == (1.5, 0.0)


def test_a_request_names_labels_exactly() -> None:
    """A request compares a label with one value, or with an expression that matches exactly its values."""
    body = request_of([Matchers({"__name__": ["kafka_x"], "instance": ["a.b:1", "c|d"]})], 1, 2)
    text = pa.Codec("snappy").decompress(body, decompressed_size=body[0], asbytes=True)
    assert b"kafka_x" in text
    assert rb"a\.b:1|c\|d" in text


@given(body=st.binary(max_size=200))
def test_another_answer_is_refused(body: bytes) -> None:
    """Any other answer of a server is an error of ours or no series."""
    with suppress(NotRemoteRead):
        assert isinstance(series_of(body), list)


DUMP = """\
{__name__="kafka_x", client_id="a \\"b\\"\\n", user="alice"} 1.5 1700000000000
{__name__="kafka_x", client_id="a \\"b\\"\\n", user="alice"} NaN 1700000010000
{__name__="kafka_x", user="} 1 2"} 2e+06 1700000000000
"""
OPENMETRICS = """\
# TYPE kafka_x gauge
kafka_x{client_id="a \\"b\\"\\n",user="alice"} 1.5 1700000000.0
kafka_x{client_id="a \\"b\\"\\n",user="alice"} NaN 1700000010.0
kafka_x{user="} 1 2"} 2e+06 1700000000.0
# EOF
"""


@pytest.mark.parametrize("text", [DUMP, OPENMETRICS])
@pytest.mark.parametrize("name", ["dump.txt", "dump.txt.gz"])
def test_both_forms_of_a_dump_have_the_same_samples(tmp_path: Path, text: str, name: str) -> None:
    """Both forms of a dump have the same samples, with names as they were; NaN ends a series."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    listed = listed_in(Dump(str(path)))
    labels = [
        {"__name__": "kafka_x", "client_id": 'a "b"\n', "user": "alice"},
        {"__name__": "kafka_x", "user": "} 1 2"},
    ]
    assert list(listed.series) == labels
    first, second = series_of_dump(Dump(str(path)))
    assert (first.labels, second.labels) == tuple(labels)
    assert (first.times_ms.tolist(), first.ended.tolist()) == ([1_700_000_000_000, 1_700_000_010_000], [False, True])
    assert second.values.tolist() == [2e6]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kafka_x 1.5\n", "line 1 is no sample"),
        ("# a comment\nkafka_x{user='a'} 1 1700000000000\n", "labels that cannot be read"),
        ('{user="a"} 1 1700000000000\n', "without a name"),
        ('{"kafka_x", "kafka_y"} 1 1700000000000\n', "labels that cannot be read"),
        ('{kafka_x, user="a"} 1 1700000000000\n', "labels that cannot be read"),
        ('kafka_x{user="a"} 1.5 1700000000.0\nkafka_x{user="a"} 1.5 1e30\n', "line 2 is no sample"),
        ('kafka_x{user="a"} 1 1_700_000_000_000\n', "line 1 is no sample"),
        ('kafka_x{user="a"} 1_0 1700000000000\n', "line 1 is no sample"),
        ('kafka_x{user="a"} 1 inf\n', "line 1 is no sample"),
        ('kafka_x{user="a"} \u0663 1700000000000\n', "line 1 is no sample"),
    ],
)
def test_another_file_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    """A file that is no dump is refused with its name and the line that cannot be read."""
    path = tmp_path / "dump.txt"
    path.write_text(text)
    with pytest.raises(UnreadableLog, match=reason) as raised:
        listed_in(Dump(str(path)))
    assert str(path) in str(raised.value)


def test_names_in_quotes_are_names(tmp_path: Path) -> None:
    """A series of another program, whose name or labels have any characters, is listed as Kafka's are."""
    path = tmp_path / "dump.txt"
    path.write_text(
        '{__name__="up", "service-name"="x", "a \\"b\\""="y"} 1 1700000000000\n'
        '{"my.metric", user="a"} +Inf 1700000000.5\n'
        '{user="b","my.metric"} -1e-05 1700000001\n'
        '{__name__="kafka_x", user="a",} 1 1700000000000\n'
    )
    assert list(listed_in(Dump(str(path))).series) == [
        {"__name__": "up", "service-name": "x", 'a "b"': "y"},
        {"__name__": "my.metric", "user": "a"},
        {"user": "b", "__name__": "my.metric"},
        {"__name__": "kafka_x", "user": "a"},
    ]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message has the path and the reason."""
    with pytest.raises(UnreadableLog, match="no-dump"):
        listed_in(Dump(str(tmp_path / "no-dump")))
