from __future__ import annotations

import asyncio
import resource
import socket
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from quotascope.exporter.config import ServerConfig
from quotascope.exporter.doctor import Result, Verdict
from quotascope.exporter.doctor.listening import listening
from quotascope.exporter.errors import ConfigError


async def judged(port: int, address: str = "127.0.0.1") -> Result:
    """What is found there."""
    (result,) = await listening(ServerConfig(address=address, port=port))
    return result


async def test_a_free_port() -> None:
    """It is free afterwards as well."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    for _ in range(2):
        result = await judged(port)
        assert result.verdict is Verdict.FINE
        assert "is free" in result.text
    assert (await judged(0)).verdict is Verdict.FINE


async def test_an_address_of_another_machine() -> None:
    """Nobody has the one that is tried: it is for documentation."""
    result = await judged(9749, "203.0.113.1")
    assert result.verdict is Verdict.BROKEN
    assert "Cannot assign requested address" in result.text


@pytest.mark.parametrize(
    ("status", "text", "verdict", "found"),
    [
        (200, "healthy\n", Verdict.FINE, "An exporter runs already"),
        (401, "who are you", Verdict.NOTE, "wants a password"),
        (200, "<html>", Verdict.BROKEN, "Another program has"),
    ],
)
async def test_a_port_that_is_taken(
    status: int, text: str, verdict: Verdict, found: str
) -> None:
    """Who has it is asked: usually it is the exporter itself."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    app = web.Application()
    app.router.add_get("/-/healthy", answer)
    async with TestServer(app, host="127.0.0.1") as server:
        assert server.port is not None
        result = await judged(server.port)
    assert result.verdict is verdict
    assert found in result.text


async def test_a_mistake_in_the_web_config_file(tmp_path: Path) -> None:
    """It would keep the exporter from starting."""
    file = tmp_path / "web.yaml"
    file.write_text("tls_server_confg: {}")
    config = ServerConfig(address="127.0.0.1", port=0, web_config_file=file)
    with pytest.raises(ConfigError, match="tls_server_confg"):
        await listening(config)


async def test_who_wants_a_certificate_cannot_be_asked(tmp_path: Path) -> None:
    """With TLS of our own, a port that is taken by who does not answer is no proof of trouble."""
    file = tmp_path / "web.yaml"
    file.touch()

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        config = ServerConfig(address="127.0.0.1", port=port, web_config_file=file)
        (result,) = await listening(config)
    assert result.verdict is Verdict.NOTE


async def test_too_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the exporter would have, and how many files that takes."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    _, files = await listening(ServerConfig(port=0, max_connections=512))
    assert files.verdict is Verdict.LOOK
    assert "Only 32 connections can be open at once instead of 512" in files.text
    assert "(ulimit -n, LimitNOFILE= of systemd) to 1024" in files.advice
    for hard, most in ((64, 32), (-1, 512)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, hard=hard: (64, hard))
        config = ServerConfig(port=0, max_connections=most)
        assert [each.verdict for each in await listening(config)] == [Verdict.FINE]
