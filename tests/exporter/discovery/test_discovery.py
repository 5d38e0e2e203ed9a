from __future__ import annotations

import asyncio
from collections.abc import Sequence

from structlog.testing import capture_logs
from tests.exporter.discovery.scripted import ScriptedFinder, target
from tests.exporter.examples import NOW, ScriptedSource

from quotascope.exporter.collection import Collection
from quotascope.exporter.config import Dialect, FoundSourceConfig, SourceConfig
from quotascope.exporter.discovery import Discovery, Roster
from quotascope.exporter.discovery.target import FoundNodes
from quotascope.exporter.errors import ConfigError, DiscoveryError
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import DiscoveryHealth, OwnHealth

FIXED = SourceConfig(dialect=Dialect.JOLOKIA, url="http://fixed:1/jolokia", node_id=9)


def following(finders: Sequence[ScriptedFinder], timeout: float = 60.0) -> tuple[Roster, Discovery]:
    roster = Roster((), lambda config: ScriptedSource(config.label, config.url))
    common = FoundSourceConfig()
    return roster, Discovery(finders, [FIXED], common, roster, timeout, clock=lambda: NOW)


def names(roster: Roster) -> list[str]:
    return [source.name for source in roster.sources]


async def test_two_discoveries_name_each_address_once() -> None:
    """An address that two discoveries find by URL or name is one source; a node at two addresses has two."""
    kafka_finder = ScriptedFinder("kafka", target("a:1", 1), target("fixed:2", 9))
    second = ScriptedFinder("file_sd", target("other:1", 1), target("a:1"), target("b:1"), target("fixed:1"))
    roster, discovery = following([kafka_finder, second])
    await discovery.refresh()
    assert names(roster) == ["a:1", "fixed:2", "other:1", "b:1"]
    assert [health.targets for health in discovery.health.values()] == [2, 4]
    await discovery.close()
    assert kafka_finder.closed
    assert second.closed


async def test_failure_keeps_what_was_found() -> None:
    """A failed discovery keeps its sources, is counted each time, and is logged when it begins and ends."""
    finder = ScriptedFinder("kafka", target("a:1", 1))
    roster, discovery = following([finder])
    await discovery.refresh()
    with capture_logs() as lines:
        for error in (DiscoveryError("no"), ZeroDivisionError("x"), None):
            finder.error = error
            await discovery.refresh()
    assert names(roster) == ["a:1"]
    assert discovery.health["kafka"] == DiscoveryHealth(name="kafka", targets=1, errors_total=2, found_at=NOW)
    reported = [line["event"] for line in lines if line["log_level"] != "debug"]
    assert reported == ["discovery fails", "discovery works again"]


async def test_part_that_cannot_be_found_is_reported_once() -> None:
    """A missing part is reported once and counted at every look, and the rest is used."""
    finder = ScriptedFinder("kafka")
    finder.found = FoundNodes(targets=(target("a:1"),), problem="no controllers")
    roster, discovery = following([finder])
    with capture_logs() as lines:
        for _ in range(2):
            await discovery.refresh()
    assert names(roster) == ["a:1"]
    health = discovery.health["kafka"]
    assert (health.errors_total, health.error) == (2, "no controllers")
    assert [line["event"] for line in lines].count("not everything was found") == 1


async def test_look_that_hangs_is_given_up() -> None:
    """A look that hangs holds up no other finder."""
    hanging = ScriptedFinder("kafka")
    hanging.answers.clear()
    roster, discovery = following([hanging, ScriptedFinder("file_sd", target("a:1"))], 0.001)
    await discovery.refresh()
    assert names(roster) == ["a:1"]
    assert discovery.health["kafka"].error == "no answer within 0.001 seconds"


async def test_first_collection_waits_for_the_first_look() -> None:
    """The first collection waits for the first discovery, later ones do not; nodes that go take their series along."""
    finder = ScriptedFinder("kafka", target("a:1"), target("b:1"))
    finder.answers.clear()
    roster, discovery = following([finder])
    collection = Collection(
        roster,
        LimitsRefresh(),
        max_age_seconds=0,
        own_health=lambda: OwnHealth(discoveries=(*discovery.health.values(),)),
    )
    look = asyncio.create_task(discovery.refresh())
    first_task = asyncio.create_task(collection.snapshot(60))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first_task.done()
    finder.answers.set()
    assert [source.name for source in (await first_task).sources] == ["a:1", "b:1"]
    await look
    finder.found = FoundNodes(targets=(target("b:1"),))
    await discovery.refresh()
    state = await collection.snapshot(60)
    assert [source.name for source in state.sources] == ["b:1"]
    assert {usage.entity.broker for usage in state.entities} == {"http://b:1/jolokia"}
    assert [discovery_health.targets for discovery_health in state.discoveries] == [1]
    await collection.close()


async def test_it_looks_again_and_again() -> None:
    """Each finder is repeated at its own interval."""
    roster, discovery = following([ScriptedFinder("kafka", target("a:1"))])
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise asyncio.CancelledError  # which ends the task of this finder

    await discovery.run(pause)
    assert pauses == [7.0, 7.0, 7.0]
    assert names(roster) == ["a:1"]


async def test_another_discovery_goes_on_where_one_ended() -> None:
    """Nodes and counts of a former finder stay until a new one of the same name has looked."""
    finder = ScriptedFinder("kafka", target("a:1"))
    roster, old_discovery = following([finder, ScriptedFinder("file_sd", target("b:1"))])
    await old_discovery.refresh()
    finder.error = DiscoveryError("no")
    await old_discovery.refresh()
    new_discovery = Discovery([finder], [FIXED], FoundSourceConfig(), roster, 60.0, clock=lambda: NOW)
    new_discovery.resume(old_discovery)
    (health,) = new_discovery.health.values()
    assert (health.name, health.errors_total, health.targets) == ("kafka", 1, 1)
    await new_discovery.change([FIXED], FoundSourceConfig(), renew=False)
    assert names(roster) == ["a:1"]


async def test_what_is_found_can_be_read_in_another_way() -> None:
    """A found source that is configured now is dropped from the found ones, and the others use the new settings."""
    roster, discovery = following([ScriptedFinder("kafka", target("a:1"), target("b:1"))])
    await discovery.refresh()
    configured = SourceConfig(url="http://a:1/jolokia")
    await discovery.change([configured], FoundSourceConfig(timeout_seconds=1), renew=False)
    assert names(roster) == ["b:1"]
    await discovery.refresh()
    assert names(roster) == ["b:1"]


async def test_found_sources_that_cannot_be_made_any_more_stay() -> None:
    """The log says why; the next look tries again."""
    configs: list[SourceConfig] = []

    def build(config: SourceConfig) -> ScriptedSource:
        if configs:
            raise ConfigError("source", ["no such file"])
        configs.append(config)
        return ScriptedSource(config.label)

    roster = Roster((), build)
    discovery = Discovery([ScriptedFinder("kafka", target("a:1"))], [], FoundSourceConfig(), roster, 60.0)
    await discovery.refresh()
    with capture_logs() as lines:
        await discovery.change([], FoundSourceConfig(), renew=True)
    assert names(roster) == ["a:1"]
    assert [line["event"] for line in lines] == ["found sources cannot be made"]
