from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import ScriptedSource, health, table

from quotascope.exporter.collection import Collection
from quotascope.exporter.collection.reads import STALE_AFTER_SECONDS
from quotascope.exporter.config import Dialect, SourceConfig
from quotascope.exporter.discovery import Roster
from quotascope.exporter.discovery.roster import EXAMINE_SECONDS
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import SourceRead


class World:
    """A roster on a clock that stands still unless the test moves it, with its scripted sources."""

    def __init__(self, *fixed: ScriptedSource) -> None:
        self.made: list[ScriptedSource] = []
        self.now = 0.0
        self.roster = Roster(fixed, self._build, lambda: self.now)

    def _build(self, config: SourceConfig) -> ScriptedSource:
        self.made.append(ScriptedSource(config.label))
        return self.made[-1]

    async def follow(self, *names: str, host: str = "", renew: bool = False) -> None:
        """Follow found sources of these names, each at a host of its own or all at this one."""
        configs = [SourceConfig(dialect=Dialect.JOLOKIA, url=f"http://{host or name}:1", name=name) for name in names]
        await self.roster.replace_found(configs, renew=renew)

    @property
    def read(self) -> list[str]:
        return [source.name for source in self.roster.sources]

    @property
    def closed(self) -> list[int]:
        return [source.closed for source in self.made]

    def collection(self, **options: Any) -> Collection:
        return Collection(self.roster, LimitsRefresh(), max_age_seconds=0, **options)

    async def collect(self) -> dict[str, str]:
        """Return the state of each source in a collection: the node that it stands by for, ``down``, or nothing."""
        collection = self.collection()
        state = await collection.snapshot(60)
        await collection._reads.keep_only(())
        return {health.name: health.stand_by_of or ("" if health.up else "down") for health in state.sources}


@pytest.fixture
async def twins() -> World:
    """Return two found sources, a and b, that both answer for node 1."""
    world = World()
    await world.follow("a", "b")
    return world


async def test_sources_that_stay_keep_their_object() -> None:
    """
    A source that stays keeps its connections and learned names.

    The same name with a new URL is another source, and so is each one that is to be made again.
    """
    fixed = ScriptedSource("fixed")
    world = World(fixed)
    with capture_logs() as lines:
        await world.follow("a", "b")
        await world.follow("b", "c")
    assert world.read == ["fixed", "b", "c"]
    assert [source.name for source in world.made] == ["a", "b", "c"]
    assert world.closed == [1, 0, 0]
    reported = [(line["event"], line["source"]) for line in lines]
    assert ("source is gone", "a") in reported
    assert reported.count(("source found", "b")) == 1
    await world.follow("b", host="elsewhere")
    assert world.closed == [1, 1, 1, 0]
    with capture_logs() as lines:
        await world.follow("b", host="elsewhere", renew=True)
    assert (world.closed, lines) == ([1, 1, 1, 1, 0], [])
    await world.roster.close()
    assert (fixed.closed, world.closed) == (1, [1] * 5)


async def test_configured_sources_can_be_replaced() -> None:
    """Sources that stay keep their object; the others are closed when no collection reads them any more."""
    stays, goes, comes = (ScriptedSource(name) for name in ("stays", "goes", "comes"))
    roster = Roster([stays, goes])
    with capture_logs() as lines:
        async with roster.reading() as read_sources:
            await roster.replace_fixed([comes, stays])
            assert list(read_sources) == [stays, goes]
            assert goes.closed == 0
    assert roster.sources == (comes, stays)
    assert [source.closed for source in (stays, goes, comes)] == [0, 1, 0]
    reported = [(line["event"], line["source"]) for line in lines]
    assert reported == [("source found", "comes"), ("source is gone", "goes")]


async def test_node_that_is_found_twice_is_read_once(twins: World) -> None:
    """
    A node's source that answered first is read.

    The other one stands by, is tried every minute and is shown meanwhile.
    """
    with capture_logs() as lines:
        for _ in range(3):
            assert await twins.collect() == {"a": "", "b": "1"}
    assert twins.read == ["a"]
    assert [source.reads for source in twins.made] == [3, 1]
    twins.now += EXAMINE_SECONDS
    twins.made[1].fail()
    assert await twins.collect() == {"a": "", "b": "down"}
    assert [source.reads for source in twins.made] == [4, 2]
    assert "node is read through another source" not in {line["event"] for line in lines}


async def test_node_found_twice_for_a_moment_is_read_again(twins: World) -> None:
    """A node that once reported another's id is not given up."""
    assert await twins.collect() == {"a": "", "b": "1"}
    twins.made[1].table = table("2", bob=1.0)
    twins.now += EXAMINE_SECONDS
    assert await twins.collect() == {"a": "", "b": ""}
    assert twins.read == ["a", "b"]


async def test_the_second_source_takes_over_and_gives_way(twins: World) -> None:
    """The second source takes over when the first fails, and gives way after three answers of the first in a row."""
    await twins.collect()
    first_source = twins.made[0]
    first_source.fail()
    with capture_logs() as lines:
        assert await twins.collect() == {"a": "down", "b": "1"}
        assert await twins.collect() == {"a": "down", "b": ""}
        for fails in (False, False, True, False, False):
            first_source.error = first_source.fail() if fails else None
            assert await twins.collect() == {"a": "down" if fails else "1", "b": ""}
        for _ in range(3):
            assert await twins.collect() == {"a": "", "b": "1"}
    reported = [(line["source"], line["before"]) for line in lines if "another source" in line["event"]]
    assert reported == [("b", "a"), ("a", "b")]
    assert twins.read == ["a"]


async def test_impatient_scrapes_take_no_node_from_a_source(twins: World) -> None:
    """A stand-by that answers sooner is no reason while the source in use may still answer in time."""
    await twins.collect()
    collection = twins.collection(patience_seconds=3_600)
    await collection.snapshot(60)
    first_source, second = twins.made
    first_source.answers.clear()
    with capture_logs() as lines:
        for _ in range(10):
            twins.now += EXAMINE_SECONDS
            state = await collection.snapshot(0.001)
            assert [health.stand_by_of for health in state.sources] == [None, "1"]
        first_source.answers.set()
        await collection.snapshot(60)
    assert second.reads > 1
    assert lines == []
    await collection.close()


@pytest.mark.parametrize("hang", [False, True])
async def test_node_whose_two_sources_die_is_down(twins: World, monkeypatch: pytest.MonkeyPatch, *, hang: bool) -> None:
    """A node whose two sources fail or hang is down, and its last numbers expire."""
    collection = twins.collection(patience_seconds=0.01, steady=lambda: asyncio.get_running_loop().time())
    await collection.snapshot(60)
    twins.now += EXAMINE_SECONDS
    for source in twins.made:
        source.answers.clear() if hang else source.fail()
    with capture_logs() as lines:
        state = await collection.snapshot(0.01)
        assert [health.up for health in state.sources] == [hang, hang]
        assert len(state.entities) == hang
        loop = asyncio.get_running_loop()
        later = loop.time() + STALE_AFTER_SECONDS + 1
        with monkeypatch.context() as patch:
            patch.setattr(loop, "time", lambda: later)
            await collection.snapshot(0.0)
            state = await collection.snapshot(0.0)
    assert [(health.up, health.stand_by_of) for health in state.sources] == [(False, None)] * 2
    assert ([*state.entities], state.nodes) == ([], ())
    assert twins.read == ["a", "b"]
    assert {line["event"] for line in lines} <= {"source is down"}
    await collection.close()


async def test_source_that_goes_during_a_collection_keeps_no_node(twins: World) -> None:
    """A source that is removed during a collection does not keep its node from the ones that stand by."""
    for source in twins.made:
        source.answers.clear()
    collection = twins.collection()
    under_way = asyncio.create_task(collection.snapshot(60))
    for source in twins.made:
        await source.asked.wait()
    await twins.follow("b")
    for source in twins.made:
        source.answers.set()
    await under_way
    state = await collection.snapshot(60)
    assert [(health.name, health.stand_by_of) for health in state.sources] == [("b", None)]
    assert len(state.entities) == 1
    await collection.close()


async def test_source_that_is_always_another_node_fills_no_memory() -> None:
    """A source that answers for another node each time is remembered only with the last one."""
    fickle = ScriptedSource()
    roster = Roster([fickle])
    for node in range(50):
        roster.record([SourceRead(health=health(), table=table(str(node), mallory=1.0))])
    assert len(roster._in_use) == 1


@pytest.mark.parametrize("answers_later", [True, False])
async def test_impostor_displaces_no_other_source(*, answers_later: bool) -> None:
    """An impostor displaces no configured source, and none whose id a discovery knows, whatever comes first."""
    world = World(ScriptedSource("fixed", "9"))
    await world.follow("evil", "worse", "good")
    evil, worse, good = world.made
    good.node_id = "1"
    worse.table = table("9", mallory=1.0)
    if answers_later:
        evil.fail()
    await world.collect()
    evil.error = None
    for _ in range(5):
        assert await world.collect() == {"fixed": "", "evil": "1", "worse": "9", "good": ""}


async def test_source_that_is_another_node_from_now_on_displaces_no_other(twins: World) -> None:
    """A source that becomes another node does not displace the one that answered for that node before."""
    twins.made[0].table = table("2", alice=1.0)
    assert await twins.collect() == {"a": "", "b": ""}
    twins.made[0].table = table("1", mallory=1.0)
    for _ in range(5):
        assert await twins.collect() == {"a": "1", "b": ""}


async def test_found_twins_are_read_again_when_other_sources_are_found(twins: World) -> None:
    """Both sources of a node are tried again when other sources are found."""
    await twins.collect()
    assert twins.read == ["a"]
    await twins.follow("a", "b")
    assert twins.read == ["a"]
    await twins.follow("a", "b", "c")
    assert twins.read == ["a", "b", "c"]
    await twins.follow("b")
    assert await twins.collect() == {"b": ""}


@pytest.mark.parametrize("confirmed", [False, True])
async def test_of_configured_twins_the_one_with_an_id_counts(*, confirmed: bool) -> None:
    """
    Of two configured sources for a node the one with an id, or one that a discovery confirms, is used.

    The error of the other one says that it is a mistake or an impostor.
    """
    evil, good = ScriptedSource("evil"), ScriptedSource("good")
    roster = Roster([evil, good])
    good.node_id = None if confirmed else "1"
    await roster.replace_found((), confirmed={"good": "1"} if confirmed else None)
    for _ in range(2):
        reads = [SourceRead(health=health(s.name), table=await s.read()) for s in (evil, good)]
        roster.record(reads)
        first_read, second = roster.one_table_per_node(reads)
        assert second.table is good.table
        assert (first_read.table, first_read.health.up) == (None, False)
        assert "node 1, which source good reads" in (first_read.health.error or "")


async def test_of_two_sources_with_one_name_the_first_counts() -> None:
    """A configured source and one that discovery finds may have the same name: there is one table of the node."""
    first, second = ScriptedSource("node"), ScriptedSource("node")
    roster = Roster([first])
    reads = [SourceRead(health=health("node"), table=await source.read()) for source in (first, second)]
    (one,) = roster.one_table_per_node(reads)
    assert one is reads[0]
