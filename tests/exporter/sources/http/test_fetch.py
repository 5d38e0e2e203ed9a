"""The failures over HTTP, and the remedies in their messages."""

import asyncio
import gzip
import socket
import ssl
import zlib
from asyncio.trsock import TransportSocket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast
from unittest.mock import MagicMock

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.sources.http.misbehaving import Behavior, answering, serving, silence, with_status

from quotascope.exporter.api.asking import ask
from quotascope.exporter.errors import SourceDenied, SourceError, SourceUnreachable, SourceUnreadable
from quotascope.exporter.sources.budget import BUDGET, Body
from quotascope.exporter.sources.fetch import HttpFetch, explained
from quotascope.exporter.sources.peer import AGENT, HttpTarget, Unpacker

HEAD = b"HTTP/1.1 200 OK\r\n"


Client = Callable[[HttpTarget], Awaitable[bytes]]


async def by_session(target: HttpTarget) -> bytes:
    fetch = HttpFetch(target, "this is the hint")
    try:
        return await fetch.read()
    finally:
        await fetch.close()
        await fetch.close()


async def by_question(target: HttpTarget) -> bytes:
    return await ask(target, target.url, "this is the hint", AGENT)


@pytest.fixture(params=[by_session, by_question])
def client(request: pytest.FixtureRequest) -> Client:
    """Return the client of sources, and that of commands."""
    return cast("Client", request.param)


async def failure(client: Client, behave: Behavior, **settings: float) -> SourceError:
    """Return the error of a behavior; assert that it is one line and free of secrets."""
    async with serving(behave) as url:
        target = HttpTarget(url=url, username="scott", password="tiger", headers={"X-Token": "tiger"})
        with pytest.raises(SourceError) as caught:
            await client(replace(target, **settings))  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.isprintable()
    assert "tiger" not in message + repr(target)
    return caught.value


async def test_no_one_listening_is_unreachable(client: Client) -> None:
    """The error about a closed port names the address, the reason and what to check."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(SourceUnreachable, match=f"127.0.0.1:{port} .Connection refused.: .*agent loaded"):
            await client(HttpTarget(url=f"http://127.0.0.1:{port}/metrics"))


async def test_a_turn_is_waited_for_no_longer_than_an_answer() -> None:
    """Sources whose last answer was long and useless wait for each other, within their timeout."""
    fetch = HttpFetch(HttpTarget(url="http://127.0.0.1:1/", timeout_seconds=0.05), "")
    fetch.doubtful = True
    async with BUDGET.turn(Body(doubtful=True)):
        with pytest.raises(SourceUnreachable, match=r"not read within 0\.05 s: its last answer could not be used"):
            await fetch.read()
    await fetch.close()


async def test_an_unknown_host_is_unreachable(client: Client) -> None:
    """A name that does not resolve is reported like a closed port."""
    with pytest.raises(SourceUnreachable, match=r"no connection to broker\.invalid:80"):
        await client(HttpTarget(url="http://broker.invalid/metrics"))


async def stalls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await answering(HEAD + b"Content-Length: 10\r\n\r\nhalf")(reader, writer)
    await silence(reader, writer)


PACKED = gzip.compress(b"x" * 10_000_000)
GZIP = f"Content-Encoding: gzip\r\nContent-Length: {len(PACKED)}\r\n\r\n".encode()
ELSEWHERE = "Location: https://u:tiger@sso.example/in?key=tiger#t"


@pytest.mark.parametrize(
    ("behave", "settings", "expected", "text"),
    [
        # a node in a long garbage collection accepts connections and says nothing
        (silence, {"timeout_seconds": 0.05}, SourceUnreachable, "0.05 s"),
        # the time is for the complete answer, not for its first byte
        (stalls, {"timeout_seconds": 0.05}, SourceUnreachable, "0.05 s"),
        # a node that goes down in the middle must not leave half of its numbers
        (answering(HEAD + b"Content-Length: 10\r\n\r\nhalf"), {}, SourceUnreachable, "middle of the answer"),
        # so does a port that wants TLS
        (answering(), {}, SourceUnreachable, "https"),
        # a Kafka listener does not speak HTTP
        (answering(b"\x00\x00\x00\x10nonsense\r\n\r\n"), {}, SourceUnreadable, "hint"),
        # memory is bounded, whatever the agent sends, and however small it is before it is unpacked
        (answering(HEAD + b"\r\n" + b"x" * 4096), {"max_bytes": 1024}, SourceUnreadable, "longer than"),
        (answering(HEAD + GZIP + PACKED), {"max_bytes": 1 << 20}, SourceUnreadable, "longer than 1 MiB"),
        (with_status("401 Unauthorized"), {}, SourceDenied, "basic_auth"),
        (with_status("403 Forbidden"), {}, SourceDenied, "basic_auth"),
        (with_status("404 Not Found"), {}, SourceUnreadable, "404: nothing at this path; this is the hint"),
        (with_status("500 No"), {}, SourceUnreadable, "500 instead of 200; this is the hint"),
        (with_status("204 Nothing"), {}, SourceUnreadable, "204 instead of 200; this is the hint"),
        # credentials go nowhere but to the configured address
        (with_status("302 Found", ELSEWHERE), {}, SourceUnreadable, "https://sso.example/in;"),
        (with_status("301 Moved", "Location: http://[broken"), {}, SourceUnreadable, "redirects to"),
        (with_status("301 Moved", "Location: \x01"), {}, SourceUnreadable, "301"),
    ]
)  # fmt: skip
async def test_what_goes_wrong_is_one_clear_error(
    client: Client, behave: Behavior, settings: dict[str, float], expected: type[SourceError], text: str
) -> None:
    """The kind of error distinguishes a node that is down from a wrong setting, and the message has a remedy."""
    error = await failure(client, behave, **settings)
    assert isinstance(error, expected)
    assert text in str(error)


@pytest.mark.parametrize(
    ("code", "https", "text"),
    [
        (9, True, "renew it"),
        (10, True, "renew it"),
        (20, True, "set tls.ca_file"),
        (None, True, "client certificate"),  # which a server misses after the handshake
        (None, False, "is this port https?"),
    ],
)
def test_a_failure_of_tls_says_what_to_do(code: int | None, text: str, *, https: bool) -> None:
    """No authority mends an expired certificate, and a connection may end while its node goes on."""
    error: aiohttp.ClientError = aiohttp.ServerDisconnectedError()
    if code is not None:
        reason = ssl.SSLCertVerificationError()
        reason.verify_code = code
        error = aiohttp.ClientConnectorCertificateError(MagicMock(), reason)
    assert text in str(explained(error, "hint", https=https))


async def test_a_failed_handshake_asks_for_https(client: Client) -> None:
    """The error about a server that answers a TLS greeting in plain text asks if it speaks https."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with serving(plain) as url:
        with pytest.raises(SourceUnreadable, match=r"\(WRONG_VERSION_NUMBER\): .*speak https"):
            await client(HttpTarget(url=url.replace("http://", "https://")))


@pytest.mark.parametrize(
    ("settings", "text"), [({"headers": {"X-Token": "a\r\nb"}}, "header"), ({"username": "a:b"}, '":"')]
)
async def test_what_cannot_be_sent_is_an_error_of_ours(settings: dict[str, Any], text: str) -> None:
    """A secret that was read with its line end must not split the request; basic authentication carries no colon."""
    async with serving(answering()) as url:
        with pytest.raises(SourceError, match=text):
            await by_session(HttpTarget(url=url, **settings))


async def test_a_connection_that_the_agent_closed_is_opened_again() -> None:
    """An agent closes idle connections just when the next scrape comes: that is no failure."""
    requests = 0

    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await reader.readuntil(b"\r\n\r\n")
        requests += 1
        writer.write(HEAD + b"Content-Length: 2\r\n\r\nok")
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")  # the second request is never answered

    async with serving(twice) as url:
        fetch = HttpFetch(HttpTarget(url=url), "")
        assert await fetch.read() == b"ok"
        assert await fetch.read() == b"ok"
        await fetch.close()
    assert requests == 2


async def test_what_arrived_is_acknowledged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that waits for that, as the JDK's, would send the end of an answer 40 ms later."""
    first_request = asyncio.Event()
    real = TransportSocket.setsockopt

    def recorded(self: TransportSocket, level: int, option: int, value: int) -> None:
        real(self, level, option, value)
        if option == socket.TCP_QUICKACK:
            first_request.set()

    monkeypatch.setattr(TransportSocket, "setsockopt", recorded)

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Length: 2\r\n\r\na")
        await first_request.wait()
        writer.write(b"b")
        await writer.drain()

    async with serving(behave) as url:
        target = HttpTarget(url=url, timeout_seconds=60)
        assert await by_session(target) == b"ab"


@pytest.mark.parametrize(
    "end", [b"Content-Length: 2\r\n\r\nab", b"\r\nab", b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"]
)
async def test_an_answer_is_read_to_its_end(client: Client, end: bytes) -> None:
    """An answer ends by its length, with the connection, or with the last chunk."""
    async with serving(answering(HEAD + end)) as url:
        assert await client(HttpTarget(url=url)) == b"ab"


@pytest.mark.parametrize("chunks", [b"5\r\nab", b"2\r\nab\r\n"])
async def test_chunks_that_end_early_are_no_answer(client: Client, chunks: bytes) -> None:
    """A body without its last chunk, or without that chunk's end, is refused."""
    error = await failure(client, answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
    assert isinstance(error, SourceUnreachable)
    assert "middle of the answer" in str(error)


async def test_a_question_is_sent_as_it_is_written(client: Client) -> None:
    """The path keeps its escapes, other characters get theirs, and the login goes along."""
    heads = list[bytes]()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HEAD + b"Content-Length: 0\r\n\r\n")
        await writer.drain()

    async with serving(behave) as url:
        target = HttpTarget(url=f"{url}/a%20b/ü?c=a%26b&d=e+f", username="scott", password="tïger")
        assert await client(target) == b""
    request, *lines = heads[0].decode().split("\r\n")
    assert request == "GET /metrics/a%20b/%C3%BC?c=a%26b&d=e+f HTTP/1.1"
    assert {"Accept-Encoding: gzip", "Authorization: Basic c2NvdHQ6dMOvZ2Vy"} <= set(lines)
    assert sum(line.startswith("Host: 127.0.0.1:") for line in lines) == 1


def unpacked(packed: bytes, size: int = 7, max_bytes: int = 1_000_000) -> bytes:
    unpacker = Unpacker("gzip")
    content = b""
    for start in range(0, len(packed), size):
        part, remainder = unpacker.unpacked(packed[start : start + size], max_bytes - len(content))
        assert remainder == b""
        content += part
    unpacker.check_complete()
    return content


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=3), st.integers(1, 99))
def test_pieces_are_put_together(bodies: list[bytes], size: int) -> None:
    """Pieces may have any size; a file may consist of several members."""
    packed = b"".join(map(gzip.compress, bodies))
    assert unpacked(packed, size) == b"".join(bodies)


@given(st.integers(1, 28))
def test_half_an_answer_is_not_passed_for_a_whole_one(missing: int) -> None:
    """A compressed answer that lacks its end is refused, even when its length is the announced one."""
    packed = gzip.compress(bytes(range(9)) * 9, mtime=0)
    assert len(packed) > 28
    with pytest.raises(SourceUnreachable, match="middle of what is compressed"):
        unpacked(packed[:-missing])


def test_no_more_is_unpacked_than_is_wanted() -> None:
    """A piece that unpacks to a gigabyte is unpacked only up to the maximum, and goes on from there."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b" " * 50_000_000)
    unpacker = Unpacker("x-gzip")
    content, remainder = unpacker.unpacked(packed, 1_000)
    second, _ = unpacker.unpacked(remainder, 2_000)
    assert (len(content), len(second)) == (1_001, 2_001)


@pytest.mark.parametrize("packed", [b"kafka_x 1\n", gzip.compress(b"a", mtime=0) + b"trailing"])
def test_what_is_not_compressed_is_unreadable(packed: bytes) -> None:
    """An answer that is not compressed as it says, or that has bytes behind it, is refused."""
    with pytest.raises(SourceUnreadable, match="cannot be unpacked"):
        unpacked(packed)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "\x1b[31m"])
def test_what_was_not_asked_for_is_not_unpacked(encoding: str) -> None:
    """Only a requested encoding is unpacked, since each library that unpacks can be attacked."""
    with pytest.raises(SourceUnreadable, match="was not requested") as caught:
        Unpacker(encoding)
    assert str(caught.value).isprintable()
