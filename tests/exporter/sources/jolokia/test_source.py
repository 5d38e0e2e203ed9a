"""An agent that cannot read all of a domain at once."""

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.exporter.recorded import CAPTURES, numbers, table
from yarl import URL

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources.fetch import HttpTarget
from quotascope.exporter.sources.jolokia import JolokiaSource

CAPTURE = "combined/throttled.jolokia1.json"


async def test_an_agent_that_cannot_read_a_domain_is_asked_type_by_type() -> None:
    """A bean that cannot be looked at, and is none of ours, costs another request now and then, but no number."""
    recorded = json.loads((CAPTURES / CAPTURE).read_text("utf-8"))
    asked: list[int] = []

    async def answer(request: web.Request) -> web.Response:
        patterns = [item["mbean"] for item in await request.json()]
        asked.append(len(patterns))
        failed = {"status": 500, "error": "no MBeanInfo"}
        missing = {"status": 404, "error": "No MBean with pattern"}
        given = {**recorded, "kafka.server:*": failed}
        return web.json_response([given.get(name, missing) for name in patterns])

    app = web.Application()
    app.router.add_post("/jolokia/", answer)
    async with TestServer(app) as server:
        source = JolokiaSource("a", HttpTarget(url=str(server.make_url("/jolokia"))))
        reads = [await source.read() for _ in range(1 + 20 + 1)]
        await source.close()
    assert asked == [5, 16] + [16] * 20 + [5, 16]
    read = reads[-1]
    ours, theirs = numbers(read), numbers(table(CAPTURE))
    assert ours.keys() == theirs.keys()


async def test_both_requests_of_a_read_share_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent that fails late is not waited for as long again: what the first request was told is the error."""
    asked: list[int] = []
    ended: list[int] = []
    failed = [{"status": 500, "error": "no MBeanInfo"}] * 5

    async def post(_: URL, body: bytes) -> bytes:
        asked.append(len(json.loads(body)))
        if len(asked) > 1:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(len(asked))
        return json.dumps(failed).encode()

    target = HttpTarget(url="http://127.0.0.1:1/jolokia", timeout_seconds=0.0)
    source = JolokiaSource("a", target)
    monkeypatch.setattr(source._fetch, "read", post)
    with pytest.raises(SourceUnreadable, match="no MBeanInfo"):
        await source.read()
    assert (asked, ended) == ([5, 16], [2])
    await source.close()
