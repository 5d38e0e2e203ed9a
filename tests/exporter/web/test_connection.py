"""Deadlines of clients, and the places of connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.cluster.certificates import Certificates
from tests.exporter.web.serving import ASK, Handler, Held, Served, connected, exchange, serving, tls_section, web_file
from yarl import URL

from quotascope.exporter.web.connection import ConnectionPool, HttpConnection, ServerLimits
from quotascope.exporter.web.pieces import PIECE_BYTES, Pieces

SOON = 0.2
"""Seconds until a client is cut off."""


async def large(_request: web.Request) -> web.Response:
    """Answer with more than the buffers of sockets hold."""
    return web.Response(body=bytes(16 << 20))


PAGE = bytes(range(256)) * (1 << 16)


async def in_pieces(_request: web.Request) -> web.Response:
    """Answer with pieces that all requests share, as long as the large answer."""
    return web.Response(body=Pieces(PAGE))


def in_answer(pool: ConnectionPool) -> int:
    return len(pool) - len(pool._waiting)


async def answering(served: Served) -> None:
    while not in_answer(served.server._pool):  # noqa: ASYNC110 - it comes by itself
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("limits", "sent", "received"),
    [
        (ServerLimits(head_seconds=SOON), b"", b""),
        (ServerLimits(head_seconds=SOON), ASK[:-1], b""),
        (ServerLimits(idle_seconds=SOON), ASK, b"hello"),
    ],
    ids=["nothing", "half a head", "idle"],
)
async def test_a_client_that_sends_nothing_is_cut_off(limits: ServerLimits, sent: bytes, received: bytes) -> None:
    """The client is cut off at the beginning, in the middle of a head, and after an answer."""
    async with serving(limits=limits) as served:
        assert (await exchange(served.url, sent))[-5:] == received


async def test_a_head_that_comes_slowly_is_cut_off() -> None:
    """A client whose head comes slowly is cut off, as no byte extends the deadline."""
    async with serving(limits=ServerLimits(head_seconds=SOON)) as served, connected(served.url) as (_, writer):
        with suppress(ConnectionError):
            for byte in b"GET / HTTP/1.1\r\nX: " + b"a" * 10_000:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(SOON / 50)
            pytest.fail("it listened to the end")


async def test_a_second_request_has_no_more_time() -> None:
    """The time of a request counts from its first byte; between two requests the client has all of idle_seconds."""
    connections: list[HttpConnection] = []

    async def noted(request: web.Request) -> web.Response:
        assert isinstance(request.protocol, HttpConnection)
        connections.append(request.protocol)
        return web.Response(text="hello")

    limits = ServerLimits(head_seconds=60.0, idle_seconds=3_600.0)
    async with serving(noted, limits) as served, connected(served.url) as (reader, write):
        for _ in range(2):
            write.write(ASK)
            assert b"hello" in await reader.readuntil(b"hello")
            until = connections[-1]._deadline
            assert until is not None
            assert until.when() - asyncio.get_running_loop().time() > 10 * limits.head_seconds
        connections[-1]._limits = replace(limits, head_seconds=SOON)
        write.write(b"GET / HTT")
        assert await reader.read() == b""


@pytest.mark.parametrize("handler", [large, in_pieces])
async def test_a_client_that_does_not_take_the_answer_is_cut_off(handler: Handler) -> None:
    """A client that does not read its answer is cut off, and the answer is dropped."""
    async with serving(handler, ServerLimits(taking_seconds=SOON)) as served:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)  # noqa: FBT003 - socket's own
            loop = asyncio.get_running_loop()
            port = int(served.url.rpartition(":")[2])
            await loop.sock_connect(client, ("127.0.0.1", port))
            await loop.sock_sendall(client, ASK)
            await answering(served)
            await served.empty()


async def test_a_client_that_takes_pieces_slowly_is_cut_off() -> None:
    """A client that reads pieces too slowly is cut off, since the deadline is for the whole answer."""
    limits = ServerLimits(taking_seconds=SOON)
    async with serving(in_pieces, limits) as served, connected(served.url) as (read, write):
        write.write(ASK)
        taken = 0
        while piece := await read.read(PIECE_BYTES):
            taken += len(piece)
            await asyncio.sleep(SOON / 20)
        assert taken < len(PAGE)


async def test_clients_share_an_answer_in_pieces() -> None:
    """
    Connections whose clients read nothing hold a few pieces of an answer, not a copy each.

    Each client gets all of it, and has no deadline afterwards.
    """
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(in_pieces))
        streams = [await stack.enter_async_context(connected(served.url)) for _ in range(8)]
        for _, write in streams:
            write.write(ASK)
        pool = served.server._pool
        # aiohttp pauses a connection by itself, without an event
        while in_answer(pool) < len(streams) or not all(each._paused for each in pool._all):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        held = sum(each._wire.get_write_buffer_size() for each in pool._all if each._wire)
        assert held <= len(streams) * 4 * PIECE_BYTES
        for read, _ in streams:
            await read.readuntil(b"\r\n\r\n")
            assert await read.readexactly(len(PAGE)) == PAGE
        while in_answer(pool):  # noqa: ASYNC110 - it goes by itself
            await asyncio.sleep(0.001)
        assert [each._taking for each in pool._all] == [None] * len(streams)


async def test_a_client_that_takes_the_answer_late_gets_all_of_it() -> None:
    """A client that reads its answer late gets all of it, and an answer to its next request."""
    async with serving(large, ServerLimits(taking_seconds=60.0)) as served, connected(served.url) as (reader, write):
        for _ in range(2):
            write.write(ASK)
            await answering(served)
            await reader.readuntil(b"\r\n\r\n")
            assert len(await reader.readexactly(16 << 20)) == 16 << 20


async def test_a_slow_answer_is_not_the_fault_of_the_client() -> None:
    """A client has no deadline while its answer is being made."""

    async def slow(request: web.Request) -> web.Response:
        assert isinstance(request.protocol, HttpConnection)
        assert request.protocol._deadline is None
        assert request.protocol._taking is None
        return web.Response(text="at last")

    async with serving(slow, ServerLimits(idle_seconds=SOON)) as served:
        assert (await exchange(served.url, ASK)).endswith(b"at last")


async def test_a_handshake_has_a_deadline(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that connects to TLS and sends nothing is cut off, and not only by asyncio after a minute."""
    monkeypatch.setattr("asyncio.constants.SSL_HANDSHAKE_TIMEOUT", 3600.0)
    file = web_file(tmp_path, **tls_section(certificates))
    limits = ServerLimits(handshake_seconds=SOON)
    async with serving(limits=limits, web_config_file=file) as served:
        assert await exchange(served.url, b"") == b""
        await served.empty()


async def test_handshakes_take_places_and_lose_them(tmp_path: Path, certificates: Certificates) -> None:
    """TLS that is begun and left at that keeps no other client out: the connection that has waited longest is cut."""
    file = web_file(tmp_path, **tls_section(certificates))
    async with (
        serving(max_connections=1, web_config_file=file) as served,
        connected(served.url) as (first_reader, _),
        connected(served.url),
    ):
        assert await first_reader.read() == b""
        assert len(served.server._pool) == 1


async def test_when_all_are_being_answered_the_newest_is_refused() -> None:
    """When all places have a request that is being answered, the newest connection is refused."""
    held = Held()
    with capture_logs() as lines:
        async with serving(held.answer, max_connections=1) as served, connected(served.url) as (reader, write):
            write.write(ASK)
            await held.came.acquire()
            assert await exchange(served.url, ASK) == b""
            held.go.set()
            assert await reader.readuntil(b"answered")
    assert "connections were refused: all are in use" in [line["event"] for line in lines]


async def test_nonsense_leaves_no_traceback_in_the_log() -> None:
    """Nonsense from clients leaves no traceback in the log, which they cannot fill."""
    with capture_logs() as lines:
        async with serving() as served:
            for nonsense in (b"\x16\x03\x01", b"GET / HTTP/1.1\r\n: x\r\n\r\n"):
                answer = await exchange(served.url, nonsense + b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.0 400 Bad Request")
                assert answer.endswith(b"400 Bad Request\n")
    assert [line["event"] for line in lines] == ["listening"]


async def test_a_defect_is_in_the_log_and_not_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    """A defect is logged and not in the answer, even where no other code catches it."""

    async def broken(_request: web.Request) -> web.Response:
        raise ZeroDivisionError("hunter2")

    async with serving(broken) as served:
        answer = await exchange(served.url, ASK)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"nosniff" in answer
    assert answer.endswith(b"\r\n500 Internal Server Error\n")
    assert "ZeroDivisionError: hunter2" in caplog.text


async def test_a_client_that_leaves_before_the_answer_leaves_nothing() -> None:
    """A client that hangs up before its answer leaves neither a place nor a deadline."""
    held = Held()
    async with serving(held.answer) as served:
        async with connected(served.url) as (_, write):
            write.write(ASK)
            await held.came.acquire()
            connection = held.requests[0].protocol
        await served.empty()
        handling = [task for task in asyncio.all_tasks() if "RequestHandler" in repr(task)]
        held.go.set()
        await asyncio.gather(*handling, return_exceptions=True)
    assert isinstance(connection, HttpConnection)
    assert connection._deadline is None


@pytest.mark.slow
async def test_the_end_loses_no_connection_that_was_just_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that asyncio has accepted and not yet handed over is closed, too."""
    accepted: list[socket.socket] = []
    accept = socket.socket.accept
    closing: list[asyncio.Task[None]] = []

    def noted(self: socket.socket) -> tuple[socket.socket, object]:
        accepted_socket = accept(self)
        if self.getsockname()[1] != URL(served.url).port:
            return accepted_socket  # another server's, in a thread of its own
        accepted.append(accepted_socket[0])
        closing.append(asyncio.create_task(served.server.close()))
        return accepted_socket

    monkeypatch.setattr(socket.socket, "accept", noted)
    async with serving() as served:
        async with connected(served.url) as (reader, _):
            assert await reader.read() == b""
        await asyncio.gather(*closing)
    assert [accepted_socket.fileno() for accepted_socket in accepted] == [-1]


class Waiting:
    """A connection that only notes that it was cut."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.was_cut = False
        self.seen = cast("HttpConnection", self)
        """As the pool sees it."""
        self.entered = pool.enter(self.seen)

    def cut(self) -> None:
        self.was_cut = True


def test_a_new_connection_replaces_the_one_that_waited_longest() -> None:
    """The connection that waited longest since its last answer is replaced, never one that is being answered."""
    pool = ConnectionPool(2)
    oldest, second, third = (Waiting(pool) for _ in range(3))
    assert [connection.was_cut for connection in (oldest, second, third)] == [True, False, False]
    pool.answer(second.seen)
    pool.wait(second.seen)
    fourth = Waiting(pool)
    assert (fourth.entered, second.was_cut, third.was_cut, len(pool)) == (True, False, True, 2)
    for connection in (second, fourth):
        pool.answer(connection.seen)
    assert in_answer(pool) == 2
    assert not Waiting(pool).entered
    assert (second.was_cut, fourth.was_cut) == (False, False)
    for connection in (second, fourth):
        pool.leave(connection.seen)
        pool.answer(connection.seen)
        pool.wait(connection.seen)
    assert (len(pool), in_answer(pool)) == (0, 0)
    assert Waiting(pool).entered
