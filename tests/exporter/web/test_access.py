from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.http_parser import DeflateBuffer
from tests.exporter.web.serving import (
    HASH,
    PASSWORD,
    connected,
    exchange,
    serving,
    web_file,
)
from tests.exporter.web.test_login import basic, bearing

from quotascope.exporter.web.access import AccessPolicy
from quotascope.exporter.web.connection import HttpConnection, ServerLimits
from quotascope.exporter.web.settings import WebSettings
from quotascope.exporter.web.web_config import RateLimitConfig

CLOSING = b"\r\nConnection: close\r\n\r\n"
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "head", [b"Content-Length: 5000000000", b"Transfer-Encoding: chunked"]
)
async def test_a_body_is_refused_and_not_read(head: bytes) -> None:
    """Whatever it says about its length; the connection ends with that."""
    ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n"
    async with serving(limits=ServerLimits(body_seconds=0.1)) as served:
        answer = await exchange(served.url, ask)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"Connection: close" in answer


BODIES = {
    "bomb": (b"gzip", gzip.compress(bytes(8 << 20))),
    "deflate bomb": (b"deflate", zlib.compress(bytes(8 << 20))),
    "no gzip": (b"gzip", b"hello"),
    "cut gzip": (b"gzip", gzip.compress(bytes(1000))[:-9]),
}


@pytest.mark.parametrize(("encoding", "body"), BODIES.values(), ids=BODIES)
async def test_no_body_is_unpacked(
    encoding: bytes,
    body: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """What would happen on the event loop and before the login; one that is broken leaves no traceback either."""
    unpacked: list[int] = []
    feed = DeflateBuffer.feed_data

    def counted(self: DeflateBuffer, chunk: bytes, size: int) -> bool:
        unpacked.append(len(chunk))
        return feed(self, chunk, size)

    monkeypatch.setattr(DeflateBuffer, "feed_data", counted)
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    file = web_file(tmp_path, basic_auth_users={"prometheus": HASH})
    async with serving(web_config_file=file) as served:
        answer = await exchange(served.url, head % (encoding, len(body)) + body)
        await served.empty()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert unpacked == []
    assert caplog.text == ""


async def test_little_of_a_body_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes on sending is cut off, before the time for it is over."""
    taken: list[int] = []
    receive = HttpConnection.data_received

    def counted(self: HttpConnection, data: bytes) -> None:
        taken.append(len(data))
        receive(self, data)

    monkeypatch.setattr(HttpConnection, "data_received", counted)
    ask = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000000\r\n\r\n"
    limits = ServerLimits(body_seconds=60.0, body_bytes=1 << 16)
    async with serving(limits=limits) as served, connected(served.url) as (_, write):
        write.write(ask)
        with suppress(ConnectionError):
            for _ in range(10_000):
                write.write(bytes(1 << 16))
                await write.drain()
            pytest.fail("it listened to the end")
        await served.empty()
    assert sum(taken) < 8 << 20


@pytest.mark.parametrize("expected", [b"x", b"100-continue"])
async def test_expect_is_looked_at_after_the_login(
    expected: bytes, tmp_path: Path
) -> None:
    """And answered like everything else: without the server's versions."""
    ask = (
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: %s\r\n"
        % expected
    )
    known = f"Authorization: {basic(f'prometheus:{PASSWORD}')}\r\n".encode()
    file = web_file(tmp_path, basic_auth_users={"prometheus": HASH})
    async with serving(web_config_file=file) as served:
        stranger = await exchange(served.url, ask + b"\r\n")
        friend = await exchange(served.url, ask + known + b"\r\n")
    assert stranger.startswith(b"HTTP/1.1 401 ")
    assert friend.startswith(b"HTTP/1.1 417 " if expected == b"x" else b"HTTP/1.1 100 ")
    for answer in (stranger, friend):
        assert b"\r\nServer: quotascope\r\n" in answer
        assert b"aiohttp" not in answer


REFUSED = {
    "no password": (ASK, {"basic_auth_users": {"prometheus": HASH}}, b"401"),
    "wrong host": (ASK.replace(b"localhost", b"example.org"), {}, b"421"),
    "too often": (ASK, {"rate_limit": {"interval": "1h", "burst": 1}}, b"429"),
}


@pytest.mark.parametrize(("ask", "config", "status"), REFUSED.values(), ids=REFUSED)
async def test_a_refusal_ends_the_connection(
    ask: bytes, config: dict[str, Any], status: bytes, tmp_path: Path
) -> None:
    """Of hundreds of requests that were sent at once only one is answered, so that none holds anything."""
    file = web_file(tmp_path, **config)
    async with serving(web_config_file=file) as served:
        if status == b"429":
            await exchange(served.url, ask.replace(b"\r\n\r\n", CLOSING))
        answer = await exchange(served.url, ask * 300)
    assert answer.startswith(b"HTTP/1.1 %s " % status)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in answer


async def test_requests_that_nobody_reads_take_no_places(tmp_path: Path) -> None:
    """45 connections that send 300 requests each and read nothing, without the password: every scrape is answered."""
    file = web_file(tmp_path, basic_auth_users={"prometheus": HASH})
    known = bearing("prometheus", PASSWORD)
    async with (
        serving(web_config_file=file) as served,
        AsyncExitStack() as held,
        aiohttp.ClientSession(headers=known) as session,
    ):
        assert served.server._listener is not None
        for each in served.server._listener.sockets:  # what is accepted inherits it
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        place = ("127.0.0.1", int(served.url.rpartition(":")[2]))
        for _ in range(45):
            silent = held.enter_context(socket.socket())
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.setblocking(False)  # noqa: FBT003 - socket's own
            await asyncio.get_running_loop().sock_connect(silent, place)
            silent.send(ASK * 300)
        await served.empty()  # none of them holds anything
        for _ in range(18):
            async with session.get(served.url + "/metrics") as answer:
                assert answer.status == 200


async def test_readers_of_pages_keep_no_scraper_out() -> None:
    """60 of them at once: some get 503, and scrapes have places of their own."""
    came, go = asyncio.Semaphore(0), asyncio.Event()

    async def held(request: web.Request) -> web.Response:
        if request.path == "/":
            came.release()
            await go.wait()
        return web.Response(text="answered")

    async with serving(held) as served, aiohttp.ClientSession() as session:

        async def ask(path: str) -> int:
            async with session.get(served.url + path) as answer:
                return answer.status

        session.connector._limit = 0  # type: ignore[union-attr] # as many connections as readers
        readers = [asyncio.create_task(ask("/")) for _ in range(60)]
        for _ in range(40):
            await came.acquire()
        assert [await ask("/metrics") for _ in range(30)] == [200] * 30
        go.set()
        assert sorted(await asyncio.gather(*readers)) == [200] * 40 + [503] * 20


async def test_an_answer_that_is_not_taken_keeps_its_place() -> None:
    """Else a client could have the exporter make any number of answers."""

    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=bytes(64 << 20))

    async with (
        serving(large, max_requests=1) as served,
        connected(served.url) as (read, write),
    ):
        places = served.server._access._pages
        write.write(ASK)
        await read.readuntil(b"\r\n\r\n")
        assert places.locked()
        assert (await exchange(served.url, ASK)).startswith(b"HTTP/1.1 503 ")
        write.close()
        await served.empty()
        assert not places.locked()


@pytest.mark.parametrize(
    "ask",
    [
        b"GET /" + b"a" * 8200 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 8200 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 65 + b"\r\n",
    ],
    ids=["line", "header", "headers"],
)
async def test_a_head_is_bounded(ask: bytes) -> None:
    """A request line, a header, and their number."""
    async with serving() as served:
        assert (await exchange(served.url, ask)).startswith(b"HTTP/1.0 400 ")


async def test_so_many_requests_at_once() -> None:
    """More get 503 and may come again; health checks go on."""
    came, go = asyncio.Semaphore(0), asyncio.Event()

    async def held(_request: web.Request) -> web.Response:
        came.release()
        await go.wait()
        return web.Response(text="answered")

    async with (
        serving(held, max_requests=2) as served,
        aiohttp.ClientSession() as session,
    ):

        async def ask(path: str = "/") -> tuple[int, str | None]:
            async with session.get(served.url + path) as answer:
                return answer.status, answer.headers.get("Retry-After")

        under_way = [asyncio.create_task(ask()) for _ in range(2)]
        for _ in under_way:
            await came.acquire()
        assert await ask() == (503, "1")
        assert await ask("/-/healthy") == (200, None)
        go.set()
        assert await asyncio.gather(*under_way) == [(200, None)] * 2
        assert await ask() == (200, None)


async def test_who_hangs_up_keeps_the_place_of_the_request() -> None:
    """Its answer is made nevertheless, so that hanging up gets nobody more than the limit."""
    came, go, running = asyncio.Semaphore(0), asyncio.Event(), 0

    async def held(_request: web.Request) -> web.Response:
        nonlocal running
        running += 1
        came.release()
        await go.wait()
        return web.Response(text="answered")

    async with (
        serving(held, max_requests=2) as served,
        aiohttp.ClientSession() as session,
    ):
        for _ in range(2):
            leaving = asyncio.create_task(session.get(served.url))
            await came.acquire()
            leaving.cancel()
        await asyncio.wait({leaving})
        async with session.get(served.url) as answer:
            assert answer.status == 503
        assert running == 2
        go.set()


def test_rate_limit() -> None:
    """A burst at once, and then one for each interval; changes hold at once."""
    now = 0.0
    policy = AccessPolicy(WebSettings, 1, "localhost", clock=lambda: now)
    limit = RateLimitConfig(interval=0.5, burst=2)
    assert [policy._take_token(limit) for _ in range(3)] == [True, True, False]
    now = 0.5
    assert [policy._take_token(limit) for _ in range(2)] == [True, False]
    now = 60.0
    assert [policy._take_token(limit) for _ in range(3)] == [True, True, False]
    assert policy._take_token(RateLimitConfig())


async def test_rate_limit_of_the_file(tmp_path: Path) -> None:
    """429, as all exporters answer; health checks go on, and take nobody's turn."""
    file = web_file(tmp_path, rate_limit={"interval": "1h", "burst": 1})
    async with (
        serving(web_config_file=file) as served,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(served.url) as answer:
            assert answer.status == 200
        async with session.get(served.url) as answer:
            assert answer.status == 429
        async with session.get(served.url + "/-/healthy") as answer:
            assert answer.status == 200
