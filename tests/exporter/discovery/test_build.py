from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.builders.agents import answered_by
from tests.exporter.examples import ScriptedSource
from tests.exporter.recorded import CAPTURES, jolokia_bytes

from quotascope.exporter.config import Dialect, SourceConfig
from quotascope.exporter.discovery.build import build_source, build_sources
from quotascope.exporter.errors import ConfigError, SourceDenied, SourceError, SourceUnreachable, SourceUnreadable
from quotascope.exporter.sources.dialects import BY_NAME
from quotascope.exporter.sources.source import DetectedSource


def source(**keys: Any) -> SourceConfig:
    settings = {"dialect": "jolokia", "url": "http://broker-1:8778/jolokia", **keys}
    return SourceConfig.model_validate(settings)


URLS = {
    "http://b:8778/jolokia": "jolokia",
    "http://b:8161/actuator/jolokia/?ttl=1": "jolokia",
    "http://b:9404/metrics": "prometheus",
    "http://jolokia:9404/": "prometheus",
}
FORCED = [(source(dialect=dialect), dialect) for dialect in (Dialect.JOLOKIA, Dialect.PROMETHEUS, *BY_NAME)]


@pytest.mark.parametrize(
    ("config", "dialect"),
    [
        *FORCED,
        (source(dialect=Dialect.JMX_EXPORTER), "prometheus"),  # of old configurations: leaves it to detection
        *((SourceConfig(url=url), likely) for url, likely in URLS.items()),
    ],
)
def test_dialects(config: SourceConfig, dialect: str) -> None:
    """A dialect can be forced; otherwise Jolokia is tried first only where the path names it."""
    built = build_source(config)
    assert (built.name, built.dialect) == (config.label, dialect)


async def test_credentials_and_headers_are_sent(tmp_path: Path) -> None:
    """Password and header values, from the configuration or from files, reach the agent, in UTF-8; gzip is accepted."""
    seen: dict[str, str] = {}

    async def refuse(request: web.Request) -> web.Response:
        seen.update(request.headers)
        return web.Response(status=403)

    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text("pẃ\n")
    token.write_text("abc\r\n")
    async with answered_by(refuse) as server:
        built = build_source(
            source(
                url=str(server.make_url("/jolokia")),
                basic_auth={"username": "me", "password_file": password},
                headers={"X-One": "1"},
                header_files={"X-Token": token},
            )
        )
        with pytest.raises(SourceDenied):
            await built.read()
        await built.close()
    assert seen["Authorization"] == "Basic bWU6cOG6gw=="
    assert (seen["X-One"], seen["X-Token"], seen["Accept-Encoding"]) == ("1", "abc", "gzip")


def test_files_that_cannot_be_used_are_reported(tmp_path: Path) -> None:
    """Problems of all sources are reported at once, none of them with a secret in it."""
    broken, binary, missing = (tmp_path / name for name in ("ca.pem", "token", "gone"))
    broken.write_text("no certificate")
    binary.write_bytes(b"\xff")
    missing.touch()
    configs = [
        source(name="a", tls={"ca_file": broken}),
        source(name="b", tls={"cert_file": broken, "key_password": "hunter2"}),
        source(name="c", header_files={"X-Token": binary}),
        source(name="d", headers={"X-Token": "hunter2\r\nX-Evil: 1"}),
        source(name="e", basic_auth={"username": "u", "password_file": missing}),
    ]
    missing.unlink()
    with pytest.raises(ConfigError) as caught:
        build_sources(configs)
    authority, certificate, *other_problems = caught.value.problems
    assert authority.startswith(f"source 'a': the CA file {broken} cannot be used: ")
    assert certificate.startswith(f"source 'b': the client certificate {broken} cannot be used")
    assert "hunter2" not in certificate
    assert other_problems == [
        f"source 'c': {binary} is not UTF-8 text",
        "source 'd': the value of the header X-Token holds control characters",
        "source 'e': the file cannot be read: No such file or directory",
    ]


def way(dialect: str, error: SourceError | None = None) -> ScriptedSource:
    source = ScriptedSource("b", dialect=dialect)
    source.error = error
    return source


async def test_what_works_is_kept() -> None:
    """
    The dialect that worked last is tried first.

    An agent that was replaced by one of the other kind is read without a restart.
    """
    text, jolokia = way("prometheus", SourceUnreadable("no text")), way("jolokia")
    source = DetectedSource(text, jolokia)
    assert source.dialect == "prometheus"
    for _ in range(2):
        assert await source.read() is jolokia.table
    assert (source.dialect, text.reads, jolokia.reads) == ("jolokia", 1, 2)
    text.error, jolokia.error = None, SourceUnreadable("no list")
    assert await source.read() is text.table
    assert source.dialect == "prometheus"
    await source.close()
    assert (text.closed, jolokia.closed) == (1, 1)


NO_TEXT, DOWN, DENIED = SourceUnreadable("a"), SourceUnreachable("a"), SourceDenied("a")


@pytest.mark.parametrize(
    ("likely", "other_error", "reads"),
    [(NO_TEXT, SourceUnreadable("b"), 1), (NO_TEXT, SourceDenied("b"), 1), (DOWN, None, 0), (DENIED, None, 0)],
    ids=["neither", "other denied", "down", "denied"],
)
async def test_the_likelier_error_is_reported(likely: SourceError, other_error: SourceError | None, reads: int) -> None:
    """An error that does not depend on the dialect is reported without trying the other one."""
    second = way("y", other_error)
    source = DetectedSource(way("x", likely), second)
    with pytest.raises(type(likely), match=r"^a$"):
        await source.read()
    assert (source.dialect, second.reads) == ("x", reads)


@pytest.mark.parametrize("path", ["/", "/jolokia", "/metrics"])
@pytest.mark.parametrize(
    ("body", "dialect"),
    [
        (jolokia_bytes("dialects/jolokia2.json"), "jolokia"),
        ((CAPTURES / "dialects/jmx_default.txt").read_bytes(), "jmx_default"),
    ],
    ids=["jolokia", "text"],
)
async def test_recorded_agents_are_distinguished_at_any_path(path: str, body: bytes, dialect: str) -> None:
    """Agents are distinguished at any path; an unusual one costs a request with another answer, and no more."""

    async def answer(request: web.Request) -> web.Response:
        is_read = request.method == "POST" or dialect != "jolokia"
        return web.Response(body=body if is_read else b'{"status": 200}')

    async with answered_by(answer) as server:
        source = build_source(SourceConfig(url=str(server.make_url(path)), node_id=1))
        try:
            table = await source.read()
        finally:
            await source.close()
    assert table.layout.columns
    assert source.dialect == dialect


async def test_both_ways_share_one_deadline() -> None:
    """Both dialects share one deadline, also if the first one uses it up."""
    endless = way("jolokia")
    endless.answers.clear()
    source = DetectedSource(way("prometheus", SourceUnreadable("no text")), endless, timeout_seconds=0.0)
    with pytest.raises(SourceUnreadable, match="no text"):
        await source.read()
    assert source.dialect == "prometheus"
