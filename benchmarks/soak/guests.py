"""Other visitors: people with browsers, health checks, and rude clients."""

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from benchmarks.soak.records import Book, Visit

EVERY_SECONDS: Final = 4.0
TIMEOUT_SECONDS: Final = 15.0
PATHS: Final = {
    "/": 200,
    "/-/ready": 200,
    "/api/v1/entities": 200,
    "/-/healthy": 200,
    "/?sort=delay&type=produce": 200,
    "/nothing/here": 404,
}
_RUDE: Final = (
    b"GET /metrics HT",
    b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: elsewhere\r\n\r\n",
    b"\0" * 5_000,
)
_RUDE_SECONDS: Final = 15.0


async def visit(url: str, book: Book, clock: Callable[[], float]) -> None:
    """Look at one page after the other until canceled."""
    async with aiohttp.ClientSession() as session:
        for path, status in itertools.cycle(PATHS.items()):
            began, start = clock(), time.perf_counter()
            problem = await _problem(session, url + path, status)
            seconds = time.perf_counter() - start
            book.add(Visit(at=began, path=path, seconds=seconds, problem=problem))
            await asyncio.sleep(EVERY_SECONDS)


async def _problem(session: aiohttp.ClientSession, url: str, status: int) -> str:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), session.get(url) as answer:
            await answer.read()
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return "" if answer.status == status else f"HTTP {answer.status}"


async def intrude(url: str) -> None:
    """Hang up in the middle of a request, of an answer, or read slowly, until canceled."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    chance = random.Random(5)  # noqa: S311 - no secrets here
    for request in itertools.cycle(_RUDE):
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, port, limit=1024)
            writer.write(request)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(100), chance.uniform(0.01, 3))
            writer.transport.abort()
        await asyncio.sleep(_RUDE_SECONDS)
