"""The memory that reading an answer takes at worst, beside its length."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
import zlib
from asyncio.subprocess import PIPE
from collections.abc import Callable
from itertools import count

import pytest
from aiohttp import web
from tests.builders.agents import answered_by, jolokia_of

from quotascope.exporter.errors import SourceError
from quotascope.exporter.sources.jolokia import REQUESTS, Key, columns_of, numbers_in
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.exporter.sources.source import LayoutTracker

LENGTH = 200_000
MOST = 45
"""Bytes for each byte of an answer; docs/engineering/hostile-input.md says 40, and Pythons differ."""


def many(item: bytes, between: bytes = b",") -> bytes:
    parts, length = [], 0
    for number in count():
        parts.append(item.replace(b"?", b"%x" % number))
        length += len(parts[-1]) + len(between)
        if length > LENGTH:
            break
    return between.join(parts)


def read_jolokia(answer: bytes) -> None:
    columns: LayoutTracker[Key] = LayoutTracker(columns_of)
    columns.place(*numbers_in(answer, REQUESTS))


def read_text(answer: bytes) -> None:
    TextReader().read(answer)


_CLIENT = b'kafka_server_Produce_byte_rate{user="?"} 1'


ANSWERS: dict[str, tuple[Callable[[bytes], None], bytes]] = {
    "attributes": (read_jolokia, jolokia_of(b'"a:b=c":{%s}' % many(b'"?":1'))),
    "names": (read_jolokia, jolokia_of(many(b'"?":{}'))),
    "beans": (read_jolokia, jolokia_of(many(b'"kafka.server:type=Produce,user=?":{"byte-rate":1}'))),
    "properties": (read_jolokia, jolokia_of(b'"d:%s":{"byte-rate":1}' % many(b"k?=v"))),
    "objects": (read_jolokia, b"[%s]" % b",".join([b"{}"] * (LENGTH // 3))),
    "objects and a NaN": (read_jolokia, b"[NaN,%s]" % b",".join([b"{}"] * (LENGTH // 3))),
    "samples": (read_text, many(_CLIENT, b"\n")),
    "labels": (read_text, b"kafka_server_Produce_byte_rate{%s} 1" % many(b'k?="v"')),
    "exemplars": (read_text, b"kafka_server_Produce_byte_rate %s" % (b"# {" * (LENGTH // 3))),
    "unicode": (read_text, _CLIENT + "\U0001f600\n".encode() * (LENGTH // 5)),
    "empty lines": (read_text, _CLIENT + b"\n" * LENGTH),
}
"""Answers by what they hold much of, each with its reader."""


@pytest.mark.parametrize(("read_answer", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_memory_is_in_proportion_to_the_answer(read_answer: Callable[[bytes], None], answer: bytes) -> None:
    """Memory grows with the length of an answer of any content, so `max_answer_bytes` bounds both."""
    tracemalloc.start()
    try:
        read_answer(answer)
    except SourceError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST * len(answer)


MIB = 1 << 20
LONGEST = 64 * MIB
"""The default of `max_answer_bytes`."""
MOST_MIB = 450
"""Of a whole process that reads one such answer after the other; the shipped limit is 1 GiB."""
READS = r"""
import asyncio, re, resource, sys
from quotascope.exporter.config import SourceConfig
from quotascope.exporter.errors import SourceError
from quotascope.exporter.discovery.build import build_source

async def read(url):
    dialect = "jolokia" if "jolokia" in url else "prometheus"
    source = build_source(SourceConfig(url=url, timeout_seconds=200, dialect=dialect))
    try:
        await source.read()
    except SourceError as error:
        print(error)
    finally:
        await source.close()

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))  # for whatever is not bounded
for url in sys.argv[1:]:
    asyncio.run(read(url))
    # getrusage's begins with that of the parent
    peak = re.search(r"VmHWM:\s*(\d+) kB", open("/proc/self/status").read())
    print(url.rpartition("/")[2], int(peak[1]) >> 10, file=sys.stderr)
"""


def bomb(begin: bytes, again: bytes, end: bytes = b"") -> bytes:
    """Return an answer that unpacks to the longest one that is read: much of the same between two ends."""
    packer = zlib.compressobj(1, wbits=31)
    block = again * (MIB // len(again))
    middle = (LONGEST - len(begin) - len(end)) // len(block)
    packed = [packer.compress(begin)]
    packed += [packer.compress(block) for _ in range(middle)]
    return b"".join([*packed, packer.compress(end), packer.flush()])


BOMBS: dict[str, tuple[tuple[bytes, ...], str]] = {
    "jolokia-nan": ((b"[NaN", b",{}", b"]"), "values"),
    "jolokia-names": ((b'["', rb"\ud83d\ude00,:{[", b'"]'), "not a list of"),
    "families": ((b"", b'kafka_server_Produce_byte_rate{user="a"} 1\n'), "lines"),
    "labels": ((_CLIENT + b"\nkafka_server_Produce_byte_rate{", b'k="v",', b"} 1\n"), "characters"),
    "escapes": ((b'kafka_server_Produce_byte_rate{user="', rb"\\", b'"} 1\n'), "characters"),
    "line": ((_CLIENT + b"\n", b"a", b"\n"), "does not report its id"),
    "unicode": ((_CLIENT + b"\n", "\U0001f600".encode() * 64 + b"\n"), "does not report its id"),
}  # fmt: skip
"""The parts of what hostile agents answer, and what is said of it."""


@pytest.mark.slow
async def test_no_answer_takes_more_than_the_shipped_limit_allows() -> None:
    """Answers of 64 MiB, a few hundred kilobytes on the wire: all that is made of them stays far below a gibibyte."""

    async def answer(request: web.Request) -> web.Response:
        parts, _ = BOMBS[request.match_info["name"]]
        return web.Response(body=bomb(*parts), headers={"Content-Encoding": "gzip"})

    async with answered_by(answer, "/{name}{tail:/?}") as server:
        urls = [str(server.make_url(f"/{name}")) for name in BOMBS]
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", READS, *urls, stdout=PIPE, stderr=PIPE)
        reported, memory = (output.decode() for output in await child.communicate())
    assert child.returncode == 0, memory
    reasons = reported.splitlines()
    for (_, reason), line in zip(BOMBS.values(), reasons, strict=True):
        assert reason in line
    assert int(memory.split()[-1]) < MOST_MIB, memory
