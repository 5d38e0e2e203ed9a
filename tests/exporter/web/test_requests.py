from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.exporter.web.serving import exchange, serving, web_file

from quotascope.exporter.web.limits import Limits
from quotascope.exporter.web.model import RateLimitConfig
from quotascope.exporter.web.requests import _Bucket


@pytest.mark.parametrize(
    "head", [b"Content-Length: 5000000000", b"Transfer-Encoding: chunked"]
)
async def test_a_body_is_refused_and_not_read(head: bytes) -> None:
    """Whatever it says about its length; the connection ends with that."""
    ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n"
    async with serving(limits=Limits(body_seconds=0.1)) as served:
        answer = await exchange(served.url, ask)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"Connection: close" in answer


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
    bucket = _Bucket(lambda: now)
    limit = RateLimitConfig(interval=0.5, burst=2)
    assert [bucket.take(limit) for _ in range(3)] == [True, True, False]
    now = 0.5
    assert [bucket.take(limit) for _ in range(2)] == [True, False]
    now = 60.0
    assert [bucket.take(limit) for _ in range(3)] == [True, True, False]
    assert bucket.take(RateLimitConfig())


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
