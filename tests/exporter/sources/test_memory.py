"""What it takes to read an answer, at worst, beside its length."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import count

import pytest
from tests.exporter.sources.http.hostile import jolokia

from quotascope.exporter.errors import SourceError
from quotascope.exporter.sources.columns import Columns
from quotascope.exporter.sources.jolokia.answer import Key, column_of, numbers_in
from quotascope.exporter.sources.jolokia.request import REQUESTS
from quotascope.exporter.sources.prometheus_text.reader import TextReader

LENGTH = 200_000
MOST = 45
"""Bytes for each byte of an answer; docs/hostile-input.md says 40, and Pythons differ."""


def many(item: bytes, between: bytes = b",") -> bytes:
    """So many different ones."""
    found, length = [], 0
    for number in count():
        found.append(item.replace(b"?", b"%x" % number))
        length += len(found[-1]) + len(between)
        if length > LENGTH:
            break
    return between.join(found)


def read_jolokia(answer: bytes) -> None:
    """Up to the columns."""
    columns: Columns[Key] = Columns(column_of)
    columns.place(*numbers_in(answer, REQUESTS))


def read_text(answer: bytes) -> None:
    """Up to the columns."""
    TextReader().read(answer)


_CLIENT = b'kafka_server_Produce_byte_rate{user="?"} 1'


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (read_jolokia, jolokia(b'"a:b=c":{%s}' % many(b'"?":1'))),
        (read_jolokia, jolokia(many(b'"?":{}'))),
        (read_jolokia, jolokia(many(b'"kafka.server:type=Produce,user=?":{"byte-rate":1}'))),
        (read_jolokia, jolokia(b'"d:%s":{"byte-rate":1}' % many(b"k?=v"))),
        (read_jolokia, b"[%s]" % b",".join([b"{}"] * (LENGTH // 3))),
        (read_jolokia, b"[NaN,%s]" % b",".join([b"{}"] * (LENGTH // 3))),
        (read_text, many(_CLIENT, b"\n")),
        (read_text, b"kafka_server_Produce_byte_rate{%s} 1" % many(b'k?="v"')),
        (read_text, b"kafka_server_Produce_byte_rate %s" % (b"# {" * (LENGTH // 3))),
        (read_text, _CLIENT + "\U0001f600\n".encode() * (LENGTH // 5)),
        (read_text, _CLIENT + b"\n" * LENGTH),
    ],
)  # fmt: skip
def test_memory_is_in_proportion_to_the_answer(
    read: Callable[[bytes], None], answer: bytes
) -> None:
    """Whatever it holds: `max_answer_bytes` bounds both."""
    tracemalloc.start()
    try:
        read(answer)
    except SourceError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST * len(answer)
