"""What goes wrong over HTTP, and what the message says to do about it."""

import asyncio
import gzip
import socket
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.exporter.sources.http.misbehaving import (
    Behaviour,
    answering,
    serving,
    silence,
    with_status,
)

from quotascope.exporter.errors import (
    SourceDenied,
    SourceError,
    SourceUnreachable,
    SourceUnreadable,
)
from quotascope.exporter.sources.http.fetch import HttpFetch
from quotascope.exporter.sources.http.target import HttpTarget

HEAD = b"HTTP/1.1 200 OK\r\n"


async def fetched(target: HttpTarget) -> bytes:
    """The answer to one GET."""
    fetch = HttpFetch(target, "this is the hint")
    try:
        return await fetch.read()
    finally:
        await fetch.close()
        await fetch.close()


async def failure(behave: Behaviour, **settings: float) -> SourceError:
    """The error that a behaviour ends in; it is one line and free of secrets."""
    async with serving(behave) as url:
        target = HttpTarget(
            url=url, username="scott", password="tiger", headers={"X-Token": "tiger"}
        )
        with pytest.raises(SourceError) as caught:
            await fetched(replace(target, **settings))  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.isprintable()
    assert "tiger" not in message + repr(target)
    return caught.value


async def test_nobody_listening_is_unreachable() -> None:
    """The message names the address, the reason and what to look at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(
            SourceUnreachable,
            match=f"127.0.0.1:{port} .Connection refused.: .*agent loaded",
        ):
            await fetched(HttpTarget(url=f"http://127.0.0.1:{port}/metrics"))


async def test_an_unknown_host_is_unreachable() -> None:
    """A name that does not resolve is told like a closed port."""
    with pytest.raises(SourceUnreachable, match=r"no connection to broker\.invalid:80"):
        await fetched(HttpTarget(url="http://broker.invalid/metrics"))


async def test_no_answer_in_time_is_unreachable() -> None:
    """A node in a long garbage collection accepts connections and says nothing."""
    error = await failure(silence, timeout_seconds=0.05)
    assert isinstance(error, SourceUnreachable)
    assert "0.05 s" in str(error)


async def test_half_an_answer_in_time_is_unreachable() -> None:
    """The time is for the complete answer, not for its first byte."""

    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(HEAD + b"Content-Length: 10\r\n\r\nhalf")(reader, writer)
        await silence(reader, writer)

    error = await failure(stall, timeout_seconds=0.05)
    assert isinstance(error, SourceUnreachable)


async def test_an_answer_cut_off_is_unreachable() -> None:
    """A node that goes down in the middle must not leave half of its numbers."""
    error = await failure(answering(HEAD + b"Content-Length: 10\r\n\r\nhalf"))
    assert isinstance(error, SourceUnreachable)
    assert "middle of the answer" in str(error)


async def test_hanging_up_without_a_word_is_unreachable() -> None:
    """So does a port that wants TLS."""
    error = await failure(answering())
    assert isinstance(error, SourceUnreachable)
    assert "https" in str(error)


async def test_another_protocol_is_unreadable() -> None:
    """A Kafka listener does not speak HTTP."""
    error = await failure(answering(b"\x00\x00\x00\x10nonsense\r\n\r\n"))
    assert isinstance(error, SourceUnreadable)
    assert "hint" in str(error)


async def test_a_failed_handshake_asks_for_https() -> None:
    """Some servers answer a TLS greeting in plain text."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with serving(plain) as url:
        with pytest.raises(
            SourceUnreadable, match=r"\(WRONG_VERSION_NUMBER\): .*speak https"
        ):
            await fetched(HttpTarget(url=url.replace("http://", "https://")))


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_refused_credentials_are_told_as_such(status: str) -> None:
    """Whoever reads the log knows which setting to look at."""
    error = await failure(with_status(status))
    assert isinstance(error, SourceDenied)
    assert "basic_auth" in str(error)


@pytest.mark.parametrize("status", ["404 Not Found", "500 No", "204 Nothing"])
async def test_any_other_status_is_unreadable(status: str) -> None:
    """Only 200 brings numbers."""
    error = await failure(with_status(status))
    assert isinstance(error, SourceUnreadable)
    assert status[:3] in str(error)
    assert "hint" in str(error)


async def test_a_redirect_is_not_followed() -> None:
    """Credentials go nowhere but to the configured address; the message says where it pointed, without secrets."""
    error = await failure(
        with_status("302 Found", "Location: https://u:tiger@sso.example/in?key=tiger#t")
    )
    assert isinstance(error, SourceUnreadable)
    assert "https://sso.example/in;" in str(error)


@pytest.mark.parametrize("location", ["http://[broken", "\x01"])
async def test_a_redirect_to_nowhere_is_no_crash(location: str) -> None:
    """A location need not be one."""
    error = await failure(with_status("301 Moved", f"Location: {location}"))
    assert isinstance(error, SourceUnreadable)


async def test_an_endless_answer_is_cut() -> None:
    """Memory is bounded, whatever the agent sends."""
    body = HEAD + b"\r\n" + b"x" * 4096
    error = await failure(answering(body), max_bytes=1024)
    assert isinstance(error, SourceUnreadable)
    assert "longer than" in str(error)


async def test_a_small_answer_that_unpacks_to_a_large_one_is_cut() -> None:
    """The bound is that of the decompressed answer."""
    packed = gzip.compress(b"x" * 10_000_000)
    head = f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    error = await failure(answering(HEAD + head + packed), max_bytes=1 << 20)
    assert isinstance(error, SourceUnreadable)
    assert "longer than 1 MiB" in str(error)


async def test_a_header_that_cannot_be_sent_is_an_error_of_ours() -> None:
    """A secret that was read with its line end must not split the request."""
    target = HttpTarget(url="http://127.0.0.1:1/", headers={"X-Token": "a\r\nb"})
    with pytest.raises(SourceError, match="X-Token"):
        await fetched(target)


async def test_a_user_name_with_a_colon_is_an_error_of_ours() -> None:
    """Basic authentication cannot carry it."""
    with pytest.raises(SourceError, match="colon"):
        await fetched(HttpTarget(url="http://127.0.0.1:1/", username="a:b"))


async def test_credentials_headers_and_compression() -> None:
    """What is configured is sent, a password in UTF-8; the answer may be compressed."""

    async def echo(request: web.Request) -> web.Response:
        told = {
            name: request.headers[name]
            for name in ("Authorization", "X-Token", "Accept-Encoding")
        }
        response = web.json_response(told)
        response.enable_compression()
        return response

    app = web.Application()
    app.router.add_get("/metrics", echo)
    async with TestServer(app) as server:
        body = await fetched(
            HttpTarget(
                url=str(server.make_url("/metrics")),
                username="scott",
                password="tïger",
                headers={"X-Token": "t"},
            )
        )
    assert b"Basic c2NvdHQ6dMOvZ2Vy" in body
    assert b'"X-Token": "t"' in body
    assert b"gzip" in body


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
