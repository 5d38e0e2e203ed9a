from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs
from tests.cluster.certificates import Certificates
from tests.exporter.examples import ScriptedSource, exporter_of
from tests.exporter.web.serving import ASK, CLOSING, HASH, PASSWORD, connected, exchange, serving, tls_section, web_file

from quotascope.exporter.config import Config, ServerConfig
from quotascope.exporter.errors import CannotListen, ConfigError
from quotascope.exporter.web import HttpServer
from quotascope.exporter.web.connection import provide_connections
from quotascope.exporter.web.server import url_of


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("0.0.0.0", "http://127.0.0.1:1"),  # noqa: S104 - compared, not bound
        ("::", "http://[::1]:1"),
        ("::1", "http://[::1]:1"),
        ("10.1.2.3", "http://10.1.2.3:1"),
    ],
)
def test_url_can_be_opened(address: str, expected: str) -> None:
    """The URL in the log can be opened on this machine, whatever the exporter listens on."""
    assert url_of("http", address, 1) == expected


async def curl(*arguments: str) -> tuple[int, str]:
    """Return the exit code of the real curl, and the status that it got."""
    process = await asyncio.create_subprocess_exec(
        "curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *arguments,
        stdout=asyncio.subprocess.PIPE
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_tls_certificate_and_password_by_curl(tmp_path: Path, certificates: Certificates) -> None:
    """The program curl passes TLS, a client certificate and a password at once."""
    section = tls_section(
        certificates, client_ca_file=str(certificates.ca), client_auth_type="RequireAndVerifyClientCert"
    )
    file = web_file(tmp_path, **section, basic_auth_users={"prometheus": HASH})
    trust = ("--cacert", str(certificates.ca))
    options = ("--cert", str(certificates.client), "--key", str(certificates.client_key))
    login = ("--user", f"prometheus:{PASSWORD}")
    async with serving(web_config_file=file) as served:
        assert await curl(*trust, *options, *login, served.url) == (0, "200")
        assert await curl(*trust, *options, served.url) == (0, "401")
        assert (await curl(*trust, *login, served.url))[1] == "000"
        assert (await curl(*options, *login, served.url))[0] == 60  # not trusted


async def test_all_that_a_name_stands_for() -> None:
    """A name is looked up; the log says who may ask."""
    with capture_logs() as lines:
        async with serving(address="localhost") as served:
            assert b"hello" in await exchange(served.url, CLOSING)
    assert lines[0] == {"event": "listening", "log_level": "info", "url": served.url, "users": "anybody"}


async def test_an_application_that_cannot_be_set_up_keeps_no_port() -> None:
    """The port is free again once the server is closed."""

    async def broken(_app: web.Application) -> None:
        raise ZeroDivisionError

    with socket.create_server(("127.0.0.1", 0)) as free_socket:
        port = free_socket.getsockname()[1]
    app = web.Application()
    app.on_startup.append(broken)
    http = HttpServer(ServerConfig(address="127.0.0.1", port=port))
    with pytest.raises(ZeroDivisionError):
        await http.open(app, 1.0)
    await http.close()
    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "Address already in use"),
        ("203.0.113.1", "Cannot assign requested address"),  # for documentation
        ("nobody.invalid", ""),
        ("a" * 100, ""),
        ("a..b", ""),
    ],
)
async def test_an_address_that_cannot_be_had(address: str, reason: str) -> None:
    """A taken port and an unknown or invalid name are one sentence each, and no socket stays open."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        http = HttpServer(ServerConfig(address=address, port=port))
        message = f"^cannot listen on {address} port {port}: {reason}"
        with pytest.raises(CannotListen, match=message):
            await http.open(web.Application(), 1.0)
        await http.close()


async def test_several_addresses_are_listened_on() -> None:
    """Addresses of IPv4 and IPv6 are opened in the order of the configuration. If one fails, none stays open."""
    with capture_logs() as logs:
        async with serving(listen_addresses=["127.0.0.1:0", "[::1]:0", ":0"]) as served:
            urls = [line["url"] for line in logs if line["event"] == "listening"]
            async with aiohttp.ClientSession() as session:
                for url in urls:
                    async with session.get(url) as answer:
                        assert await answer.text() == "hello"
    assert served.url == urls[0]
    hosts = [url.rpartition(":")[0] for url in urls]
    assert (hosts[:2], len(hosts)) == (["http://127.0.0.1", "http://[::1]"], 3)
    port = int(urls[1].rpartition(":")[2])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"^cannot listen on 127.0.0.1 port {taken_port}: "):
            async with serving(listen_addresses=[f"[::1]:{port}", f"127.0.0.1:{taken_port}"]):
                pass
    socket.create_server(("::1", port), family=socket.AF_INET6).close()


def test_a_web_config_file_is_checked_at_once(tmp_path: Path) -> None:
    """A web file is checked before the server listens."""
    config = ServerConfig(web_config_file=web_file(tmp_path, basic_auth_user={}))
    with pytest.raises(ConfigError, match="unknown key 'basic_auth_user'"):
        HttpServer(config)


async def test_the_end_cuts_off_who_only_waits(tmp_path: Path, certificates: Certificates) -> None:
    """A handshake that was begun, and an idle connection, keep nothing running."""
    file = web_file(tmp_path, **tls_section(certificates))
    async with (
        serving(web_config_file=file) as guarded,
        serving() as plain,
        connected(guarded.url),
        connected(plain.url) as (reader, write),
    ):
        write.write(ASK)
        await reader.readuntil(b"hello")
        await plain.server.close()
        await guarded.server.close()
        assert await reader.read() == b""
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    "head",
    [
        "GET /metrics?target={url}&url={url}&scraper={url} HTTP/1.1\r\nHost: localhost",
        "GET /probe?target={url} HTTP/1.1\r\nHost: localhost",
        "GET /api/v1/entities?broker={url}&q={url} HTTP/1.1\r\nHost: localhost",
        "GET {url}/metrics HTTP/1.1\r\nHost: localhost",
        "CONNECT {place} HTTP/1.1\r\nHost: localhost",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: {place}\r\nReferer: {url}",
    ],
)
async def test_nothing_in_a_request_makes_it_ask_anyone(head: str) -> None:
    """No request makes the exporter connect to an address that is not configured."""
    source = ScriptedSource()
    server = {"address": "127.0.0.1", "port": 0}
    with socket.create_server(("127.0.0.1", 0)) as bait:
        bait.setblocking(False)  # noqa: FBT003 - socket's own
        place = f"127.0.0.1:{bait.getsockname()[1]}"
        text = head.format(url=f"http://{place}", place=place)
        config = Config.model_validate({"server": server})
        async with exporter_of(config, [source], None) as exporter:
            await exporter.snapshot()
            ask = f"{text}\r\nConnection: close\r\n\r\n".encode()
            assert (await exchange(exporter.url, ask)).startswith(b"HTTP/1.1 ")
        with pytest.raises(BlockingIOError):
            bait.accept()


@pytest.mark.slow
async def test_few_files_may_be_opened(tmp_path: Path) -> None:
    """With `ulimit -n 64` and more idle connections, scrapes are answered, and the log says what is missing."""
    config = tmp_path / "quotascope.yaml"
    config.write_text(
        "server: {address: 127.0.0.1, port: 0}\nsources: [{url: 'http://127.0.0.1:1/metrics'}]\nlog: {format: json}\n"
    )
    ask = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", 'ulimit -n 64; exec "$@"', "-", str(Path(sys.executable).with_name("quotascope")), "serve",
        "--config", str(config),
        stderr=asyncio.subprocess.PIPE
    )  # fmt: skip
    lines: list[dict[str, Any]] = []
    try:
        assert process.stderr is not None
        while not any("url" in line for line in lines):
            lines.append(json.loads(await process.stderr.readline()))
        async with AsyncExitStack() as idle:
            for _ in range(80):
                await idle.enter_async_context(connected(lines[-1]["url"]))
            for _ in range(5):
                answer = await exchange(lines[-1]["url"], ask)
                assert answer.startswith(b"HTTP/1.1 200 ")
    finally:
        process.terminate()
        await process.communicate()
    assert process.returncode == 0
    (warning,) = [line for line in lines if "open_files" in line]
    assert (warning["connections"], warning["open_files"]) == (32, 64)
    assert "ulimit -n" in warning["advice"]


async def test_without_a_descriptor_the_longest_waiting_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Without a free descriptor the longest idle connection is closed, or scrapes would wait for minutes.

    The log has the reason, and the server tries again a moment later.
    """
    accept, scarce = socket.socket.accept, False

    def failing(self: socket.socket) -> tuple[socket.socket, object]:
        if scarce:
            raise OSError(24, "Too many open files")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)
    monkeypatch.setattr("asyncio.constants.ACCEPT_RETRY_DELAY", 0.05)
    with capture_logs() as lines:
        async with serving() as served, connected(served.url) as (idle, write):
            write.write(ASK)
            await idle.readuntil(b"hello")
            scarce = True
            async with connected(served.url) as (reader, newer):
                assert await idle.read() == b""
                scarce = False
                newer.write(ASK)
                await reader.readuntil(b"hello")
    errors = [line["reason"] for line in lines if line["log_level"] == "error"]
    assert errors == ["Too many open files"]


async def test_other_errors_of_the_loop_are_logged_as_asyncio_does(caplog: pytest.LogCaptureFixture) -> None:
    """Errors of the loop that do not concern accepting are logged as asyncio does."""
    loop = asyncio.get_running_loop()
    async with serving():
        loop.call_exception_handler({"message": "something else"})
        assert loop.get_exception_handler() is not None
    assert "something else" in caplog.text
    assert loop.get_exception_handler() is None


@pytest.mark.parametrize(
    ("soft", "hard", "expected", "raised"),
    [
        (1024, 4096, 512, []),
        (256, 4096, 512, [(1024, 4096)]),
        (256, 600, 300, [(600, 600)]),
        (256, -1, 512, [(1024, -1)]),
        (-1, -1, 512, []),
        (1, 1, 1, [(1, 1)]),
    ],
)
def test_connections_within_the_limit_of_files(
    soft: int, hard: int, expected: int, raised: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections take half of the files; the soft limit is raised as far as the hard one permits."""
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: changed.append(pair))
    with capture_logs() as lines:
        assert provide_connections(512) == expected
    assert changed == raised
    assert bool(lines) is (expected < 512)
