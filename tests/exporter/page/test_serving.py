from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request
from tests.exporter.examples import NOW, ScriptedLimits, ScriptedSource

from quotascope.exporter.collection import Collection
from quotascope.exporter.config import CollectionConfig
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.page import Pages
from quotascope.exporter.page.serving import MAX_AGE_SECONDS
from quotascope.exporter.web.headers import Headers
from quotascope.exporter.web.load import WebSettings


class Served:
    """Pages of one source, whose clock the test turns."""

    def __init__(self) -> None:
        self.now = NOW
        self.source = ScriptedSource()
        self.limits = LimitsRefresh(ScriptedLimits(), 5.0)
        self.collection = Collection([self.source], self.limits, 0, lambda: self.now)
        config = CollectionConfig(max_age_seconds=0)
        self.pages = Pages(self.collection, config, None, lambda: self.now)
        headers = Headers(WebSettings)
        app = Application(middlewares=[headers.middleware])
        self.pages.add_to(app.router)
        self.client: TestClient[Request, Application] = TestClient(TestServer(app))

    async def json(self, query: str = "") -> Any:
        """The entities."""
        return await (await self.client.get(f"/api/v1/entities{query}")).json()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """Pages to ask for."""
    made = Served()
    await made.limits.refresh()
    await made.client.start_server()
    yield made
    await made.client.close()
    await made.collection.close()


async def test_before_the_first_collection(served: Served) -> None:
    """Nobody asks a broker because somebody looks."""
    answer = await served.client.get("/api/v1/entities")
    assert answer.status == 503
    assert "first collection" in (await answer.json())["error"]
    assert "under way" in await (await served.client.get("/")).text()
    assert served.source.reads == 0


async def test_looking_asks_no_broker_while_somebody_scrapes(served: Served) -> None:
    """The last snapshot serves, until it is old."""
    await served.collection.snapshot(5.0)
    served.now += MAX_AGE_SECONDS
    assert (await served.json())["taken_at"] == NOW
    assert served.source.reads == 1
    served.now += 1
    assert (await served.json())["taken_at"] == served.now
    assert served.source.reads == 2


async def test_only_our_own_style_and_script(served: Served) -> None:
    """The policy allows nothing else, nobody frames the page, and nothing of it is kept."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for path, kind in (
        ("/", "text/html"),
        ("/-/page.css", "text/css"),
        ("/-/page.js", "text/javascript"),
        ("/api/v1/entities", "application/json"),
    ):
        answer = await served.client.get(path)
        assert answer.status == 200
        assert answer.content_type == kind
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"


async def test_same_choice_for_page_and_json(served: Served) -> None:
    """One set of parameters."""
    served.source.table.values[0] = 900.0
    await served.collection.snapshot(5.0)
    found = await served.json("?q=ALI&type=produce&show=near")
    assert [entity["utilization"] for entity in found["entities"]] == [0.9]
    assert (await served.json("?q=bob"))["total"] == 0
    text = await (await served.client.get("/?q=ALI&type=produce&show=near")).text()
    assert "user alice" in text
    assert "No entity is like that" in await (await served.client.get("/?q=bob")).text()


async def test_query_that_cannot_be_read(served: Served) -> None:
    """A program is refused; people see why, and everybody."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get("/api/v1/entities?sort=%3Cb%3E")
    assert answer.status == 400
    assert "sort=<b> is not known" in (await answer.json())["error"]
    answer = await served.client.get("/?sort=%3Cb%3E")
    assert answer.status == 400
    text = await answer.text()
    assert "sort=&lt;b&gt; is not known" in text
    assert "user alice" in text


async def test_the_last_minutes_are_remembered_without_anybody_looking(
    served: Served,
) -> None:
    """Whoever opens the page sees what was before."""
    following = asyncio.create_task(served.pages.follow(0.001))
    seen: list[Any] = []
    for value in (500.0, 250.0):
        served.source.table.values[0] = value
        await served.collection.snapshot(5.0)
        while served.pages._noted_at < served.now:  # noqa: ASYNC110 - it goes by itself
            await asyncio.sleep(0.001)
        seen = (await served.json())["entities"][0]["recent"]
        served.now += 15
    following.cancel()
    assert seen == [None] * 18 + [0.5, 0.25]
