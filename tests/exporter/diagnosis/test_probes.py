"""The doctor's tries over the network, against servers of this process."""

from __future__ import annotations

import asyncio
import resource
import socket
from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.builders.agents import answered_by
from tests.exporter.examples import NOW

from quotascope.exporter.config import OtlpConfig, OtlpProtocol, ServerConfig, SourceConfig
from quotascope.exporter.diagnosis.catalog import Finding
from quotascope.exporter.diagnosis.probes import clock_compared, clocks, listening, receiver
from quotascope.exporter.errors import ConfigError


@pytest.mark.parametrize(
    ("off", "code", "text"),
    [
        (-2.0, "clock_agrees", "agrees with this machine's."),
        (0.0, "clock_agrees", "agrees with this machine's."),
        (2.0, "clock_agrees", "agrees with this machine's."),
        (-60.0, "clock_off", "is 59.0 s behind this machine's."),
        (60.0, "clock_off", "is 59.5 s ahead of this machine's."),
    ],
)
def test_clocks_are_compared(off: float, code: str, text: str) -> None:
    """The header has no fractions and the answer took half a second: a skew is at least as large as shown."""
    finding = clock_compared("a", formatdate(NOW + off, usegmt=True), NOW, NOW + 0.5)
    assert finding is not None
    assert (finding.code, finding.text) == (code, f"The clock of source 'a' {text}")


@pytest.mark.parametrize("date", [None, "", "soon", "Mon, 99 Foo 2026", f"Mon, 01 Jan {10**20} 00:00:00 GMT"])
def test_agents_that_send_no_time_are_left_out(date: str | None) -> None:
    """The clock of an agent that sends no time is called neither right nor wrong."""
    assert clock_compared("a", date, NOW, NOW) is None


async def test_any_answer_has_the_time(tmp_path: Path) -> None:
    """Clocks are compared without credentials, by refusals as well; a bad TLS file concerns its own source only."""
    seen: list[str | None] = []

    async def refuse(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        date = formatdate(NOW + 100, usegmt=True)
        return web.Response(status=401, headers={"Date": date})

    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    async with answered_by(refuse) as server:
        url = str(server.make_url("/jolokia"))
        reachable = SourceConfig.model_validate({"url": url, "basic_auth": {"username": "me", "password": "pw"}})
        broken = SourceConfig.model_validate({"url": "https://127.0.0.1:1", "tls": {"ca_file": bad}})
        silent = SourceConfig(url="http://127.0.0.1:1/")
        first_finding, second = await clocks([broken, reachable, silent], lambda: NOW)
    assert (first_finding.subject, first_finding.code) == (broken.label, "clock_unreadable")
    assert str(bad) in first_finding.text
    assert (second.subject, second.code) == (reachable.label, "clock_off")
    assert seen == [None]


async def listened(port: int, address: str = "127.0.0.1") -> str:
    (finding,) = await listening(ServerConfig(address=address, port=port))
    return finding.code


async def test_an_address_to_listen_on() -> None:
    """
    The address to listen on is tried and freed again.

    The last one is for documentation (RFC 5737), so that no machine has it.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    assert [await listened(port) for _ in range(2)] == ["port_free", "port_free"]
    assert await listened(0) == "port_any"
    assert await listened(9749, "203.0.113.1") == "cannot_listen"


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [(200, "healthy\n", "port_served"), (401, "who are you", "port_served_probably"), (200, "<html>", "port_taken")],
)
async def test_a_port_that_is_taken(status: int, text: str, code: str) -> None:
    """The server on a port that is in use is asked if it is the exporter itself."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    async with answered_by(answer) as server:
        assert server.port is not None
        assert await listened(server.port) == code


async def test_a_web_config_file(tmp_path: Path) -> None:
    """
    A mistake in the web file, which would keep the exporter from starting, is a finding.

    With TLS of its own, a server that does not answer may be this exporter.
    """
    file = tmp_path / "web.yaml"

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        file.touch()
        config = ServerConfig(address="127.0.0.1", port=port, web_config_file=file)
        (finding,) = await listening(config)
        file.write_text("tls_server_confg: {}")
        with pytest.raises(ConfigError, match="tls_server_confg"):
            await listening(config)
    assert finding.code == "port_taken_perhaps"


@pytest.mark.parametrize(("hard", "connections", "few"), [(64, 512, True), (64, 32, False), (-1, 512, False)])
async def test_too_few_open_files(monkeypatch: pytest.MonkeyPatch, hard: int, connections: int, *, few: bool) -> None:
    """The finding counts the connections that the exporter would have, and the files that they need."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, hard))
    _, *findings = await listening(ServerConfig(port=0, max_connections=connections))
    assert [finding.code for finding in findings] == ["too_few_files"] * few
    for finding in findings:
        assert "Only 32 connections can be open at once instead of 512" in finding.text
        assert "(ulimit -n, LimitNOFILE= of systemd) to 1024" in finding.advice


@pytest.mark.parametrize(
    ("status", "code"), [(200, "push_accepted"), (401, "push_denied"), (404, "push_refused"), (500, "push_refused")]
)
async def test_an_empty_push(status: int, code: str) -> None:
    """An empty push goes to the receiver of pushes, with their headers."""
    seen: list[tuple[str, str, bytes]] = []

    async def answer(request: web.Request) -> web.Response:
        token = request.headers["X-Token"]
        seen.append((request.path, token, await request.read()))
        return web.Response(status=status)

    async with answered_by(answer) as server:
        settings = {"endpoint": str(server.make_url("/")), "headers": {"X-Token": "t"}}
        (finding,) = await receiver(OtlpConfig.model_validate(settings), {})
    assert finding.code == code
    assert seen == [("/v1/metrics", "t", b"")]


async def grpc_or_http(endpoint: str, protocol: OtlpProtocol) -> Finding:
    (finding,) = await receiver(OtlpConfig(endpoint=endpoint, protocol=protocol), {})
    return finding


@pytest.mark.parametrize("protocol", list(OtlpProtocol))
async def test_a_receiver_that_does_not_run(protocol: OtlpProtocol) -> None:
    """The reason, and no more of the URL than may be shown."""
    finding = await grpc_or_http("http://127.0.0.1:1/x?key=s3cret", protocol)
    assert finding.code == "push_unreachable"
    assert "Connection refused" in finding.text
    assert "s3cret" not in finding.text


async def test_grpc_is_only_connected_to() -> None:
    """A gRPC receiver is only connected to; the first push shows whether it accepts metrics."""
    async with TestServer(web.Application()) as server:
        finding = await grpc_or_http(str(server.make_url("/")), OtlpProtocol.GRPC)
    assert finding.code == "push_connects"


async def test_a_file_that_cannot_be_used() -> None:
    """A certificate that is missing is a mistake of the configuration."""
    with pytest.raises(ConfigError, match="/nowhere"):
        await receiver(OtlpConfig(), {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"})
