"""The server before a small application, on real sockets of the loopback interface."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from tests.cluster.certificates import Certificates

from quotascope.exporter.config import ServerConfig
from quotascope.exporter.web import HttpServer
from quotascope.exporter.web.connection import ServerLimits

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSING = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
"""The same, of a client that wants no other answer."""
PASSWORD = "correct horse"
HASH = "$2b$04$QTfnLWl6HkaG1uAIHT.HGeHa1S8svqTvKrThjasWFEHsMIDT6MGvq"
"""Of that, at the lowest cost."""


class Held:
    """Answers that wait until the test lets them go, on all paths but ``free``."""

    def __init__(self, free: str = "") -> None:
        self.came = asyncio.Semaphore(0)
        """One for each request that came."""
        self.go = asyncio.Event()
        self.requests: list[web.Request] = []
        self._free = free

    async def answer(self, request: web.Request) -> web.Response:
        if request.path != self._free:
            self.requests.append(request)
            self.came.release()
            await self.go.wait()
        return web.Response(text="answered")


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    server: HttpServer

    async def empty(self) -> None:
        while len(self.server._pool):  # noqa: ASYNC110 - it goes by itself
            await asyncio.sleep(0.001)


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


@asynccontextmanager
async def serving(handler: Handler = hello, limits: ServerLimits | None = None, **server: Any) -> AsyncIterator[Served]:
    settings = {"address": "127.0.0.1", "port": 0, **server}
    http = HttpServer(ServerConfig.model_validate(settings), limits)
    app = web.Application()
    app.router.add_get("/", handler)
    app.router.add_get("/metrics", handler)
    app.router.add_get("/-/healthy", hello)
    try:
        yield Served(await http.open(app, 1.0), http)
    finally:
        await http.close()


def web_file(folder: Path, **content: Any) -> Path:
    path = folder / "web.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def tls_section(certificates: Certificates, **options: Any) -> dict[str, Any]:
    """TLS with the certificate of the test authority."""
    files = {"cert_file": str(certificates.server), "key_file": str(certificates.server_key)}
    return {"tls_server_config": {**files, **options}}


def trusting(certificates: Certificates, *, with_client: bool = False) -> ssl.SSLContext:
    """Return a client that trusts the test authority, and may show a certificate of it."""
    context = ssl.create_default_context(cafile=certificates.ca)
    if with_client:
        context.load_cert_chain(certificates.client, certificates.client_key)
    return context


async def get(url: str, headers: Mapping[str, str] | None = None) -> tuple[int, Mapping[str, str]]:
    """Return status and headers of an answer, on a connection of its own."""
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, answer.headers


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = url.rpartition("/")[2].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def exchange(url: str, sent: bytes) -> bytes:
    """Send bytes to a plain port, and return all that comes until the connection ends."""
    received = b""
    async with connected(url) as (reader, writer):
        writer.write(sent)
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                received += piece
    return received
