from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request
from tests.exporter.examples import NOW, ScriptedLimits, ScriptedSource, table
from yarl import URL

from quotascope.exporter.api.handlers import Api
from quotascope.exporter.api.openapi import openapi
from quotascope.exporter.collection import Collection
from quotascope.exporter.config import CollectionConfig, Config
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.page.serving import MAX_AGE_SECONDS, Pages


class Served:
    """Pages of one source, on a clock that the test moves."""

    def __init__(self) -> None:
        self.now = NOW
        self.later = 0.0
        """Seconds by which the event loop's clock is ahead."""
        self.source = ScriptedSource()
        self.limits = LimitsRefresh(ScriptedLimits(), 5.0)
        self.collection = Collection([self.source], self.limits, 0, lambda: self.now, steady=lambda: self.now)
        config = Config(collection=CollectionConfig(max_age_seconds=0))
        loop = asyncio.get_running_loop()
        self.pages = Pages(self.collection, config, lambda: loop.time() + self.later)
        app = Application()
        self.pages.add_to(app.router)
        Api(self.pages).add_to(app.router)
        self.client: TestClient[Request, Application] = TestClient(TestServer(app))

    async def json(self, query: str = "") -> Any:
        return await (await self.client.get(f"/api/v1/entities{query}")).json()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.limits.refresh()
    await served.client.start_server()
    yield served
    await served.client.close()
    await served.collection.close()


async def test_before_the_first_collection(served: Served) -> None:
    """A look at the page asks no broker."""
    answer = await served.client.get("/api/v1/entities")
    assert answer.status == 503
    assert "first collection" in (await answer.json())["error"]
    for path in ("/", "/rules", "/entity?user=x"):
        assert "under way" in await (await served.client.get(path)).text()
    assert served.source.reads == 0


DOCUMENTS = {
    "entities": "entities",
    "episodes": "episodes",
    "rules": "rules",
    "explain": "quotas",
    "health": "findings",
    "snapshot": "health",
    "runbooks": "runbooks",
    "openapi.json": "paths",
}
"""A key of each."""


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_every_document_is_served(served: Served, name: str) -> None:
    """Every document is served as JSON of one snapshot."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get(f"/api/v1/{name}")
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert DOCUMENTS[name] in await answer.json()
    assert (await served.client.get(f"/api/v1/{name}x")).status == 404


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "entities?usr=alice",
            "unknown parameter 'usr': /api/v1/entities has sort, reverse, show, type, q, broker, team,",
        ),
        ("episodes?q=alice", "unknown parameter 'q': /api/v1/episodes has user, client_id, type, since, offset, size"),
        ("rules?user=alice", "unknown parameter 'user': /api/v1/rules has "),
        ("explain?q=alice", "unknown parameter 'q': /api/v1/explain has user, client_id, offset, size"),
        ("runbooks?alert=x", "unknown parameter 'alert': /api/v1/runbooks has offset, size"),
        ("snapshot?type=produce", "unknown parameter 'type': /api/v1/snapshot has no parameters"),
    ],
)  # fmt: skip
async def test_an_unknown_parameter_is_refused(served: Served, query: str, message: str) -> None:
    """The API refuses an unknown parameter, as a misspelled filter would return all entities; the page does not."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get(f"/api/v1/{query}")
    assert (answer.status, answer.content_type) == (400, "application/json")
    assert (await answer.json())["error"].startswith(message)
    assert (await served.client.get("/?usr=alice")).status == 200


@pytest.mark.parametrize("set_by", [0.0, -3600.0, 3600.0])
async def test_looking_asks_no_broker_while_prometheus_scrapes(served: Served, set_by: float) -> None:
    """The page uses the last snapshot until that is old, however the clock is set, and remembers the last minutes."""
    served.source.table = table(alice=500.0)
    await served.collection.snapshot(5.0)
    served.now += set_by
    served.later += MAX_AGE_SECONDS - 5
    assert (await served.json())["taken_at"] == NOW
    assert served.source.reads == 1
    served.later += 6
    served.now += 60
    reported = await served.json()
    assert reported["taken_at"] == served.now
    assert reported["entities"][0]["recent"][-1] == 0.5
    assert served.source.reads == 2


async def test_a_snapshot_for_the_command_line_is_read_now(served: Served) -> None:
    """
    The snapshot is read as for a scrape.

    `quotascope top` shows figures of this moment, also before the first scrape.
    """
    for reads in (1, 2):
        served.now += 1
        answer = await served.client.get("/api/v1/snapshot")
        assert (await answer.json())["health"]["taken_at"] == served.now
        assert served.source.reads == reads


KINDS = {
    "/": "text/html",
    "/rules": "text/html",
    "/entity?user=alice": "text/html",
    "/-/icon.svg": "image/svg+xml",
    "/-/page.css": "text/css",
    "/-/page.js": "text/javascript",
    "/api/v1/entities": "application/json",
}


async def test_only_our_own_style_and_script(served: Served) -> None:
    """The policy allows only our own style and script, and no frame on another site."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for path, kind in KINDS.items():
        answer = await served.client.get(path)
        assert (answer.status, answer.content_type) == (200, kind)
        assert "Cache-Control" not in answer.headers  # the server's own forbids to store anything


@pytest.mark.parametrize("path", openapi()["paths"])
async def test_every_described_path_is_served(served: Served, path: str) -> None:
    """Each path answers with a document, and never with "not found"."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get(f"{path}?user=alice" if path.endswith("explain") else path)
    assert (answer.status, answer.content_type) == (200, "application/json")


async def test_the_guide_for_assistants_leads_to_what_is_served(served: Served) -> None:
    """The guide for assistants has relative links to all paths of the API, which work behind a proxy's path."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get("/llms.txt")
    assert (answer.status, answer.content_type) == (200, "text/plain")
    targets = re.findall(r"\]\(([^)]+)\)", text := await answer.text())
    assert {f"/{target}" for target in targets} >= openapi()["paths"].keys()
    assert "Parameters: `user`, `client_id`" in text
    for target in {*targets} - {"metrics", "runbooks/"}:  # which other parts serve
        assert (await served.client.get(f"/{target}")).status == 200


@pytest.mark.parametrize("path", ["entity", "api/v1/explain"])
@pytest.mark.parametrize(
    "name",
    [
        "%00",
        "%ff%fe",
        "%ED%A0%80",
        "%3Cscript%3E",
        "%E2%80%AEx%0A",
        "a/../b",
        "%2e%2e%2f",
        "x" * 3_000,
        "%0A" * 1_000,
        "User:alice",
    ]
)  # fmt: skip
async def test_any_name_can_be_asked_for(served: Served, path: str, name: str) -> None:
    """Any user and client-id get an answer as text, never an error."""
    await served.collection.snapshot(5.0)
    for query in (f"user={name}", f"client_id={name}", f"user={name}&client_id={name}"):
        answer = await served.client.get(URL(f"/{path}?{query}", encoded=True))
        assert answer.status == 200
        assert "<script>" not in await answer.text() or path != "entity"


@pytest.mark.parametrize(
    "path",
    ["api/v1/entities?sort", "api/v1/rules?show", "api/v1/explain?size", "api/v1/runbooks?size", "?sort", "rules?show"],
)
async def test_query_that_cannot_be_read(served: Served, path: str) -> None:
    """A program is refused; people see why, and all entities or rules."""
    await served.collection.snapshot(5.0)
    answer = await served.client.get(f"/{path}=%3Cb%3E")
    assert answer.status == 400
    if path.startswith("api"):
        assert "=<b> is not valid" in (await answer.json())["error"]
    else:
        text = await answer.text()
        assert "=&lt;b&gt; is not valid" in text
        assert "user alice" in text


async def test_the_last_minutes_are_remembered_without_anyone_looking(served: Served) -> None:
    """The last minutes are remembered before the page is first opened."""
    following = asyncio.create_task(served.pages.follow(0.001))
    seen: list[Any] = []
    for value in (500.0, 250.0):
        served.source.table.values[0] = value
        await served.collection.snapshot(5.0)
        while served.pages._noted is not served.collection.latest:  # noqa: ASYNC110 - it goes by itself
            await asyncio.sleep(0.001)
        seen = (await served.json())["entities"][0]["recent"]
        served.now += 15
    following.cancel()
    assert seen == [None] * 18 + [0.5, 0.25]
