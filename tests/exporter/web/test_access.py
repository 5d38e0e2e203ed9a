"""Requests that are refused, and the limits and headers of those that are answered."""

from __future__ import annotations

import asyncio
import base64
import gzip
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.http_parser import DeflateBuffer
from structlog.testing import capture_logs
from tests.exporter.web.serving import ASK, CLOSING, HASH, PASSWORD, Held, connected, exchange, get, serving, web_file

from quotascope.exporter.web.access import AccessPolicy, credentials
from quotascope.exporter.web.connection import HttpConnection, ServerLimits
from quotascope.exporter.web.settings import WebSettings
from quotascope.exporter.web.web_config import RateLimitConfig


def basic(text: str | bytes) -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    return f"Basic {base64.b64encode(raw).decode()}"


USERS = {"basic_auth_users": {"prometheus": HASH}}
RIGHT = {"Authorization": basic(f"prometheus:{PASSWORD}")}
BODIES = {
    "endless": (b"Content-Length: 5000000000", b""),
    "chunked": (b"Transfer-Encoding: chunked", b""),
    "bomb": (b"Content-Encoding: gzip", gzip.compress(bytes(8 << 20))),
    "deflate bomb": (b"Content-Encoding: deflate", zlib.compress(bytes(8 << 20))),
    "no gzip": (b"Content-Encoding: gzip", b"hello"),
    "cut gzip": (b"Content-Encoding: gzip", gzip.compress(bytes(1000))[:-9]),
}


@pytest.mark.parametrize(("header", "body"), BODIES.values(), ids=BODIES)
async def test_no_body_is_unpacked(
    header: bytes, body: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """
    A compressed body is never unpacked, before the login or after it, and its connection ends.

    A broken one leaves no traceback either.
    """
    unpacked: list[int] = []
    feed = DeflateBuffer.feed_data

    def counted(self: DeflateBuffer, chunk: bytes, size: int) -> bool:
        unpacked.append(len(chunk))
        return feed(self, chunk, size)

    monkeypatch.setattr(DeflateBuffer, "feed_data", counted)
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s\r\n%s" % (header, length, body)
    limits = ServerLimits(body_seconds=0.1)
    async with serving(limits=limits, web_config_file=web_file(tmp_path, **USERS)) as served:
        answer = await exchange(served.url, ask)
        await served.empty()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"Connection: close" in answer
    assert unpacked == []
    assert caplog.text == ""


async def test_little_of_a_body_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small body is ignored, and a client that sends more is cut off."""
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
async def test_expect_is_looked_at_after_the_login(expected: bytes, tmp_path: Path) -> None:
    """The header Expect is answered after the login, and without the server's versions."""
    ask = CLOSING[:-2] + b"Expect: %s\r\n" % expected
    login = f"Authorization: {RIGHT['Authorization']}\r\n".encode()
    async with serving(web_config_file=web_file(tmp_path, **USERS)) as served:
        unknown = await exchange(served.url, ask + b"\r\n")
        user = await exchange(served.url, ask + login + b"\r\n")
    assert unknown.startswith(b"HTTP/1.1 401 ")
    assert user.startswith(b"HTTP/1.1 417 " if expected == b"x" else b"HTTP/1.1 100 ")
    for answer in (unknown, user):
        assert b"\r\nServer: quotascope\r\n" in answer
        assert b"aiohttp" not in answer


REFUSED = {
    "no password": (ASK, USERS, b"401"),
    "wrong host": (ASK.replace(b"localhost", b"example.org"), {}, b"421"),
    "too often": (ASK, {"rate_limit": {"interval": "1h", "burst": 1}}, b"429"),
}


@pytest.mark.parametrize(("ask", "config", "status"), REFUSED.values(), ids=REFUSED)
async def test_a_refusal_ends_the_connection(ask: bytes, config: dict[str, Any], status: bytes, tmp_path: Path) -> None:
    """A refused client that sent hundreds of requests at once gets one answer, so that none holds anything."""
    async with serving(web_config_file=web_file(tmp_path, **config)) as served:
        if status == b"429":
            await exchange(served.url, CLOSING)
        answer = await exchange(served.url, ask * 300)
    assert answer.startswith(b"HTTP/1.1 %s " % status)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in answer


async def test_an_answer_that_is_not_taken_keeps_its_place() -> None:
    """An answer that the client does not read keeps its place, or a client could request any number of answers."""

    async def large(_request: web.Request) -> web.Response:
        return web.Response(body=bytes(64 << 20))

    async with serving(large, max_requests=1) as served, connected(served.url) as (reader, write):
        places = served.server._access._pages
        write.write(ASK)
        await reader.readuntil(b"\r\n\r\n")
        assert len(places) == 1
        assert (await exchange(served.url, ASK)).startswith(b"HTTP/1.1 503 ")
        write.close()
        await served.empty()
        assert len(places) == 0


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
    """A request line, a header, and their number have bounds."""
    async with serving() as served:
        assert (await exchange(served.url, ask)).startswith(b"HTTP/1.0 400 ")


async def test_requests_at_once_are_limited() -> None:
    """
    Requests beyond the limit get 503, but scrapes and health checks go on.

    The place of a client that hangs up is free when its answer is ready.
    """
    held = Held(free="/metrics")
    async with serving(held.answer, max_requests=2) as served:
        requests = [asyncio.create_task(get(served.url)) for _ in range(2)]
        for _ in requests:
            await held.came.acquire()
        requests[0].cancel()
        await asyncio.wait({requests[0]})
        status, headers = await get(served.url)
        assert (status, headers["Retry-After"]) == (503, "1")
        for path in ("/-/healthy", *["/metrics"] * 3):
            assert (await get(served.url + path))[0] == 200
        assert len(held.requests) == 2
        held.go.set()
        assert (await requests[1])[0] == 200
        assert (await get(served.url))[0] == 200


def test_rate_limit() -> None:
    """A burst is answered at once, and then one request for each interval; a changed limit holds at once."""
    now_seconds = 0.0
    policy = AccessPolicy(WebSettings, 1, ["localhost"], clock=lambda: now_seconds)
    limit = RateLimitConfig(interval=0.5, burst=2)
    taken = []
    for now_seconds, times in ((0.0, 3), (0.5, 2), (60.0, 3)):  # noqa: B007 - which the policy's clock returns
        taken.append([policy._take_token(limit) for _ in range(times)])
    assert taken == [[True, True, False], [True, False], [True, True, False]]
    assert policy._take_token(RateLimitConfig())


async def test_rate_limit_of_the_file(tmp_path: Path) -> None:
    """A request beyond the file's rate gets 429; health checks are not limited and do not count."""
    file = web_file(tmp_path, rate_limit={"interval": "1h", "burst": 1})
    async with serving(web_config_file=file) as served:
        paths = ("/-/healthy", "/", "/", "/-/healthy")
        statuses = [(await get(served.url + path))[0] for path in paths]
    assert statuses == [200, 200, 429, 200]


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        ("", "rebound.example", 421),
        ("", "LOCALHOST:1234", 200),
        ("", "[::1]:1", 200),
        ("", "127.0.0.1:9749", 200),
        ("", "", 200),
        ("quotascope.corp,other.corp", "Quotascope.corp.:80", 200),
        ("quotascope.corp.", "quotascope.corp", 200),
        ("quotascope.corp", "rebound.example", 421),
    ],
)
async def test_a_page_of_another_site_reads_nothing(allowed: str, host: str, status: int) -> None:
    """On a loopback address a request for another host name is refused (DNS rebinding)."""
    with capture_logs() as lines:
        async with serving(allowed_hosts=allowed) as served:
            answer = await exchange(served.url, CLOSING.replace(b"localhost", host.encode()))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    refused = [line["host"] for line in lines if "another host" in line["event"]]
    assert refused == (["rebound.example"] if status == 421 else [])


@pytest.mark.parametrize(
    ("addresses", "allowed", "any_host"),
    [
        ("127.0.0.1", [], False),
        ("::1", [], False),
        ("localhost ::1", [], False),
        ("127.0.0.1 192.0.2.1", [], True),
        ("0.0.0.0", [], True),  # noqa: S104 - compared, not bound
        ("", [], True),
        ("quotascope.corp", [], True),
        ("0.0.0.0", ["quotascope.corp"], False),  # noqa: S104 - compared, not bound
    ],
)
async def test_host_names_of_other_addresses_are_unknown(addresses: str, allowed: list[str], *, any_host: bool) -> None:
    """Beyond loopback any name is answered, unless some are listed."""
    assert AccessPolicy(WebSettings, 1, addresses.split(" "), allowed)._any_host is any_host


HEADERS = {
    "Server: quotascope",
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: deny",
    "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy: same-origin",
    "Referrer-Policy: no-referrer",
    "Cache-Control: no-store",
}


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /-/healthy HTTP/1.1", b"200"),
        (b"GET /nope HTTP/1.1", b"404"),
        (b"POST / HTTP/1.1", b"405"),
        (b"NONSENSE", b"400"),
    ],
)
async def test_every_answer_has_the_headers(request_line: bytes, status: bytes) -> None:
    """Every answer has the headers, also errors and answers to other protocols; none names the software."""
    head = request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with serving() as served:
        answer = await exchange(served.url, head)
    assert answer.split()[1] == status
    lines = answer.decode().split("\r\n")
    assert set(lines) >= HEADERS
    assert "aiohttp" not in answer.decode()
    assert "Python" not in answer.decode()


async def test_a_page_has_its_own_policy_unless_the_file_has_one(tmp_path: Path) -> None:
    """The operator's policy overrides the page's own; an empty one means none."""

    async def own_policy(_request: web.Request) -> web.Response:
        policy = {"Content-Security-Policy": "default-src 'self'"}
        return web.Response(text="page", headers=policy)

    headers = {"X-Frame-Options": "sameorigin", "Content-Security-Policy": ""}
    file = web_file(tmp_path, http_server_config={"headers": headers})
    async with serving(own_policy, web_config_file=file) as served:
        _, text = await get(served.url)
        assert text["Content-Security-Policy"] == "default-src 'self'"
        assert text["X-Frame-Options"] == "sameorigin"
        headers["Content-Security-Policy"] = "default-src 'none'"
        web_file(tmp_path, http_server_config={"headers": headers})
        served.server.look()
        answer = (await exchange(served.url, CLOSING)).decode()
        assert answer.count("Content-Security-Policy: default-src 'none'\r\n") == 1
        assert answer.count("Content-Security-Policy") == 1
        assert answer.count("X-Frame-Options: sameorigin\r\n") == 1
        assert answer.count("X-Frame-Options") == 1


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (basic("alice:a:b"), ("alice", b"a:b")),
        (basic("alïce:ü").replace("Basic", "bAsIc"), ("alïce", "ü".encode())),
        (basic(":"), ("", b"")),
        (basic(b"alice:\xff"), ("alice", b"\xff")),
        (basic(b"\xff:x"), None),
        (basic("alice"), None),
        ("Basic", None),
        ("Basic ???", None),
        ("Basic äöü", None),
        ("Bearer abc", None),
        ("", None),
    ],
)
def test_credentials(header: str, expected: tuple[str, bytes] | None) -> None:
    """Credentials are read by RFC 7617, and any others are none."""
    assert credentials(header) == expected


async def test_every_path_needs_the_password(tmp_path: Path) -> None:
    """Every path needs the password, so that a refused client learns nothing from health checks or unknown paths."""
    async with serving(web_config_file=web_file(tmp_path, **USERS)) as served:
        for path in ("/", "/-/healthy", "/nope"):
            status, headers = await get(served.url + path)
            assert status == 401
            challenge = headers["WWW-Authenticate"]
            assert challenge == 'Basic realm="quotascope", charset="UTF-8"'
        assert (await get(served.url + "/-/healthy", RIGHT))[0] == 200


async def test_wrong_passwords_are_logged_once_a_minute(tmp_path: Path) -> None:
    """Wrong passwords are logged once a minute with the address, without the name or the password."""
    with capture_logs() as lines:
        async with serving(web_config_file=web_file(tmp_path, **USERS)) as served, aiohttp.ClientSession() as session:
            for user in ("prometheus", "hunter2"):
                wrong = {"Authorization": basic(f"{user}:hunter2")}
                async with session.get(served.url, headers=wrong) as answer:
                    assert answer.status == 401
                    assert "hunter2" not in await answer.text()
    (line,) = [line for line in lines if line["event"] == "logins were refused"]
    assert line["address"] == "127.0.0.1"
    assert "hunter2" not in str(lines)


async def test_users_change_without_a_restart(tmp_path: Path) -> None:
    """Changed users count after the next look at the file; a broken file leaves the users as they were."""
    file = web_file(tmp_path, **USERS)
    statuses = []
    with capture_logs() as lines:
        async with serving(web_config_file=file) as served:
            statuses.append((await get(served.url, RIGHT))[0])
            for text in (f"basic_auth_users: {{another: {HASH}}}", "basic_auth_users: [", "basic_auth_users: {}"):
                file.write_text(text)
                served.server.look()
                statuses.append((await get(served.url, RIGHT))[0])
    assert statuses == [200, 401, 401, 401]
    assert sum("the last good one stays" in line["event"] for line in lines) == 2


async def test_too_many_logins_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login that cannot be checked now may be tried again soon."""
    go = asyncio.Event()

    async def slow(*_: object) -> bool:
        await go.wait()
        return False

    async def ask(url: str) -> tuple[int, str | None]:
        status, headers = await get(url, {"Authorization": basic("prometheus:hunter2")})
        go.set()
        return status, headers.get("Retry-After")

    monkeypatch.setattr("quotascope.exporter.web.passwords.asyncio.to_thread", slow)
    async with serving(web_config_file=web_file(tmp_path, **USERS)) as served:
        answers = await asyncio.gather(*(ask(served.url) for _ in range(6)))
    assert sorted(answers, key=str) == [(401, None)] * 5 + [(503, "1")]
