from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.cluster.certificates import Certificates
from tests.exporter.web.serving import (
    Served,
    connected,
    exchange,
    serving,
    tls_section,
    web_file,
)

from quotascope.exporter.web.connection import HttpConnection, ServerLimits

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
SOON = 0.2
"""Seconds until somebody is cut off."""
LATER = 0.6
"""The same where something else has to be in time, on a busy machine, too."""


async def drip(served: Served, head: bytes) -> None:
    """Send one byte after the other until the other side has enough."""
    async with connected(served.url) as (_, writer):
        with suppress(ConnectionError):
            for byte in head:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(SOON / 50)
            pytest.fail("it listened to the end")


async def test_who_sends_nothing_is_cut_off() -> None:
    """A connection is there to ask something."""
    async with serving(limits=ServerLimits(head_seconds=SOON)) as served:
        assert await exchange(served.url, b"") == b""


async def test_who_sends_a_head_slowly_is_cut_off() -> None:
    """However busy it looks: each byte keeps no door open."""
    async with serving(limits=ServerLimits(head_seconds=SOON)) as served:
        await drip(served, b"GET / HTTP/1.1\r\nX: " + b"a" * 10_000)


async def test_a_second_request_has_no_more_time() -> None:
    """It is counted from its first byte; between the two there is all the time of idle_seconds."""
    connections: list[HttpConnection] = []

    async def noted(request: web.Request) -> web.Response:
        assert isinstance(request.protocol, HttpConnection)
        connections.append(request.protocol)
        return web.Response(text="hello")

    limits = ServerLimits(head_seconds=LATER, idle_seconds=60.0)
    async with (
        serving(noted, limits) as served,
        connected(served.url) as (read, write),
    ):
        for _ in range(2):
            write.write(ASK)
            assert b"hello" in await read.readuntil(b"hello")
            until = connections[-1]._deadline
            assert until is not None
            assert until.when() - asyncio.get_running_loop().time() > 10 * LATER
        write.write(b"GET / HTT")
        assert await read.read() == b""


async def test_who_is_idle_is_cut_off() -> None:
    """After its answer."""
    async with serving(limits=ServerLimits(idle_seconds=SOON)) as served:
        assert (await exchange(served.url, ASK)).endswith(b"hello")


async def test_who_does_not_take_the_answer_is_cut_off() -> None:
    """What it does not read is not kept for it for ever."""

    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=bytes(64 << 20))

    async with serving(large, ServerLimits(taking_seconds=SOON)) as served:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)  # noqa: FBT003 - socket's own
            loop = asyncio.get_running_loop()
            port = int(served.url.rpartition(":")[2])
            await loop.sock_connect(client, ("127.0.0.1", port))
            await loop.sock_sendall(client, ASK)
            while not served.server._pool.answering:  # noqa: ASYNC110 - it goes by itself
                await asyncio.sleep(0)
            await served.empty()


async def test_who_takes_the_answer_late_gets_all_of_it() -> None:
    """Slowness alone is no offence; the next request is answered as well."""

    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=bytes(16 << 20))

    limits = ServerLimits(taking_seconds=60.0)
    async with (
        serving(large, limits) as served,
        connected(served.url) as (read, write),
    ):
        for _ in range(2):
            write.write(ASK)
            while not served.server._pool.answering:  # noqa: ASYNC110 - it goes by itself
                await asyncio.sleep(0)
            await read.readuntil(b"\r\n\r\n")
            assert len(await read.readexactly(16 << 20)) == 16 << 20


async def test_a_slow_answer_is_no_fault_of_the_client() -> None:
    """While a collection is under way, the deadlines of the client rest."""

    async def slow(request: web.Request) -> web.Response:
        assert isinstance(request.protocol, HttpConnection)
        assert request.protocol._deadline is None
        assert request.protocol._taking is None
        return web.Response(text="at last")

    async with serving(slow, ServerLimits(idle_seconds=SOON)) as served:
        assert (await exchange(served.url, ASK)).endswith(b"at last")


async def test_a_handshake_has_a_deadline(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Who connects to TLS and says nothing is cut off."""
    file = web_file(tmp_path, **tls_section(certificates))
    limits = ServerLimits(handshake_seconds=SOON)
    async with serving(limits=limits, web_config_file=file) as served:
        assert await exchange(served.url, b"") == b""


async def test_when_all_places_are_taken_the_newest_gets_in() -> None:
    """Connections that wait for nothing keep no scrape out."""
    async with (
        serving(max_connections=3) as served,
        connected(served.url) as (first, _),
        connected(served.url),
        connected(served.url),
    ):
        answer = await exchange(
            served.url, ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
        assert answer.endswith(b"hello")
        assert await first.read() == b""


async def test_handshakes_take_places_and_lose_them(
    tmp_path: Path, certificates: Certificates
) -> None:
    """So nobody keeps others out by beginning TLS and leaving it at that."""
    file = web_file(tmp_path, **tls_section(certificates))
    async with (
        serving(max_connections=1, web_config_file=file) as served,
        connected(served.url) as (first, _),
        connected(served.url),
    ):
        assert await first.read() == b""
        assert len(served.server._pool) == 1


async def test_when_all_are_being_answered_the_newest_is_refused() -> None:
    """A request that came in time is not given up for another one."""
    came, go = asyncio.Event(), asyncio.Event()

    async def held(_request: web.Request) -> web.Response:
        came.set()
        await go.wait()
        return web.Response(text="answered")

    with capture_logs() as lines:
        async with (
            serving(held, max_connections=1) as served,
            connected(served.url) as (read, write),
        ):
            write.write(ASK)
            await came.wait()
            assert await exchange(served.url, ASK) == b""
            go.set()
            assert await read.readuntil(b"answered")
    assert "connections were refused: all are in use" in [
        line["event"] for line in lines
    ]


async def test_nonsense_leaves_no_traceback_in_the_log() -> None:
    """Strangers cannot fill it."""
    with capture_logs() as lines:
        async with serving() as served:
            for nonsense in (b"\x16\x03\x01", b"GET / HTTP/1.1\r\n: x\r\n\r\n"):
                answer = await exchange(served.url, nonsense + b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.0 400 Bad Request")
                assert answer.endswith(b"400 Bad Request\n")
    assert [line["event"] for line in lines] == ["listening"]


async def test_a_defect_is_in_the_log_and_not_in_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Even where nobody else catches it."""

    async def broken(_request: web.Request) -> web.Response:
        raise ZeroDivisionError("hunter2")

    async with serving(broken) as served:
        answer = await exchange(served.url, ASK)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"nosniff" in answer
    assert answer.endswith(b"\r\n500 Internal Server Error\n")
    assert "ZeroDivisionError: hunter2" in caplog.text


async def test_who_goes_before_the_answer_leaves_nothing() -> None:
    """Neither a place nor a deadline."""
    came, go = asyncio.Event(), asyncio.Event()
    connections: list[HttpConnection] = []

    async def held(request: web.Request) -> web.Response:
        assert isinstance(request.protocol, HttpConnection)
        connections.append(request.protocol)
        came.set()
        await go.wait()
        return web.Response(text="too late")

    async with serving(held) as served:
        async with connected(served.url) as (_, write):
            write.write(ASK)
            await came.wait()
        await served.empty()
        handling = [
            each for each in asyncio.all_tasks() if "RequestHandler" in repr(each)
        ]
        go.set()
        await asyncio.gather(*handling, return_exceptions=True)
    assert [each._deadline for each in connections] == [None]


async def test_the_end_loses_no_connection_that_was_just_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that asyncio has accepted and not yet handed over is closed, too."""
    accepted: list[socket.socket] = []
    accept = socket.socket.accept
    closing: list[asyncio.Task[None]] = []

    def noted(self: socket.socket) -> tuple[socket.socket, object]:
        found = accept(self)
        accepted.append(found[0])
        closing.append(asyncio.create_task(served.server.close()))
        return found

    monkeypatch.setattr(socket.socket, "accept", noted)
    async with serving() as served:
        async with connected(served.url) as (read, _):
            assert await read.read() == b""
        await asyncio.gather(*closing)
    assert [each.fileno() for each in accepted] == [-1]
