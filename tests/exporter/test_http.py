from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request
from structlog.testing import capture_logs
from tests.exporter.examples import NOW, ScriptedSource, snapshot, usage

from quotascope.exporter.collection import Collection
from quotascope.exporter.config import CollectionConfig, Config
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.exposition.text import OPENMETRICS, TEXT, TextFormat
from quotascope.exporter.http import TIMEOUT_HEADER, Handlers, Rendering, scrape_timeout
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.page.serving import MAX_AGE_SECONDS
from quotascope.exporter.snapshot import Snapshot

Client = TestClient[Request, Application]
Serve = Callable[..., Awaitable[Client]]
CONFIG = Config(collection=CollectionConfig(max_age_seconds=0))
SERIES = 'kafka_quota_produce_bytes_per_second{broker="1",client_id="",user="alice"} 1.0'


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def start(*sources: ScriptedSource) -> Client:
            collection = Collection(sources, LimitsRefresh(), 0, clock=lambda: NOW)
            stack.push_async_callback(collection.close)
            handlers = Handlers(collection, CONFIG, clock=lambda: NOW)
            return await stack.enter_async_context(TestClient(TestServer(handlers.app()), auto_decompress=False))

        yield start


async def test_the_page_is_read_again_after_the_clock_was_set_back() -> None:
    """The page shows the age of its snapshot, though the snapshot's time is an hour ahead."""
    now_seconds = NOW
    source = ScriptedSource()
    collection = Collection([source], LimitsRefresh(), 0, clock=lambda: now_seconds)
    handlers = Handlers(collection, CONFIG, clock=lambda: now_seconds)
    async with TestClient(TestServer(handlers.app())) as client:
        await collection.snapshot(5.0)
        now_seconds -= 3600
        await client.get("/api/v1/entities")
        assert source.reads == 1
        collection.latest_began -= MAX_AGE_SECONDS + 1
        document = await (await client.get("/api/v1/entities")).json()
    await collection.close()
    assert document["taken_at"] == now_seconds
    assert source.reads == 2


async def test_metrics_as_text(serve: Serve) -> None:
    """A plain request gets classic text; Prometheus gets the requested format and encoding."""
    client = await serve(ScriptedSource())
    plain = await client.get("/metrics", headers={"Accept-Encoding": "identity"})
    assert plain.status == 200
    assert plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "Content-Encoding" not in plain.headers
    assert SERIES in (await plain.text()).splitlines()
    headers = {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"}
    answer = await client.get("/metrics", headers=headers)
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    text = gzip.decompress(await answer.read()).decode()
    assert SERIES in text.splitlines()
    assert text.endswith("# EOF\n")


async def test_deadline_comes_from_the_scraper(serve: Serve) -> None:
    """A hanging broker is given up in time for the scrape's own timeout."""
    hanging = ScriptedSource("hanging", "2")
    hanging.answers.clear()
    client = await serve(ScriptedSource(), hanging)
    headers = {TIMEOUT_HEADER: "1", "Accept-Encoding": ""}
    text = await (await client.get("/metrics", headers=headers)).text()
    assert 'quotascope_source_up{source="hanging"} 0.0' in text.splitlines()
    assert SERIES in text.splitlines()


SECONDS = {
    "10": 9.5,
    "0.6": 0.5,
    "0.001": 0.5,
    "1.0": 0.5,
    "1e9": 300.0,
    **dict.fromkeys((None, "", "soon", "0", "-1", "nan", "inf"), 9.0),
}


@pytest.mark.parametrize("header", SECONDS)
def test_scrape_timeout(header: str | None) -> None:
    """
    A scrape ends a little before the scraper's timeout, and after half of it or more.

    A senseless header counts as none, and no scrape waits for ever.
    """
    assert scrape_timeout(header, CollectionConfig()) == SECONDS[header]


async def test_paths_and_methods(serve: Serve) -> None:
    """Ready means that a scrape has something to show, healthy that the process lives."""
    client = await serve(ScriptedSource())
    assert (await client.get("/-/healthy")).status == 200
    answer = await client.get("/-/ready")
    assert answer.status == 503
    assert "first collection" in await answer.text()
    await client.get("/metrics")
    assert (await client.get("/-/ready")).status == 200
    answer = await client.get("/nope")
    assert answer.status == 404
    assert await answer.text() == "404 Not Found: see / for what there is\n"
    answer = await client.post("/metrics")
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET,HEAD"
    assert (await client.head("/metrics")).status == 200


async def test_defect_is_a_500_without_details(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has the reason, and the network has not."""

    def fail(*_: object) -> Snapshot:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("quotascope.exporter.join.join.Join.snapshot", fail)
    client = await serve(ScriptedSource())
    with capture_logs() as lines:
        answer = await client.get("/metrics")
    assert answer.status == 500
    assert await answer.text() == "internal error: see the log\n"
    assert lines[-1]["event"] == "a request failed"


class Held(Renderer):
    """A renderer that waits until it may write."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.written: list[TextFormat] = []

    def render(self, snapshot: Snapshot, now_seconds: float, text_format: TextFormat = TEXT) -> bytes:
        self.written.append(text_format)
        self.go.wait(60)
        return super().render(snapshot, now_seconds, text_format)


async def test_the_same_is_written_once() -> None:
    """Plain and compressed answers come of one text; another format or snapshot is another text."""
    held = Held()
    rendering = Rendering(held, lambda: NOW)
    earlier, later = snapshot(usage(usage=1.0)), snapshot(usage(usage=2.0))
    requests = [
        asyncio.create_task(rendering.body(which, text_format, compressed=compressed))
        for which in (earlier, later)
        for text_format in (TEXT, OPENMETRICS)
        for compressed in (False, True, True)
    ]
    await asyncio.sleep(0)
    held.go.set()
    bodies = await asyncio.gather(*requests)
    assert sorted(text_format.content_type for text_format in held.written) == sorted(
        2 * [TEXT.content_type, OPENMETRICS.content_type]
    )
    plain, compressed, again = bodies[:3]
    assert gzip.decompress(compressed) == plain
    assert compressed == again
    assert len(set(bodies)) == 8
    assert not rendering._under_way


async def test_hosts_that_cannot_be_looked_up_hold_no_scrape_up() -> None:
    """A host that cannot be looked up holds no scrape up, though asyncio has few threads for look-ups."""
    answered, loop = threading.Event(), asyncio.get_running_loop()
    lookups = [loop.run_in_executor(None, answered.wait) for _ in range(100)]
    try:
        body = await Rendering(Renderer(), lambda: NOW).body(snapshot(), TEXT, compressed=True)
        assert gzip.decompress(body).endswith(b"\n")
        assert not any(lookup.done() for lookup in lookups)
    finally:
        answered.set()
        await asyncio.gather(*lookups)


async def test_who_gives_up_takes_nothing_from_the_others() -> None:
    """A scraper that hangs up ends no other scrape."""
    held = Held()
    rendering = Rendering(held, lambda: NOW)
    state = snapshot(usage(usage=1.0))
    impatient, second = (asyncio.create_task(rendering.body(state, TEXT, compressed=False)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    held.go.set()
    assert b"kafka_quota_produce_bytes_per_second" in await second
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_a_failure_is_reported_to_all_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is an error for all waiting scrapes, and the next scrape tries again."""
    held = Held()
    held.go.set()
    rendering = Rendering(held, lambda: NOW)
    state = snapshot()
    with monkeypatch.context() as broken:
        broken.setattr(Held, "render", lambda *_: 1 / 0)
        requests = [rendering.body(state, TEXT, compressed=c) for c in (False, True)]
        failed = await asyncio.gather(*requests, return_exceptions=True)
    assert [type(failure) for failure in failed] == [ZeroDivisionError] * 2
    assert await rendering.body(state, TEXT, compressed=False)
