from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.exporter.discovery.scripted import ScriptedFinder, target
from tests.exporter.examples import ScriptedLimits, ScriptedSource, exporter_of, limits, rates, team
from tests.exporter.otlp.scripted import ScriptedSender

from quotascope.exporter import background
from quotascope.exporter.alert_terms import AlertTerms
from quotascope.exporter.app import Exporter, Parts, Reloader
from quotascope.exporter.app import exporter as app
from quotascope.exporter.app.reload import Swappable
from quotascope.exporter.config import Config
from quotascope.exporter.config.load import Loaded
from quotascope.exporter.diagnosis.catalog import Catalog, FindingSeverity
from quotascope.exporter.errors import CannotListen
from quotascope.exporter.join.join import Join
from quotascope.exporter.limits import Limits
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.otlp import OtlpPush
from quotascope.exporter.shadow import read_shadows
from quotascope.exporter.snapshot import Sampling, Snapshot
from quotascope.metrics.catalog import families
from quotascope.metrics.catalog.thresholds import NEAR_LIMIT, SharedThresholds


def config(port: int = 0, **sections: Any) -> Config:
    server = {"address": "127.0.0.1", "port": port}
    return Config.model_validate({"server": server, "collection": {"max_age_seconds": 0}, **sections})


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def metrics(exporter: Exporter) -> list[str]:
    return (await get(f"{exporter.url}/metrics"))[1].splitlines()


async def scrape_under_way(exporter: Exporter, source: ScriptedSource) -> asyncio.Task[tuple[int, str]]:
    source.answers.clear()
    source.asked.clear()
    scrape = asyncio.create_task(get(f"{exporter.url}/metrics"))
    await source.asked.wait()
    return scrape


async def test_from_start_to_end() -> None:
    """The exporter listens, reads, serves, shows its process by Prometheus's names, and releases all at the end."""
    source, limits_source = ScriptedSource(), ScriptedLimits()
    async with exporter_of(config(), [source], limits_source) as exporter:
        process = (await exporter.snapshot()).process
        status, text = await get(f"{exporter.url}/metrics")
    assert status == 200
    assert 'kafka_quota_rules{quota_key="producer_byte_rate"} 2.0' in text
    assert (source.closed, limits_source.closed) == (1, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(f"{exporter.url}/-/healthy")
    assert process.keys() == {family.name for family in families() if family.name.startswith("process_")}
    assert 0 < process["process_start_time_seconds"] < time.time()
    assert process["process_cpu_seconds_total"] > 0
    assert 20e6 < process["process_resident_memory_bytes"] < process["process_virtual_memory_bytes"]
    assert 2 < process["process_open_fds"] <= process["process_max_fds"]


async def test_requests_under_way_are_answered_before_the_end() -> None:
    """A scrape that came before the signal gets its numbers; one that comes later finds no listener."""
    source = ScriptedSource()
    exporter = exporter_of(config(), [source])
    await exporter.__aenter__()
    await exporter.snapshot()
    scrape = await scrape_under_way(exporter, source)
    ending = asyncio.create_task(exporter.__aexit__())
    while True:
        try:
            await get(f"{exporter.url}/-/healthy")
        except aiohttp.ClientConnectorError:
            break
        except aiohttp.ClientConnectionError:  # accepted, but not served any more
            continue
    assert not scrape.done()
    source.answers.set()
    status, text = await scrape
    assert status == 200
    assert 'quotascope_source_up{source="broker-1"} 1.0' in text
    await ending


async def test_port_in_use_is_one_clear_error() -> None:
    """A port in use is an error with address, port and reason, and nothing is left open."""
    source = ScriptedSource()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen) as caught:
            async with exporter_of(config(port), [source]):
                pass
    assert str(caught.value) == f"cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert source.closed == 1


async def test_start_log_says_why_there_is_nothing_to_show() -> None:
    """The log at the start names a missing part once, and no failure a second time."""
    source = ScriptedSource()
    source.table.values[0] = float("nan")
    with capture_logs() as lines:
        async with exporter_of(config(), [source], ScriptedLimits(limits(rules={}))) as exporter:
            await exporter.snapshot()
            await asyncio.sleep(0)
    events = [line["event"] for line in lines]
    assert events[0] == "listening"
    assert any(event.startswith("No client quota is configured") for event in events)
    assert "ready" in events


async def test_start_log_says_what_is_uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note is no warning, and not left out either."""
    finding = Catalog.NO_CLIENT_SHOWN.found(named="", rules="", sources="'b' (kafka_2_0_0)", rule="Add it.")
    notes = [replace(finding, severity=severity) for severity in (FindingSeverity.NOTE, FindingSeverity.WARNING)]
    monkeypatch.setattr(app, "diagnose", lambda _: notes)
    with capture_logs() as lines:
        async with exporter_of(config(), [ScriptedSource()], ScriptedLimits()) as exporter:
            await exporter.snapshot()
            await asyncio.sleep(0)
    assert [line["log_level"] for line in lines if line["event"] == finding.text] == ["info", "warning"]


async def test_first_collection_that_fails_leaves_it_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in the first collection is logged; the process lives and is not ready."""

    def fail(*_: object) -> Snapshot:
        raise ZeroDivisionError

    monkeypatch.setattr(Join, "snapshot", fail)
    with capture_logs() as lines:
        async with exporter_of(config(), [ScriptedSource()]) as exporter:
            with pytest.raises(ZeroDivisionError):
                await exporter.snapshot()
            assert (await get(f"{exporter.url}/-/ready"))[0] == 503
            assert (await get(f"{exporter.url}/-/healthy"))[0] == 200
    assert "the first collection failed" in [line["event"] for line in lines]


async def test_maxima_are_the_same_for_every_scraper() -> None:
    """A sampled peak is in each answer of its window; a window of another length begins from scratch."""
    sampled = config(collection={"max_age_seconds": 0, "sample_every_seconds": 3600})
    source = ScriptedSource()
    source.table = rates("1", {"alice": 900.0})
    ratio = 'kafka_quota_utilization_max_ratio{broker="1",client_id="",quota_type="produce",user="alice"}'
    async with exporter_of(sampled, [source], ScriptedLimits()) as exporter:
        await exporter.snapshot()  # as the sampler does
        source.table.values[0] = 100.0
        for _ in range(2):
            assert f"{ratio} 0.9" in await metrics(exporter)
        exporter.collection.configure(0, 9.0, 600.0)
        lines = await metrics(exporter)
    assert f"{ratio} 0.1" in lines
    assert "quotascope_samples_total 0.0" in lines


class World:
    """Parts by name, so that a test can choose which of them stay."""

    def __init__(self) -> None:
        self.sources = {"a": ScriptedSource("a", "1"), "b": ScriptedSource("b", "2")}
        self.limits = {"first": ScriptedLimits(), "second": ScriptedLimits()}

    def parts(
        self,
        sources: str,
        limits: str = "",
        finders: tuple[Any, ...] = (),
        push: OtlpPush | None = None,
        **sections: Any,
    ) -> Parts:
        return Parts(
            loaded=Loaded(config=config(**sections)),
            sources=tuple(self.sources[name] for name in sources),
            limits=self.limits[limits] if limits else None,
            finders=finders,
            push=push,
        )

    @property
    def closed(self) -> list[int]:
        """The number of times that each part was closed: sources a and b, the first and the second limits."""
        return [source.closed for source in self.sources.values()] + [
            limits_source.closed for limits_source in self.limits.values()
        ]


@asynccontextmanager
async def running(parts: Parts) -> AsyncIterator[Exporter]:
    async with Exporter(parts) as exporter:
        await exporter.snapshot()
        yield exporter


async def read_from(exporter: Exporter) -> list[str]:
    return [source.name for source in (await exporter.snapshot()).sources]


async def test_switching_disturbs_only_what_changes() -> None:
    """A removed source is closed, one that stays keeps its connection, and a new one is read by the next scrape."""
    world = World()
    async with running(world.parts("a", "first")) as exporter:
        await exporter.swap(world.parts("ab", "first"))
        assert await read_from(exporter) == ["a", "b"]
        await exporter.swap(world.parts("b", "second", cluster="prod"))
        assert await read_from(exporter) == ["b"]
        assert 'quotascope_source_up{cluster="prod",source="b"} 1.0' in await metrics(exporter)
        assert world.closed == [1, 0, 1, 0]
        await exporter.swap(world.parts("b"))
        state = await exporter.snapshot()
        assert state.limits is None
        assert not state.limits_health.configured
    assert world.closed == [1, 1, 1, 1]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_teams_and_thresholds_change_with_the_configuration() -> None:
    """Teams and thresholds of a new configuration hold from the next request on."""
    world = World()
    terms = AlertTerms(teams=(team("platform", user_pattern=".*"),), thresholds=SharedThresholds(near_limit=0.25))
    usual = NEAR_LIMIT.value
    plain = world.parts("a", collection={"max_age_seconds": 0})
    second = replace(plain, alert_terms=terms)
    async with running(plain) as exporter:
        for parts, name, near_limit in ((plain, "null", usual), (second, '"platform"', 0.25), (plain, "null", usual)):
            await exporter.swap(parts)
            await exporter.snapshot()
            _, text = await get(f"{exporter.url}/api/v1/entities?show=all")
            assert f'"team": {name}' in text
            _, text = await get(f"{exporter.url}/?show=all")
            assert ("platform" in text) == (parts is second)
            assert f"■ {near_limit * 100:g} % of the limit and more" in text
            _, text = await get(f"{exporter.url}/api/v1/snapshot")
            assert json.loads(text)["thresholds"]["near_limit"] == near_limit


async def test_shadows_come_change_and_go(tmp_path: Path) -> None:
    """Shadows come, change and go at a reload, within the patterns of visible names; without them no scrape has any."""
    file = tmp_path / "shadow.yaml"
    file.write_text("candidates: [{name: low, quotas: [{user: <default>, producer_byte_rate: 3}]}]")
    world = World()
    world.sources["a"].table = rates("1", {"alice": 9.0, "bob": 6.0})
    plain = world.parts("a", "first")
    shadowed, hidden = (
        replace(world.parts("a", "first", shadow={"file": file}, cardinality=cardinality), shadows=read_shadows(file))
        for cardinality in ({}, {"exclude_users": ["bob"]})
    )
    throttle = (
        'kafka_quota_shadow_throttle_time_seconds{broker="1",client_id="",quota_type="produce",shadow="low",'
        'user="bob"} 11.0'
    )
    both = 'kafka_quota_shadow_throttled_entities{broker="1",change="new",quota_type="produce",shadow="low"} 1.0'
    async with running(plain) as exporter:
        for parts, expected in ((plain, set()), (shadowed, {throttle, both}), (hidden, {both}), (plain, set())):
            await exporter.swap(parts)
            lines = await metrics(exporter)
            assert {throttle, both} & {*lines} == expected
            assert any("shadow" in line for line in lines) == (parts is not plain)


async def test_scrape_under_way_outlives_its_source() -> None:
    """A request before the switch gets the numbers of the source that goes, which is closed after that."""
    world = World()
    source = world.sources["a"]
    async with running(world.parts("a")) as exporter:
        scrape = await scrape_under_way(exporter, source)
        await exporter.swap(world.parts("b"))
        assert source.closed == 0
        source.answers.set()
        status, text = await scrape
        assert (status, source.closed) == (200, 1)
        assert 'quotascope_source_up{source="a"} 1.0' in text


async def test_discovery_can_come_change_and_go() -> None:
    """Found nodes stay until other finders have looked, and go with the last finder."""
    world = World()
    finder, second_finder = ScriptedFinder("kafka", target("c:1", 3)), ScriptedFinder("kafka", target("d:1", 4))
    second_finder.answers.clear()
    async with running(world.parts("a")) as exporter:

        async def found(*names: str) -> None:
            while names != tuple(s.name for s in exporter._roster.sources):  # noqa: ASYNC110 - until they are
                await asyncio.sleep(0)

        await exporter.swap(world.parts("a", finders=(finder,)))
        await found("a", "c:1")
        await exporter.swap(world.parts("ab", finders=exporter.parts.finders))
        await found("a", "b", "c:1")
        await exporter.swap(world.parts("a", finders=(second_finder,)))
        await found("a", "c:1")
        assert finder.closed
        second_finder.answers.set()
        await found("a", "d:1")
        await exporter.swap(world.parts("a"))
        await found("a")
        assert second_finder.closed
        assert (await exporter.snapshot()).discoveries == ()


async def test_errors_of_a_discovery_are_counted_on() -> None:
    """The errors of a discovery go on from their count, also after it was not configured for a while."""
    world = World()
    async with running(world.parts("a")) as exporter:
        for count in (3, 4):
            finder = ScriptedFinder("kafka", target("c:1", 3))
            finder.answers.clear()
            await exporter.swap(world.parts("a", finders=(finder,)))
            assert exporter._discovery is not None
            health = exporter._discovery.health["kafka"]
            exporter._discovery.health["kafka"] = replace(health, errors_total=max(health.errors_total + 1, count))
            await exporter.swap(world.parts("a"))
        await exporter.swap(world.parts("a", finders=(ScriptedFinder("kafka"),)))
        assert exporter._discovery is not None
        assert exporter._discovery.health["kafka"].errors_total == 4


async def test_a_discovery_that_goes_within_its_first_look_is_not_waited_for() -> None:
    """Collections wait for a first look, which does not come any more."""
    world = World()
    finder, second_finder = ScriptedFinder("kafka"), ScriptedFinder("file_sd")
    finder.answers.clear()
    second_finder.answers.clear()
    async with Exporter(world.parts("a", finders=(finder,))) as exporter:
        await finder.asked.wait()
        for finders in ((second_finder,), ()):
            await exporter.swap(world.parts("a", finders=finders))
            async with asyncio.timeout(5):
                await metrics(exporter)


async def test_sampling_can_come_change_and_go() -> None:
    """Sampling can come, change and go; maxima and counts last as long as it does."""
    world = World()
    hourly, half = ({"sample_every_seconds": every, "max_age_seconds": 0} for every in (3600.0, 1800.0))
    async with running(world.parts("a", collection=hourly)) as exporter:
        assert exporter._sampler is not None
        exporter._sampler.sampling = Sampling(samples=5)
        await exporter.swap(world.parts("a", collection=half))
        assert (await exporter.snapshot()).sampling == Sampling(samples=5)
        await exporter.swap(world.parts("a"))
        assert (await exporter.snapshot()).sampling is None


def push_by(sender: ScriptedSender) -> OtlpPush:
    return OtlpPush(lambda _: sender, "http://c", 3600)


async def test_push_can_come_change_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old push sends its data before the new one starts, and counters never fall."""
    world = World()
    senders = ScriptedSender(), ScriptedSender()
    first_push, second = map(push_by, senders)
    close, meanwhile = first_push.close, list[Snapshot]()

    async def closing() -> None:
        await close()
        meanwhile.append(await exporter.snapshot())

    monkeypatch.setattr(first_push, "close", closing)
    async with running(world.parts("a")) as exporter:
        for push in (first_push, second, None):
            await exporter.swap(world.parts("a", push=push))
            state = await exporter.snapshot()
            assert (state.push is None) == (push is None)
        assert [sender.closed for sender in senders] == [1, 1]
        assert second.counts.health.exports_total["success"] >= 1
        assert second.counts is first_push.counts
    (state,) = meanwhile
    assert state.push is not None
    assert state.push.exports_total["success"] >= 1


async def test_what_cannot_be_made_changes_nothing() -> None:
    """A part that cannot be created leaves everything as it was, and each part open."""
    world = World()
    old_parts = world.parts("a", "first")

    def fail(_: str) -> ScriptedSender:
        raise ZeroDivisionError

    async with running(old_parts) as exporter:
        finder = ScriptedFinder("kafka", target("c:1", 3))
        with pytest.raises(ZeroDivisionError):
            await exporter.swap(world.parts("b", "second", (finder,), OtlpPush(fail, "http://c", 3600)))
        assert exporter.parts is old_parts
        assert world.closed == [0, 0, 0, 0]
        assert await read_from(exporter) == ["a"]
        assert (await exporter.snapshot()).discoveries == ()  # nor is one waited for
        await exporter.swap(world.parts("b", "second"))
        assert world.closed == [1, 0, 1, 0]


async def test_what_cannot_be_closed_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that raise when they are closed are replaced by new ones, and a way back makes no mix of both."""
    world = World()

    async def fail() -> None:
        raise ZeroDivisionError

    senders = ScriptedSender(), ScriptedSender()
    pushes = [*map(push_by, senders)]
    old_parts, new_parts = world.parts("a", "first", push=pushes[0]), world.parts("b", "second", push=pushes[1])
    for part in (world.limits["first"], world.sources["a"], pushes[0]):
        monkeypatch.setattr(part, "close", fail)
    with capture_logs() as lines:
        async with running(old_parts) as exporter:
            await exporter.swap(new_parts)
            assert exporter.parts is new_parts
            assert await read_from(exporter) == ["b"]
    assert {
        ("a source could not be closed", None),
        ("a part of the exporter could not be closed", "limits"),
        ("a part of the exporter could not be closed", "push"),
    } <= {(line["event"], line.get("part")) for line in lines}
    assert (world.limits["second"].closed, senders[1].closed) == (1, 1)
    await OtlpPush.close(pushes[0])
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_limits_are_read_again_after_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh that dies is reported, lets the first collection through, and begins again."""
    real, calls = LimitsRefresh._succeeded, list[int]()

    def broken_once(self: LimitsRefresh, limits: Limits) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        real(self, limits)

    monkeypatch.setattr(background, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(LimitsRefresh, "_succeeded", broken_once)
    with capture_logs() as lines:
        async with exporter_of(config(), [ScriptedSource()], ScriptedLimits()) as exporter:
            await exporter.snapshot()
            while exporter._refresh.limits is None:  # noqa: ASYNC110 - until it is read again
                await asyncio.sleep(0)
            state = await exporter.snapshot()
    assert state.restarts == {"limits": 1, "trails": 0, "files": 0}
    (reported,) = (line for line in lines if line.get("work") == "limits")
    assert reported["log_level"] == "error"


class Renewing(Reloader):
    """A reloader whose look at the files lasts until the test lets it go on."""

    def __init__(self) -> None:
        super().__init__(Config, lambda _, parts: parts, lambda _: None)
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.swapped: list[Parts] = []

    async def renew(self, exporter: Swappable) -> None:
        async with self.between:
            self.began.set()
            await self.go_on.wait()
            self.swapped.append(exporter.parts)


async def test_files_that_are_being_swapped_are_swapped_before_the_end() -> None:
    """A switch that has begun is finished before the end, so that no part stays open."""
    reloader = Renewing()
    async with exporter_of(config(), [ScriptedSource()], reloader=reloader) as exporter:
        await reloader.began.wait()
        asyncio.get_running_loop().call_later(0.05, reloader.go_on.set)
    assert reloader.swapped == [exporter.parts]
