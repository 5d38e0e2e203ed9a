from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from quotascope.exporter.config import OtlpConfig, OtlpProtocol
from quotascope.exporter.doctor import Result, Verdict
from quotascope.exporter.doctor.receiver import receiver
from quotascope.exporter.errors import ConfigError


async def judged(status: int, seen: list[str] | None = None) -> Result:
    """What is found where requests get this status."""

    async def answer(request: web.Request) -> web.Response:
        if seen is not None:
            seen.append(f"{request.path} {request.headers['X-Token']}")
        assert await request.read() == b""
        return web.Response(status=status)

    app = web.Application()
    app.router.add_post("/v1/metrics", answer)
    async with TestServer(app) as server:
        given = {"endpoint": str(server.make_url("/")), "headers": {"X-Token": "t"}}
        (result,) = await receiver(OtlpConfig.model_validate(given), {})
    return result


async def test_an_empty_push_is_taken() -> None:
    """It goes where pushes go, with their headers."""
    seen: list[str] = []
    result = await judged(200, seen)
    assert result.verdict is Verdict.FINE
    assert seen == ["/v1/metrics t"]


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "headers"), (404, "4317"), (500, "4317")]
)
async def test_a_push_that_is_not(status: int, advice: str) -> None:
    """The status, and which setting to look at."""
    result = await judged(status)
    assert result.verdict is Verdict.BROKEN
    assert f"HTTP {status}" in result.text
    assert advice in result.advice


@pytest.mark.parametrize("protocol", list(OtlpProtocol))
async def test_nobody_listens(protocol: OtlpProtocol) -> None:
    """The reason, and no more of the URL than may be shown."""
    config = OtlpConfig(endpoint="http://127.0.0.1:1/x?key=s3cret", protocol=protocol)
    (result,) = await receiver(config, {})
    assert result.verdict is Verdict.BROKEN
    assert "Connection refused" in result.text
    assert "s3cret" not in result.text


async def test_grpc_is_only_connected_to() -> None:
    """Whether it takes pushes shows with the first."""
    async with TestServer(web.Application()) as server:
        endpoint = str(server.make_url("/"))
        config = OtlpConfig(endpoint=endpoint, protocol=OtlpProtocol.GRPC)
        (result,) = await receiver(config, {})
    assert result.verdict is Verdict.FINE


async def test_a_file_that_cannot_be_used() -> None:
    """A certificate that is missing is a mistake of the configuration."""
    with pytest.raises(ConfigError, match="/nowhere"):
        await receiver(OtlpConfig(), {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"})
