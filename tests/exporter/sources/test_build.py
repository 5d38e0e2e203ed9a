from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from quotascope.exporter.config import Dialect, SourceConfig
from quotascope.exporter.errors import ConfigError, SourceDenied
from quotascope.exporter.sources.build import build_source, build_sources
from quotascope.exporter.sources.dialects import DIALECTS


def source(**keys: Any) -> SourceConfig:
    """A Jolokia source with these keys."""
    given = {"dialect": "jolokia", "url": "http://broker-1:8778/jolokia", **keys}
    return SourceConfig.model_validate(given)


URLS = {
    "http://b:8778/jolokia": "jolokia",
    "http://b:8161/actuator/jolokia/?ttl=1": "jolokia",
    "http://b:9404/metrics": "prometheus",
    "http://jolokia:9404/": "prometheus",
}
FORCED = [(source(dialect=dialect), dialect) for dialect in sorted({*Dialect} - {Dialect.AUTO, Dialect.JMX_EXPORTER})]


@pytest.mark.parametrize(
    ("config", "dialect"),
    [
        *FORCED,
        (source(dialect=Dialect.JMX_EXPORTER), "prometheus"),  # of old configurations: leaves it to detection
        *((SourceConfig(url=url), likely) for url, likely in URLS.items()),
    ],
)
def test_dialects(config: SourceConfig, dialect: str) -> None:
    """Each can be forced; without one, Jolokia is tried first only where the path names it."""
    built = build_source(config)
    assert (built.name, built.dialect) == (config.label, dialect)


def test_the_configuration_knows_every_dialect() -> None:
    """What can be detected can also be forced."""
    assert {dialect.name for dialect in DIALECTS} <= set(Dialect)


async def test_credentials_and_headers_are_sent(tmp_path: Path) -> None:
    """Password and header values, from the configuration or from files, reach the agent."""
    seen: dict[str, str] = {}

    async def refuse(request: web.Request) -> web.Response:
        seen.update(request.headers)
        return web.Response(status=403)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text("pw\n")
    token.write_text("abc\r\n")
    async with TestServer(app) as server:
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
    assert seen["Authorization"] == "Basic bWU6cHc="
    assert (seen["X-One"], seen["X-Token"]) == ("1", "abc")


def test_files_that_cannot_be_used_are_reported(tmp_path: Path) -> None:
    """Problems of all sources at once, none of them with a secret in it."""
    broken, binary, gone = (tmp_path / name for name in ("ca.pem", "token", "gone"))
    broken.write_text("no certificate")
    binary.write_bytes(b"\xff")
    gone.touch()
    configs = [
        source(name="a", tls={"ca_file": broken}),
        source(name="b", tls={"cert_file": broken, "key_password": "hunter2"}),
        source(name="c", header_files={"X-Token": binary}),
        source(name="d", headers={"X-Token": "hunter2\r\nX-Evil: 1"}),
        source(name="e", basic_auth={"username": "u", "password_file": gone}),
    ]
    gone.unlink()
    with pytest.raises(ConfigError) as caught:
        build_sources(configs)
    authority, certificate, *others = caught.value.problems
    assert authority.startswith(f"source 'a': the CA file {broken} cannot be used: ")
    assert certificate.startswith(f"source 'b': the client certificate {broken} cannot be used")
    assert "hunter2" not in certificate
    assert others == [
        f"source 'c': {binary} is not UTF-8 text",
        "source 'd': the value of the header X-Token holds control characters",
        f"source 'e': {gone} cannot be read: No such file or directory",
    ]
