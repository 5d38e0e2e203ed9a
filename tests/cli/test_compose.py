from __future__ import annotations

import asyncio

import pytest
from tests.exporter.examples import ScriptedLimits, ScriptedSource

from quotascope.cli import compose
from quotascope.exporter.collection.reads import Reads
from quotascope.exporter.config import Config
from quotascope.exporter.discovery import Roster


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
    roster = Roster([ScriptedSource()])
    monkeypatch.setattr(compose, "roster_of", lambda _: (roster, None))
    config = Config.model_validate({"collection": {"timeout_seconds": 8}})
    async with compose.build_collection(config, watch=watch) as collection:
        (source,) = (await collection.snapshot(8)).sources
    assert source.up
    assert waited == [waits]


async def test_the_first_of_many_looks_waits_for_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first screen without limits would look like a cluster that has none."""
    limits = ScriptedLimits()
    limits.answers.clear()
    roster = Roster([ScriptedSource()])
    monkeypatch.setattr(compose, "roster_of", lambda _: (roster, None))
    monkeypatch.setattr(compose, "limits_of", lambda _: limits)
    config = Config.model_validate({"kafka": {"bootstrap_servers": "a:9092"}})
    async with compose.build_collection(config, watch=True) as collection:
        first = asyncio.create_task(collection.snapshot(60))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not first.done()
        limits.answers.set()
        assert (await first).limits is not None
