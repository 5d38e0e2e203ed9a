"""An agent of which only the URL is known."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.exporter.examples import ScriptedSource
from tests.exporter.recorded import CAPTURES, jolokia_bytes

from quotascope.exporter.config import SourceConfig
from quotascope.exporter.errors import SourceDenied, SourceError, SourceUnreachable, SourceUnreadable
from quotascope.exporter.sources.build import build_source
from quotascope.exporter.sources.source import DetectedSource


def way(dialect: str, error: SourceError | None = None) -> ScriptedSource:
    """A source that answers, or raises."""
    source = ScriptedSource("b", dialect=dialect)
    source.error = error
    return source


async def test_what_works_is_kept() -> None:
    """The way that was understood last is tried first; an agent that was replaced by one of the other kind is read without a restart."""
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
    ("likely", "other", "reads"),
    [(NO_TEXT, SourceUnreadable("b"), 1), (NO_TEXT, SourceDenied("b"), 1), (DOWN, None, 0), (DENIED, None, 0)],
    ids=["neither", "other denied", "down", "denied"],
)
async def test_the_likelier_error_is_reported(likely: SourceError, other: SourceError | None, reads: int) -> None:
    """No connection and no permission do not depend on the dialect, so the other way is not tried."""
    second = way("y", other)
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
    """An unusual path costs a request that is answered with something else, and nothing more."""

    async def answer(request: web.Request) -> web.Response:
        is_read = request.method == "POST" or dialect != "jolokia"
        return web.Response(body=body if is_read else b'{"status": 200}')

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        source = build_source(SourceConfig(url=str(server.make_url(path)), node_id=1))
        try:
            table = await source.read()
        finally:
            await source.close()
    assert table.layout.columns
    assert source.dialect == dialect


async def test_both_ways_share_one_deadline() -> None:
    """An agent that fails at the end of its time is not given as much again for the other way."""
    endless = way("jolokia")
    endless.answers.clear()
    source = DetectedSource(way("prometheus", SourceUnreadable("no text")), endless, timeout_seconds=0.0)
    with pytest.raises(SourceUnreadable, match="no text"):
        await source.read()
    assert source.dialect == "prometheus"
