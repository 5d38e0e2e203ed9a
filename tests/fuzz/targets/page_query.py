"""The addresses of the page and of its JSON."""

from collections.abc import Iterator
from urllib.parse import parse_qsl

from tests.fuzz.target import Target

from quotascope.exporter.errors import InvalidQuery
from quotascope.exporter.page.query import EntityQuery


def _read(data: bytes) -> None:
    pairs = parse_qsl(data.decode(errors="surrogateescape"), keep_blank_values=True)
    query = EntityQuery.read(dict(pairs))
    again = dict(parse_qsl(query.address[1:]))
    assert EntityQuery.read(again) == query


def _seeds() -> Iterator[bytes]:
    yield b"sort=used&reverse=1&show=all&type=produce&q=a%20b&broker=1&offset=50&size=10"
    yield b"type=controller_mutation&show=limited&q=%F0%9F%98%80%00&size=500"


TARGET = Target(
    name="page_query",
    read=_read,
    refuses=(InvalidQuery,),
    seeds=_seeds,
    words=(
        b"sort=", b"reverse=", b"show=", b"type=", b"q=", b"broker=", b"offset=", b"size=", b"%ED%A0%80",
        b"throttled",
    )
)  # fmt: skip
