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
from quotascope.exporter.sources.jolokia import JolokiaSource
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource


def source(**keys: Any) -> SourceConfig:
    """A Jolokia source with these keys."""
    given = {"dialect": "jolokia", "url": "http://broker-1:8778/jolokia", **keys}
    return SourceConfig.model_validate(given)


def test_dialects() -> None:
    """Jolokia has its source, text another; without a name they are called by host and port."""
    jolokia, text = build_sources([source(), source(dialect="prometheus", name="b2", node_id=2)])
    assert isinstance(jolokia, JolokiaSource)
    assert (jolokia.name, jolokia.dialect) == ("broker-1:8778", "jolokia")
    assert isinstance(text, PrometheusTextSource)
    assert (text.name, text.dialect) == ("b2", "prometheus")


@pytest.mark.parametrize("dialect", sorted(set(Dialect) - {Dialect.AUTO, Dialect.JOLOKIA, Dialect.PROMETHEUS}))
def test_a_dialect_of_text_can_be_forced(dialect: str) -> None:
    """Each has its own name; `jmx_exporter`, of old configurations, leaves it to detection."""
    shown = "prometheus" if dialect == "jmx_exporter" else dialect
    assert build_source(source(dialect=dialect)).dialect == shown


@pytest.mark.parametrize(
    ("url", "likely"),
    [
        ("http://b:8778/jolokia", "jolokia"),
        ("http://b:8161/actuator/jolokia/?ttl=1", "jolokia"),
        ("http://b:9404/metrics", "prometheus"),
        ("http://jolokia:9404/", "prometheus"),
    ],
)
def test_the_path_says_what_is_tried_first(url: str, likely: str) -> None:
    """Without a dialect, Jolokia is the likelier one only where the path names it."""
    config = SourceConfig(url=url)
    assert (build_source(config).name, build_source(config).dialect) == (
        config.label,
        likely,
    )


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
        source(name="b", header_files={"X-Token": binary}),
        source(name="c", headers={"X-Token": "hunter2\r\nX-Evil: 1"}),
        source(name="d", basic_auth={"username": "u", "password_file": gone}),
    ]
    gone.unlink()
    with pytest.raises(ConfigError) as caught:
        build_sources(configs)
    first, *others = caught.value.problems
    assert first.startswith(f"source 'a': the CA file {broken} cannot be used: ")
    assert others == [
        f"source 'b': {binary} is not UTF-8 text",
        "source 'c': the value of the header X-Token holds control characters",
        f"source 'd': {gone} cannot be read: No such file or directory",
    ]


def test_certificate_without_key_is_reported(tmp_path: Path) -> None:
    """A client certificate must be one."""
    cert = tmp_path / "cert.pem"
    cert.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"the client certificate .*cert\.pem cannot be used"):
        build_source(source(tls={"cert_file": cert, "key_password": "pw"}))
