from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import ScriptedSource, health, table

from quotascope.exporter.collection import Collection
from quotascope.exporter.collection.reads import STALE_AFTER_SECONDS
from quotascope.exporter.config import Dialect, SourceConfig
from quotascope.exporter.discovery import Roster
from quotascope.exporter.discovery.roster import EXAMINE_SECONDS
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import SourceRead


def config(name: str, url: str = "http://a:1") -> SourceConfig:
    """A source of this name."""
    return SourceConfig(dialect=Dialect.JOLOKIA, url=url, name=name)


class Workshop:
    """Makes scripted sources, and remembers them."""

    def __init__(self) -> None:
        self.made: list[ScriptedSource] = []

    def __call__(self, wanted: SourceConfig) -> ScriptedSource:
        """A source."""
        if "broken" in wanted.url:
            raise ConfigError("source", ["no"])
        self.made.append(ScriptedSource(wanted.label))
        return self.made[-1]


def names(roster: Roster) -> list[str]:
    """Who is read."""
    return [source.name for source in roster.sources]


async def test_sources_that_stay_keep_their_object() -> None:
    """Connections and names once learned outlive the coming and going of others."""
    build = Workshop()
    roster = Roster([ScriptedSource("fixed")], build)
    with capture_logs() as lines:
        await roster.follow([config("a"), config("b")])
        await roster.follow([config("b"), config("c")])
    assert names(roster) == ["fixed", "b", "c"]
    assert [source.name for source in build.made] == ["a", "b", "c"]
    assert [source.closed for source in build.made] == [1, 0, 0]
    reported = [(line["event"], line["source"]) for line in lines]
    assert ("source is gone", "a") in reported
    assert reported.count(("source found", "b")) == 1
    await roster.close()


async def test_source_at_another_address_is_another() -> None:
    """The same name with a new URL is made again."""
    build = Workshop()
    roster = Roster((), build)
    await roster.follow([config("a")])
    await roster.follow([config("a", "http://b:1")])
    assert [source.closed for source in build.made] == [1, 0]
    await roster.close()


async def test_source_is_closed_when_no_one_reads_it() -> None:
    """A source that goes in the middle of a collection is left alone until its end."""
    build = Workshop()
    roster = Roster((), build)
    await roster.follow([config("a")])
    async with roster.reading() as sources:
        await roster.follow([])
        assert [source.name for source in sources] == ["a"]
        assert build.made[0].closed == 0
    assert build.made[0].closed == 1
    assert names(roster) == []


async def test_source_that_cannot_be_made_changes_nothing() -> None:
    """What was there goes on."""
    roster = Roster((), Workshop())
    await roster.follow([config("a")])
    with pytest.raises(ConfigError):
        await roster.follow([config("b", "http://broken:1")])
    assert names(roster) == ["a"]
    await roster.close()


class Clock:
    """Steady time that stands still unless it is moved."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


async def twins() -> tuple[Roster, Workshop, Clock]:
    """Two found sources, a and b, that both answer for node 1."""
    build, clock = Workshop(), Clock()
    roster = Roster((), build, clock)
    await roster.follow([config("a"), config("b", "http://b:1")])
    return roster, build, clock


async def collect(roster: Roster) -> dict[str, str]:
    """A collection: which source the numbers of each node are from."""
    collection = Collection(roster, LimitsRefresh(), max_age_seconds=0)
    shown = await collection.snapshot(60)
    await collection._reads.keep_only(())
    return {each.name: each.stand_by_of or ("" if each.up else "down") for each in shown.sources}


async def test_node_that_is_found_twice_is_read_once() -> None:
    """The one that answered first; the other one stands by, is looked at every minute and is shown meanwhile."""
    roster, build, clock = await twins()
    with capture_logs() as lines:
        for _ in range(3):
            assert await collect(roster) == {"a": "", "b": "1"}
    assert names(roster) == ["a"]
    assert [source.reads for source in build.made] == [3, 1]
    clock.now += EXAMINE_SECONDS
    build.made[1].fail()
    assert await collect(roster) == {"a": "", "b": "down"}
    assert [source.reads for source in build.made] == [4, 2]
    assert "node is read through another source" not in {line["event"] for line in lines}
    await roster.close()


async def test_node_found_twice_for_a_moment_is_read_again() -> None:
    """A node that for once said it was another one is not given up."""
    roster, build, clock = await twins()
    assert await collect(roster) == {"a": "", "b": "1"}
    build.made[1].table = table("2", bob=1.0)
    clock.now += EXAMINE_SECONDS
    assert await collect(roster) == {"a": "", "b": ""}
    assert names(roster) == ["a", "b"]
    await roster.close()


async def test_the_second_source_takes_over_and_gives_way() -> None:
    """With the next collection after the first has died; it gives the node back when that one has answered three times in a row."""
    roster, build, _ = await twins()
    await collect(roster)
    first = build.made[0]
    first.fail()
    with capture_logs() as lines:
        assert await collect(roster) == {"a": "down", "b": "1"}
        assert await collect(roster) == {"a": "down", "b": ""}
        for fails in (False, False, True, False, False):
            first.error = first.fail() if fails else None
            shown = await collect(roster)
            assert shown == {"a": "down" if fails else "1", "b": ""}
        for _ in range(3):
            assert await collect(roster) == {"a": "", "b": "1"}
    reported = [line for line in lines if "another source" in line["event"]]
    assert [(line["source"], line["before"]) for line in reported] == [
        ("b", "a"),
        ("a", "b"),
    ]
    assert names(roster) == ["a"]
    await roster.close()


async def test_impatient_scrapes_take_no_node_from_a_source() -> None:
    """A stand-by that answers sooner is no reason while the source in use may still answer in time."""
    roster, build, clock = await twins()
    await collect(roster)
    collection = Collection(roster, LimitsRefresh(), max_age_seconds=0)
    await collection.snapshot(60)
    first = build.made[0]
    first.answers.clear()
    with capture_logs() as lines:
        for _ in range(10):
            clock.now += EXAMINE_SECONDS
            shown = await collection.snapshot(0.001)
            assert [each.stand_by_of for each in shown.sources] == [None, "1"]
        first.answers.set()
        await collection.snapshot(60)
    assert build.made[1].reads > 1
    assert lines == []
    await collection.close()


@pytest.mark.parametrize("hang", [False, True])
async def test_node_whose_two_sources_die_is_down(monkeypatch: pytest.MonkeyPatch, *, hang: bool) -> None:
    """Also when both hang: their last numbers go after a while, and no other source is said to be read."""
    roster, build, clock = await twins()
    collection = Collection(roster, LimitsRefresh(), 0, patience_seconds=0.01)
    await collection.snapshot(0.01)
    clock.now += EXAMINE_SECONDS
    for source in build.made:
        source.answers.clear() if hang else source.fail()
    with capture_logs() as lines:
        shown = await collection.snapshot(0.01)
        assert [each.up for each in shown.sources] == [hang, hang]
        assert len(shown.entities) == hang
        loop = asyncio.get_running_loop()
        later = loop.time() + STALE_AFTER_SECONDS + 1
        with monkeypatch.context() as patch:
            patch.setattr(loop, "time", lambda: later)
            await collection.snapshot(0.0)
            shown = await collection.snapshot(0.0)
    assert [(each.up, each.stand_by_of) for each in shown.sources] == [
        (False, None),
        (False, None),
    ]
    assert ([*shown.entities], shown.nodes) == ([], ())
    assert names(roster) == ["a", "b"]
    assert {line["event"] for line in lines} <= {"source is down"}
    await collection.close()


async def test_source_that_goes_during_a_collection_keeps_no_node() -> None:
    """What it answered then must not make those that stand by wait for their turn."""
    roster, build, _ = await twins()
    for source in build.made:
        source.answers.clear()
    collection = Collection(roster, LimitsRefresh(), max_age_seconds=0)
    under_way = asyncio.create_task(collection.snapshot(60))
    for source in build.made:
        await source.asked.wait()
    await roster.follow([config("b", "http://b:1")])
    for source in build.made:
        source.answers.set()
    await under_way
    shown = await collection.snapshot(60)
    assert [(each.name, each.stand_by_of) for each in shown.sources] == [("b", None)]
    assert len(shown.entities) == 1
    await collection.close()


async def test_source_that_is_always_another_node_fills_no_memory() -> None:
    """Only the node for which it answered last is remembered."""
    fickle = ScriptedSource()
    roster = Roster([fickle])
    for node in range(50):
        fickle.table = table(str(node), mallory=1.0)
        roster.note([SourceRead(health=health(), table=fickle.table)])
    assert len(roster._in_use) == 1


@pytest.mark.parametrize("answers_later", [True, False])
async def test_impostor_displaces_no_one(*, answers_later: bool) -> None:
    """Neither a configured source, nor one whose id a discovery knows, whatever comes first in a list."""
    build = Workshop()
    fixed = ScriptedSource("fixed", "9")
    roster = Roster([fixed], build, Clock())
    listed = [
        config("evil"),
        config("worse", "http://c:1"),
        config("good", "http://b:1"),
    ]
    await roster.follow(listed)
    evil, worse, good = build.made
    good.node_id = "1"
    worse.table = table("9", mallory=1.0)
    if answers_later:
        evil.fail()
    await collect(roster)
    evil.error = None
    for _ in range(5):
        assert await collect(roster) == {
            "fixed": "",
            "evil": "1",
            "worse": "9",
            "good": "",
        }
    await roster.close()


async def test_source_that_is_another_node_from_now_on_displaces_no_one() -> None:
    """Who answered for a node before keeps it."""
    roster, build, _ = await twins()
    build.made[0].table = table("2", alice=1.0)
    assert await collect(roster) == {"a": "", "b": ""}
    build.made[0].table = table("1", mallory=1.0)
    for _ in range(5):
        assert await collect(roster) == {"a": "1", "b": ""}
    await roster.close()


async def test_found_twins_are_read_again_when_other_sources_are_found() -> None:
    """Which of two addresses is which node may have changed with the others."""
    roster = Roster((), Workshop(), Clock())
    twins = [config("a"), config("b", "http://b:1")]
    await roster.follow(twins)
    await collect(roster)
    assert names(roster) == ["a"]
    await roster.follow(twins)
    assert names(roster) == ["a"]
    await roster.follow([*twins, config("c")])
    assert names(roster) == ["a", "b", "c"]
    await roster.follow([twins[1]])
    assert await collect(roster) == {"b": ""}
    await roster.close()


@pytest.mark.parametrize("confirmed", [False, True])
async def test_of_configured_twins_the_one_with_an_id_counts(*, confirmed: bool) -> None:
    """The other one is a mistake or an impostor, which its error says; a discovery can confirm the id as well."""
    evil, good = ScriptedSource("evil"), ScriptedSource("good")
    roster = Roster([evil, good], Workshop())
    if confirmed:
        await roster.follow((), confirmed={"good": "1"})
    else:
        good.node_id = "1"
    for _ in range(2):
        reads = [SourceRead(health=health(s.name), table=await s.read()) for s in (evil, good)]
        roster.note(reads)
        first, second = roster.once_each(reads)
        assert second.table is good.table
        assert (first.table, first.health.up) == (None, False)
        assert "node 1, which source good reads" in (first.health.error or "")
    await roster.close()


async def test_configured_sources_can_be_replaced() -> None:
    """Those that stay keep their object; the others are closed when no one reads them any more."""
    stays, goes, comes = (ScriptedSource(name) for name in ("stays", "goes", "comes"))
    roster = Roster([stays, goes])
    with capture_logs() as lines:
        async with roster.reading() as read:
            await roster.fix([comes, stays])
            assert list(read) == [stays, goes]
            assert goes.closed == 0
    assert roster.sources == (comes, stays)
    assert [each.closed for each in (stays, goes, comes)] == [0, 1, 0]
    reported = [(line["event"], line["source"]) for line in lines]
    assert reported == [("source found", "comes"), ("source is gone", "goes")]
    await roster.close()


async def test_found_sources_can_be_made_anew() -> None:
    """When what they share is another, though none of them has moved."""
    build = Workshop()
    roster = Roster((), build)
    await roster.follow([config("a")])
    with capture_logs() as lines:
        await roster.follow([config("a")], renew=True)
    assert [source.closed for source in build.made] == [1, 0]
    assert lines == []
    await roster.close()
