"""The whole exporter among servers that mean harm: each is down with a reason, and no one else notices."""

from __future__ import annotations

import asyncio
import gc
import re
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter.examples import exporter_of
from tests.exporter.recorded import CAPTURES
from tests.exporter.sources.http.hostile import LONG, LYING, MALFORMED, SLOW, Hostile, body
from tests.exporter.sources.http.misbehaving import serving, with_status

from quotascope.exporter.config import Config
from quotascope.exporter.discovery.build import build_sources
from quotascope.exporter.errors import SourceError
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.sources.budget import COST_OF_LINE, COST_OF_TEXT
from quotascope.exporter.sources.shortening import LongLines

TIMEOUT_SECONDS = 1.0
"""For those that never end; the others have as long as the machine takes."""
LONGEST = 256 << 10
"""Bytes of one answer."""
LINES_OF_LONGEST = 11_000
"""Lines that the longest answer of these servers has."""
DIALECTS = ("prometheus", "jolokia")
GOOD = (CAPTURES / "rules/throttled.txt").read_bytes()


def config(urls: Mapping[str, str], timeout_seconds: float = 60.0) -> Config:
    """Return each of these servers as a source of each dialect, and a good one."""
    sources = [
        {
            "name": f"{name} as {dialect}",
            "url": url,
            "dialect": dialect,
            "timeout_seconds": 60.0 if name == "good" else timeout_seconds,
            "max_answer_bytes": LONGEST,
        }
        for name, url in urls.items()
        for dialect in (("auto",) if name == "good" else DIALECTS)
    ]
    server = {"address": "127.0.0.1", "port": 0}
    return Config.model_validate({"server": server, "collection": {"timeout_seconds": 120}, "sources": sources})


@asynccontextmanager
async def scraped(hostile: Mapping[str, Hostile], timeout_seconds: float = 60.0) -> AsyncIterator[tuple[Snapshot, str]]:
    async with AsyncExitStack() as stack:
        servers = {**hostile, "good": Hostile(body(GOOD), "")}
        urls = {name: await stack.enter_async_context(serving(server.behave)) for name, server in servers.items()}
        configured = config(urls, timeout_seconds)
        sources = build_sources(configured.agents)
        exporter = await stack.enter_async_context(exporter_of(configured, sources, None))
        async with aiohttp.ClientSession() as session, session.get(f"{exporter.url}/metrics") as answer:
            assert answer.status == 200
            yield await exporter.snapshot(), await answer.text()


def up(page: str) -> dict[str, float]:
    return {
        sample.labels["source"]: sample.value
        for family in text_string_to_metric_families(page)
        if family.name == "quotascope_source_up"
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("hostile", "timeout_seconds"),
    [(SLOW, TIMEOUT_SECONDS), (LONG, 60.0), (LYING, 60.0), (MALFORMED, 60.0)],
    ids=["slow", "long", "lying", "malformed"],
)
async def test_each_is_down_with_its_reason(hostile: Mapping[str, Hostile], timeout_seconds: float) -> None:
    """A hostile source is down with its reason within an answer's time and little memory, while the good node is up."""
    tracemalloc.start()
    try:
        async with scraped(hostile, timeout_seconds) as (snapshot, page):
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    expected = {f"{name} as {dialect}": 0.0 for name in hostile for dialect in DIALECTS}
    assert up(page) == {**expected, "good as auto": 1.0}
    for health in snapshot.sources:
        if not health.up:
            reported = health.error or ""
            assert re.search(hostile[health.name.rpartition(" as ")[0]].reason, reported), (health.name, reported)
            assert reported.isprintable()
            assert len(reported) < 1_000
            assert "unexpected" not in reported
    memory_of_source = (1 + COST_OF_TEXT) * LONGEST + LINES_OF_LONGEST * COST_OF_LINE
    assert peak < len(expected) * memory_of_source + 20_000_000


@pytest.mark.parametrize("hostile", [LONG, LYING, MALFORMED], ids=["long", "lying", "malformed"])
async def test_an_answer_that_failed_leaves_no_memory_behind(hostile: Mapping[str, Hostile]) -> None:
    """
    A failed read frees its answer at once, without a collection of garbage.

    Agents fail faster than garbage is collected.
    """
    held: dict[str, int] = {}
    async with AsyncExitStack() as stack:
        urls = {name: await stack.enter_async_context(serving(server.behave)) for name, server in hostile.items()}
        sources = [source for source in build_sources(config(urls).agents) if source.name != "good"]
        stack.callback(gc.enable)
        gc.disable()
        for source in sources:
            stack.push_async_callback(source.close)
            with pytest.raises(SourceError):
                await source.read()
            tracemalloc.start()
            with pytest.raises(SourceError):
                await source.read()
            held[source.name] = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
    # the servers are in this process, and what they had sent is in their sockets
    assert {name: size for name, size in held.items() if size > 4 * LONGEST} == {}


def test_short_lines_of_a_long_page_are_looked_at_in_pieces() -> None:
    """Lines without number take no more memory than the page, and each is counted."""
    page, lines = bytearray(b"kafka_x 1\n" * 1_000_000), LongLines(2_000_000)
    tracemalloc.start()
    lines.shorten(page)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert page == b"kafka_x 1\n" * 150_000
    assert peak < 20_000_000
    lost = lines.lost()
    assert lost is not None
    assert lost.count == 850_000


async def test_a_redirect_leads_nowhere() -> None:
    """A redirect leads neither to another host nor in circles, so that no source chooses an address."""
    was_asked = asyncio.Event()

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        was_asked.set()
        await body(GOOD)(reader, writer)

    async with serving(elsewhere) as url:
        hostile = {
            status: Hostile(
                with_status(f"{status} Look there", f"Location: {target}"),
                "redirects to http://127.0.0.1|redirects to /metrics"
            )
            for status, target in (("301", url), ("302", "/metrics"), ("307", url), ("308", url))
        }  # fmt: skip
        async with scraped(hostile) as (snapshot, page):
            assert sum(up(page).values()) == 1.0
    for health in snapshot.sources:
        assert health.up or re.search(hostile["301"].reason, health.error or "")
    assert not was_asked.is_set()


async def test_a_node_that_recovers_is_read_again() -> None:
    """A node that recovers is read again, whatever it answered before."""
    answers = [*LYING.values(), *MALFORMED.values()]

    async def one_after_another(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behave = answers.pop().behave if answers else body(GOOD)
        await behave(reader, writer)

    async with serving(one_after_another) as url:
        (source,) = build_sources(config({"good": url}).agents)
        for _ in range(2 * len(answers)):
            try:
                table = await source.read()
            except Exception:  # noqa: BLE001, S112 - until it answers what it should
                continue
            break
        assert table.node_id == "1"
        await source.close()
    assert not answers
