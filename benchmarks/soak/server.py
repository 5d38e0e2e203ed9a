"""An HTTP server that behaves as its weather is."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, Protocol

from benchmarks.soak.weather import Mood, Spell, Weather

TOO_LATE_SECONDS: Final = 20.0
LATE_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.2
_CHUNK: Final = b" " * (1 << 18)
_PROXY: Final = b"<html><body><h1>Sign in</h1>" + b"<p>proxy</p>" * 200
_FAILING: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n"
_REDIRECTING: Final = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:1/\r\n\r\n"
_ENDLESS: Final = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


class Answering(Protocol):
    """Source of the bodies of good answers."""

    content_type: str

    def answer(self, request: bytes, spell: Spell, second: float) -> bytes:
        """Return the body for a request's at this second."""


class Server:
    """
    Listens unless its mood is to refuse.

    Args:
        name: Its weather follows from it.
        port: Where, on the loopback interface.
        answering: What it answers when all is well.

    """

    def __init__(self, name: str, port: int, answering: Answering) -> None:
        self._weather = Weather(name)
        self._port = port
        self._answering = answering
        self._open: set[asyncio.StreamWriter] = set()
        self._clock: Callable[[], float] = lambda: 0.0

    async def run(self, clock: Callable[[], float]) -> None:
        """Serve until canceled; ``clock`` gives the seconds since the run began."""
        self._clock = clock
        server: asyncio.Server | None = None
        while True:
            refused = self._spell().mood is Mood.REFUSED
            if refused and server is not None:
                server.close()
                for writer in list(self._open):
                    writer.transport.abort()
                server = None
            elif not refused and server is None:
                server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
            await asyncio.sleep(LOOK_SECONDS)

    def _spell(self) -> Spell:
        return self._weather.at(self._clock())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass
        self._open.discard(writer)
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection is kept."""
        request = await _body(reader)
        spell = self._spell()
        if spell.mood is Mood.ENDLESS:
            await _endless(writer)
        elif spell.mood is Mood.SILENT:
            await reader.read()
        elif spell.mood in _PLAIN:
            writer.write(_PLAIN[spell.mood])
        else:
            await self._answer(request, spell, writer)
        await writer.drain()
        return spell.mood not in {Mood.ENDLESS, Mood.SILENT, Mood.CUT}

    async def _answer(self, request: bytes, spell: Spell, writer: asyncio.StreamWriter) -> None:
        if spell.mood in _DELAYS:
            await asyncio.sleep(_DELAYS[spell.mood])
        body = self._answering.answer(request, spell, self._clock())
        answer = _framed(body, self._answering.content_type)
        writer.write(answer[: len(answer) * 2 // 3] if spell.mood is Mood.CUT else answer)


def _framed(body: bytes, content_type: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _body(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return await reader.readexactly(int(value))
        if name == b"transfer-encoding":
            return await _chunks(reader)
    return b""


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


async def _endless(writer: asyncio.StreamWriter) -> None:
    """Write without end, until the other side closes."""
    writer.write(_ENDLESS)
    while True:
        writer.write(_CHUNK)
        await writer.drain()


_PLAIN: Final = {
    Mood.FAILING: _FAILING,
    Mood.REDIRECTING: _REDIRECTING,
    Mood.GARBLED: _framed(_PROXY, "text/html"),
}
_DELAYS: Final = {Mood.LATE: LATE_SECONDS, Mood.SLOW: TOO_LATE_SECONDS}
