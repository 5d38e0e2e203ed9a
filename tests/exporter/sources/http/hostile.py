"""Servers that mean harm, or are broken beyond what any agent is: what they answer, and what is said of them."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from tests.builders.agents import jolokia, jolokia_of
from tests.exporter.sources.http.misbehaving import Behavior, answering, silence, with_status

OK = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
_PIECE = b"kafka_x 1\n" * 6_000
_ENDLESS = "longer than"
_LATE = "no complete answer from .* within"
_CUT = "middle of the answer|connection ended"
_NOT_HTTP = "this is not valid HTTP"
_NOT_TEXT = "no metric of Kafka|not Prometheus text|not JSON|not metrics"


@dataclass(frozen=True, slots=True)
class Hostile:
    behave: Behavior
    reason: str
    """A pattern for what is said of it, whichever dialect was expected."""


def body(content: bytes, *headers: bytes) -> Behavior:
    length = b"Content-Length: %d" % len(content)
    return answering(b"\r\n".join((OK.rstrip(), length, *headers, b"", content)))


def endlessly(head: bytes, piece: bytes, pause: float = 0.0) -> Behavior:
    """Answer without end: a piece, a pause in seconds, the next piece."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(head)(reader, writer)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return behave


def then_silent(*parts: bytes) -> Behavior:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(*parts)(reader, writer)
        await silence(reader, writer)

    return behave


def chunk(content: bytes, size: bytes | None = None) -> bytes:
    """Return a chunk with its own size in the header, or another one."""
    return b"%s\r\n%s\r\n" % (size or b"%x" % len(content), content)


def _deflated(wbits: int) -> bytes:
    """Half a gigabyte of blanks in half a megabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    parts = [packer.compress(b" " * (1 << 20)) for _ in range(512)]
    return b"".join((*parts, packer.flush()))


_BOMB = _deflated(31)
_ENCODED = b"Content-Encoding: gzip"

SLOW: Mapping[str, Hostile] = {
    "silence": Hostile(silence, _LATE),
    "drips its status": Hostile(endlessly(b"HTTP/1.1 2", b"0", 0.02), f"{_LATE}|{_NOT_HTTP}"),
    "drips headers": Hostile(endlessly(OK, b"A: b\r\n", 0.02), f"{_LATE}|{_NOT_HTTP}"),
    "drips a body": Hostile(endlessly(OK + b"Content-Length: 99999\r\n\r\n", b"#", 0.02), _LATE),
    "drips chunks": Hostile(endlessly(_CHUNKED, chunk(b"#"), 0.02), _LATE),
    "goes on and on": Hostile(endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01), _LATE),
    "endless extension": Hostile(endlessly(_CHUNKED + b"1;", b"x" * 60_000), f"{_NOT_HTTP}|{_CUT}|{_LATE}"),
    "promises more": Hostile(then_silent(OK + b"Content-Length: 999\r\n\r\nkafka_x 1\n"), _LATE),
    "no last chunk": Hostile(then_silent(_CHUNKED + chunk(b"kafka_x 1\n")), _LATE),
}  # fmt: skip
"""They never end."""

LONG: Mapping[str, Hostile] = {
    "endless body": Hostile(endlessly(OK + b"\r\n", _PIECE), _ENDLESS),
    "endless chunks": Hostile(endlessly(_CHUNKED, chunk(_PIECE)), _ENDLESS),
    "one endless chunk": Hostile(endlessly(_CHUNKED + b"7fffffffffff\r\n", _PIECE), _ENDLESS),
    "endless line": Hostile(endlessly(OK + b"\r\n", b"x" * 60_000), _ENDLESS),
    "gigantic by its own account": Hostile(endlessly(OK + b"Content-Length: 9999999999999\r\n\r\n", _PIECE), _ENDLESS),
    "gzip bomb": Hostile(body(_BOMB, _ENCODED), _ENDLESS),
    "gzip bomb in chunks": Hostile(
        answering(OK + _ENCODED + b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n", chunk(_BOMB)),
        _ENDLESS,
    ),
    "endless header": Hostile(endlessly(OK + b"X: ", b"x" * 60_000), _NOT_HTTP),
    "endless headers": Hostile(endlessly(OK, b"X: x\r\n" * 9_000), _NOT_HTTP),
    "endless status": Hostile(endlessly(b"HTTP/1.1 200 ", b"x" * 60_000), _NOT_HTTP),
    "endless trailers": Hostile(endlessly(_CHUNKED + b"0\r\n", b"X: x\r\n" * 9_000), f"{_NOT_HTTP}|{_CUT}"),
}  # fmt: skip
"""They answer more than anyone can hold."""

LYING: Mapping[str, Hostile] = {
    "hangs up at once": Hostile(answering(), "connection ended before"),
    "shorter than it says": Hostile(answering(OK + b"Content-Length: 99\r\n\r\nkafka_x 1\n"), _CUT),
    "longer than it says": Hostile(
        answering(OK + b"Content-Length: 9\r\n\r\nkafka_x 12345\n"),
        f"middle of a line|not JSON|{_NOT_HTTP}",
    ),
    "negative length": Hostile(answering(OK + b"Content-Length: -1\r\n\r\nkafka_x 1\n"), _NOT_HTTP),
    "no number as length": Hostile(answering(OK + b"Content-Length: nan\r\n\r\nkafka_x 1\n"), _NOT_HTTP),
    "two lengths": Hostile(
        answering(OK + b"Content-Length: 3\r\nContent-Length: 10\r\n\r\nkafka_x 1\n"),
        f"{_NOT_HTTP}|middle of a line|not JSON",
    ),
    "chunk of no size": Hostile(answering(_CHUNKED + chunk(b"kafka_x 1\n", b"zz")), f"{_NOT_HTTP}|{_CUT}"),
    "chunk too large": Hostile(answering(_CHUNKED + chunk(b"kafka_x 1\n", b"fff")), _CUT),
    "chunk too small": Hostile(answering(_CHUNKED + chunk(b"kafka_x 1\n", b"3")), f"{_NOT_HTTP}|{_CUT}"),
    "chunk of negative size": Hostile(answering(_CHUNKED + chunk(b"kafka_x 1\n", b"-1")), f"{_NOT_HTTP}|{_CUT}"),
    "chunks without end": Hostile(answering(_CHUNKED + chunk(b"kafka_x 1\n")), _CUT),
    "no gzip": Hostile(body(b"kafka_x 1\n", _ENCODED), "cannot be unpacked"),
    "half a gzip": Hostile(body(gzip.compress(b"kafka_x 1\n" * 99)[:-9], _ENCODED), "middle of what is compressed"),
    "gzip in gzip": Hostile(body(gzip.compress(gzip.compress(b"kafka_x 1\n")), _ENCODED), _NOT_TEXT),
    "gzip unannounced": Hostile(body(gzip.compress(b"kafka_x 1\n")), _NOT_TEXT),
    "another encoding": Hostile(body(b"\x93NUMPY", b"Content-Encoding: zstd"), "'zstd', which was not requested"),
    "deflate": Hostile(body(_deflated(15), b"Content-Encoding: deflate"), "'deflate', which was not requested"),
    "a web page": Hostile(body(b"<html><body>Sign in</body></html>\n", b"Content-Type: text/html"), _NOT_TEXT),
    "nothing": Hostile(body(b""), _NOT_TEXT),
    "another protocol": Hostile(answering(b"220 mail.example ESMTP\r\n\r\n"), _NOT_HTTP),
    "upgrade": Hostile(with_status("101 Switching Protocols"), f"HTTP 101|{_CUT}"),
    "no content": Hostile(with_status("204 No Content"), "HTTP 204"),
    "refusal": Hostile(with_status("401 Unauthorized"), "credentials"),
    "broken": Hostile(with_status("500 \x1b[31m"), f"HTTP 500|{_NOT_HTTP}"),
}  # fmt: skip
"""They say one thing and do another."""

MALFORMED: Mapping[str, Hostile] = {
    "deep": Hostile(body(b"[" * 200_000), _NOT_TEXT),
    "deep objects": Hostile(body(b'{"a":' * 40_000), _NOT_TEXT),
    "deep and closed": Hostile(body(b"[" * 900 + b"]" * 900), f"{_NOT_TEXT}|is not a list of"),
    "deep where a text belongs": Hostile(
        body(b'{"status":' + b"[" * 900 + b"]" * 900 + b"}"),
        f"{_NOT_TEXT}|cannot read",
    ),
    "a number without end": Hostile(body(b"9" * 200_000), _NOT_TEXT),
    "half a JSON": Hostile(body(jolokia_of(b'"a:b=c":{"d":1}')[:-30]), _NOT_TEXT),
    "not UTF-8": Hostile(body(b'kafka_server_Produce_byte_rate{user="\xff\xfe"} 1\n'), _NOT_TEXT),
    "no number": Hostile(body(b"kafka_server_Produce_byte_rate{} ?\n"), _NOT_TEXT),
    "no label": Hostile(body(b"kafka_server_Produce_byte_rate{=} 1\n"), _NOT_TEXT),
    "open label": Hostile(body(b'kafka_server_Produce_byte_rate{user="' + b"x" * 99_999 + b"\n"), _NOT_TEXT),
    "no node": Hostile(body(b"kafka_x 1\n"), "does not report its id|not JSON"),
    "endless node id": Hostile(
        body(b'kafka_server_app_info_StartTimeMs{id="%s"} 1\n' % (b"1" * 9_000)),
        "does not report its id|not JSON",
    ),
    "no beans": Hostile(body(jolokia({})), f"does not report its id|{_NOT_TEXT}"),
}  # fmt: skip
"""They speak HTTP as they should, but nothing that a node says."""
