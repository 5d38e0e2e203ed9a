from __future__ import annotations

import asyncio

import pytest
from tests.exporter.examples import ScriptedLimits, ScriptedSource

from quotascope.cli import compose
from quotascope.exporter.app import Parts
from quotascope.exporter.collection.reads import Reads
from quotascope.exporter.config import Config

SOURCES = [{"url": "http://broker-1:8778/jolokia"}]


def build(monkeypatch: pytest.MonkeyPatch, limits: ScriptedLimits | None = None) -> None:
    """Let every configuration have a source that the test writes, and these limits."""
    monkeypatch.setattr(
        compose, "build_parts", lambda now, **_: Parts(loaded=now, sources=(ScriptedSource(),), limits=limits)
    )


@pytest.mark.parametrize(("watch", "waits"), [(False, 8.0), (True, 4.0)])
async def test_single_look_waits_for_a_source_as_long_as_it_may(
    monkeypatch: pytest.MonkeyPatch, *, watch: bool, waits: float
) -> None:
    """Those who look again and again find a late answer in the next one."""
    waited: list[float] = []

    def begin(self: Reads, sources: list[ScriptedSource], patience: float) -> None:
        waited.append(patience)
        begun(self, sources, patience)

    begun = Reads.begin
    monkeypatch.setattr(Reads, "begin", begin)
    build(monkeypatch)
    config = Config.model_validate({"collection": {"timeout_seconds": 8}, "sources": SOURCES})
    async with compose.build_collection(config, watch=watch) as collection:
        (source,) = (await collection.snapshot(8)).sources
    assert source.up
    assert waited == [waits]


async def test_the_first_of_many_looks_waits_for_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first screen without limits would look like a cluster that has none."""
    limits = ScriptedLimits()
    limits.answers.clear()
    build(monkeypatch, limits)
    config = Config.model_validate({"kafka": {"bootstrap_servers": "a:9092"}, "sources": SOURCES})
    async with compose.build_collection(config, watch=True) as collection:
        first = asyncio.create_task(collection.snapshot(60))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not first.done()
        limits.answers.set()
        assert (await first).limits is not None
