from __future__ import annotations

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import ScriptedSource, health

from quotascope.exporter.config import Dialect, SourceConfig
from quotascope.exporter.discovery import Roster
from quotascope.exporter.errors import ConfigError
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
    """Connections and names once learnt outlive the coming and going of others."""
    build = Workshop()
    roster = Roster([ScriptedSource("fixed")], build)
    with capture_logs() as lines:
        await roster.follow([config("a"), config("b")])
        await roster.follow([config("b"), config("c")])
    assert names(roster) == ["fixed", "b", "c"]
    assert [source.name for source in build.made] == ["a", "b", "c"]
    assert [source.closed for source in build.made] == [1, 0, 0]
    told = [(line["event"], line["source"]) for line in lines]
    assert ("source is gone", "a") in told
    assert told.count(("source found", "b")) == 1
    await roster.close()


async def test_source_at_another_address_is_another() -> None:
    """The same name with a new URL is made anew."""
    build = Workshop()
    roster = Roster((), build)
    await roster.follow([config("a")])
    await roster.follow([config("a", "http://b:1")])
    assert [source.closed for source in build.made] == [1, 0]
    await roster.close()


async def test_source_is_closed_when_nobody_reads_it() -> None:
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


async def test_node_that_is_found_twice_is_read_once() -> None:
    """Two addresses of one node are known as such once both were read; the first stays, until others are found."""
    roster = Roster((), Workshop())
    await roster.follow([config("a"), config("b")])
    reads = [
        SourceRead(health=health(name), table=ScriptedSource(name, "1").table)
        for name in ("a", "b")
    ]
    with capture_logs() as lines:
        for _ in range(2):
            kept = roster.once_each(reads)
    assert [read.health.name for read in kept] == ["a"]
    assert names(roster) == ["a"]
    assert [line["event"] for line in lines] == ["found twice"]
    await roster.follow([config("b")])
    assert names(roster) == ["b"]
    await roster.close()


async def test_found_twins_are_read_again_when_other_sources_are_found() -> None:
    """Which of two addresses is which node may have changed with the others."""
    roster = Roster((), Workshop())
    await roster.follow([config("a"), config("b", "http://b:1")])
    reads = [
        SourceRead(health=health(source.name), table=await source.read())
        for source in roster.sources
    ]
    roster.once_each(reads)
    assert names(roster) == ["a"]
    await roster.follow([config("a"), config("b", "http://b:1")])
    assert names(roster) == ["a"]
    await roster.follow([config("a"), config("b", "http://b:1"), config("c")])
    assert names(roster) == ["a", "b", "c"]
    await roster.close()


async def test_configured_twins_are_left_to_the_join() -> None:
    """That is a mistake of the configuration, which has to be told."""
    roster = Roster([ScriptedSource("a"), ScriptedSource("b")])
    reads = [
        SourceRead(health=health(name), table=ScriptedSource(name, "1").table)
        for name in ("a", "b")
    ]
    assert roster.once_each(reads) == reads
    await roster.close()


async def test_configured_sources_can_be_replaced() -> None:
    """Those that stay keep their object; the others are closed when nobody reads them any more."""
    stays, goes, comes = (ScriptedSource(name) for name in ("stays", "goes", "comes"))
    roster = Roster([stays, goes])
    with capture_logs() as lines:
        async with roster.reading() as read:
            await roster.fix([comes, stays])
            assert list(read) == [stays, goes]
            assert goes.closed == 0
    assert roster.sources == roster.fixed == (comes, stays)
    assert [each.closed for each in (stays, goes, comes)] == [0, 1, 0]
    told = [(line["event"], line["source"]) for line in lines]
    assert told == [("source found", "comes"), ("source is gone", "goes")]
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
