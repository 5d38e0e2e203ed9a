from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.exporter.discovery.test_discovery import ScriptedFinder, target
from tests.exporter.examples import ScriptedLimits, ScriptedSource, exporter_of, limits, rates
from tests.exporter.otlp.test_push import ScriptedSender

from quotascope.exporter import background
from quotascope.exporter.app import Exporter, Parts
from quotascope.exporter.config import Config
from quotascope.exporter.config.load import Loaded
from quotascope.exporter.errors import CannotListen
from quotascope.exporter.join import Join
from quotascope.exporter.limits import Limits
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.otlp import OtlpPush
from quotascope.exporter.shadow import read_shadows
from quotascope.exporter.snapshot import Sampling, Snapshot
from quotascope.metrics.catalog import families


def config(**server: Any) -> Config:
    """Listen on a free loopback port."""
    given = {"address": "127.0.0.1", "port": 0, **server}
    return Config.model_validate({"server": given})


async def get(url: str) -> tuple[int, str]:
    """Status and text."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def refused(url: str) -> None:
    """Wait until no one listens any more."""
    while True:
        try:
            await get(f"{url}/-/healthy")
        except aiohttp.ClientConnectorError:
            return
        except aiohttp.ClientConnectionError:  # accepted, but not served any more
            continue


async def ready(exporter: Exporter) -> None:
    """Wait for the first collection."""
    await exporter.snapshot()


async def test_from_start_to_end() -> None:
    """It listens, reads, serves, and releases everything at the end."""
    source, limits_source = ScriptedSource(), ScriptedLimits()
    async with exporter_of(config(), [source], limits_source) as exporter:
        await ready(exporter)
        status, text = await get(f"{exporter.url}/metrics")
    assert status == 200
    assert 'kafka_quota_rules{quota_key="producer_byte_rate"} 2.0' in text
    assert (source.closed, limits_source.closed) == (1, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(f"{exporter.url}/-/healthy")


async def test_process_is_shown_as_the_operating_system_knows_it() -> None:
    """CPU, memory, descriptors and start are those of this process, and names are Prometheus's."""
    async with exporter_of(config(), [ScriptedSource()]) as exporter:
        process = (await exporter.snapshot()).process
    assert process.keys() == {family.name for family in families() if family.name.startswith("process_")}
    assert 0 < process["process_start_time_seconds"] < time.time()
    assert process["process_cpu_seconds_total"] > 0
    assert 20e6 < process["process_resident_memory_bytes"] < process["process_virtual_memory_bytes"]
    assert 2 < process["process_open_fds"] <= process["process_max_fds"]


async def test_requests_under_way_are_answered_before_the_end() -> None:
    """A scrape that came before the signal gets its numbers; one that comes later finds no one."""
    source = ScriptedSource()
    exporter = exporter_of(config(), [source], None)
    await exporter.__aenter__()
    await ready(exporter)
    source.answers.clear()
    source.asked.clear()
    exporter.collection._fresh_until = 0
    scrape = asyncio.create_task(get(f"{exporter.url}/metrics"))
    await source.asked.wait()
    ending = asyncio.create_task(exporter.__aexit__())
    await refused(exporter.url)
    assert not scrape.done()
    source.answers.set()
    status, text = await scrape
    assert status == 200
    assert 'quotascope_source_up{source="broker-1"} 1.0' in text
    await ending


async def test_port_in_use_is_one_clear_error() -> None:
    """The message names address, port and reason, and nothing is left open."""
    source = ScriptedSource()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen) as caught:
            async with exporter_of(config(port=port), [source], None):
                pass
    reason = f"cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert str(caught.value) == reason
    assert source.closed == 1


async def test_start_log_says_why_there_is_nothing_to_show() -> None:
    """What is missing is reported once; what failed was reported when it failed."""
    source = ScriptedSource()
    source.table.values[0] = float("nan")
    empty = ScriptedLimits(limits(rules={}))
    with capture_logs() as lines:
        async with exporter_of(config(), [source], empty) as exporter:
            await ready(exporter)
            await asyncio.sleep(0)
    events = [line["event"] for line in lines]
    assert events[0] == "listening"
    assert any(event.startswith("No client quota is configured") for event in events)
    assert "ready" in events


async def test_first_collection_that_fails_leaves_it_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is logged; the process lives and says that it is not ready."""

    def fail(*_: object) -> Snapshot:
        raise ZeroDivisionError

    monkeypatch.setattr(Join, "snapshot", fail)
    with capture_logs() as lines:
        async with exporter_of(config(), [ScriptedSource()], None) as exporter:
            with pytest.raises(ZeroDivisionError):
                await exporter.snapshot()
            assert (await get(f"{exporter.url}/-/ready"))[0] == 503
            assert (await get(f"{exporter.url}/-/healthy"))[0] == 200
    assert "the first collection failed" in [line["event"] for line in lines]


async def test_maxima_are_the_same_for_every_scraper() -> None:
    """With sampling a peak is in each answer of the window, as often as it is asked for; another length of the window begins from scratch."""
    given = {
        **config().model_dump(include={"server"}),
        "collection": {"max_age_seconds": 0, "sample_every_seconds": 3600},
    }
    source = ScriptedSource()
    source.table = rates("1", {"alice": 0.0})
    ratio = 'kafka_quota_utilization_max_ratio{broker="1",client_id="",quota_type="produce",user="alice"}'

    def produced(amount: float) -> None:
        source.table.values[0] = amount

    async with exporter_of(Config.model_validate(given), [source], ScriptedLimits()) as it:
        metrics = f"{it.url}/metrics"
        produced(900.0)
        await it.snapshot()  # as the sampler does
        produced(100.0)
        for _ in range(2):
            text = (await get(metrics))[1]
            assert f"{ratio} 0.9" in text
        it.collection.configure(0, 9.0, 600.0)
        assert f"{ratio} 0.1" in (await get(metrics))[1]
    assert "quotascope_samples_total 0.0" in text


class Switching:
    """Parts by name, so that a test can say which of them stay."""

    def __init__(self, **given: Any) -> None:
        self.sources = {"a": ScriptedSource("a", "1"), "b": ScriptedSource("b", "2")}
        self.limits = {"first": ScriptedLimits(), "second": ScriptedLimits()}
        self.finders = {"kafka": ScriptedFinder("kafka", target("c:1", 3))}
        self.given = {**config().model_dump(include={"server"}), **given}

    def parts(self, sources: str, limits: str = "", finders: tuple[Any, ...] = (), **more: Any) -> Parts:
        """Parts of these names, under the configuration with these changes."""
        settings = Config.model_validate({**self.given, **more})
        return Parts(
            loaded=Loaded(config=settings),
            sources=tuple(self.sources[name] for name in sources),
            limits=self.limits[limits] if limits else None,
            finders=finders,
        )

    def exporter(self, parts: Parts) -> Exporter:
        """An exporter of these parts."""
        return Exporter(parts)


async def test_switching_disturbs_only_what_changes() -> None:
    """A source that goes is closed, one that stays keeps its connection, a new one is read with the next scrape."""
    world = Switching(collection={"max_age_seconds": 0})
    before = world.parts("a", "first")
    async with world.exporter(before) as exporter:
        await ready(exporter)
        await exporter.swap(world.parts("ab", "first"))
        shown = await exporter.snapshot()
        assert [source.name for source in shown.sources] == ["a", "b"]
        await exporter.swap(world.parts("b", "second", cluster="prod"))
        shown = await exporter.snapshot()
        assert [source.name for source in shown.sources] == ["b"]
        _, text = await get(f"{exporter.url}/metrics")
        assert 'quotascope_source_up{cluster="prod",source="b"} 1.0' in text
        closed = [each.closed for each in world.sources.values()]
        assert closed == [1, 0]
        assert [each.closed for each in world.limits.values()] == [1, 0]
        await exporter.swap(world.parts("b"))
        shown = await exporter.snapshot()
        assert shown.limits is None
        assert not shown.limits_health.configured
    assert [each.closed for each in world.limits.values()] == [1, 1]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_owners_change_with_the_configuration() -> None:
    """From the next request on."""
    world = Switching(collection={"max_age_seconds": 0})
    first, second = world.parts("a"), world.parts("a", default_owner="platform")
    async with world.exporter(first) as exporter:
        await ready(exporter)
        for parts, owner in ((first, "null"), (second, '"platform"'), (first, "null")):
            await exporter.swap(parts)
            _, text = await get(f"{exporter.url}/api/v1/entities?show=all")
            assert f'"owner": {owner}' in text
            _, text = await get(f"{exporter.url}/?show=all")
            assert ("platform" in text) == (parts is second)


async def test_shadows_come_change_and_go(tmp_path: Path) -> None:
    """With the configuration, within the patterns of what may be shown; without shadows, a scrape is what it was, to the byte."""
    file = tmp_path / "shadow.yaml"
    file.write_text("candidates: [{name: low, quotas: [{user: <default>, producer_byte_rate: 3}]}]")
    world = Switching(collection={"max_age_seconds": 0})
    world.sources["a"].table = rates("1", {"alice": 9.0, "bob": 6.0})
    plain = world.parts("a", "first")
    shown: dict[str, Any] = {"shadow": {"file": file}}
    with_shadow = replace(world.parts("a", "first", **shown), shadows=read_shadows(file))
    hidden = replace(
        world.parts("a", "first", **shown, cardinality={"exclude_users": ["bob"]}), shadows=with_shadow.shadows
    )
    throttle = 'kafka_quota_shadow_throttle_time_seconds{broker="1",client_id="",quota_type="produce",shadow="low",user="bob"} 11.0'
    both = 'kafka_quota_shadow_throttled_entities{broker="1",quota_type="produce",shadow="low"}'
    async with world.exporter(plain) as exporter:
        await ready(exporter)
        _, text = await get(f"{exporter.url}/metrics")
        assert "shadow" not in text
        await exporter.swap(with_shadow)
        _, text = await get(f"{exporter.url}/metrics")
        assert throttle in text.splitlines()
        assert f"{both} 1.0" in text.splitlines()
        await exporter.swap(hidden)
        _, text = await get(f"{exporter.url}/metrics")
        assert throttle not in text
        assert f"{both} 1.0" in text.splitlines()
        await exporter.swap(plain)
        _, text = await get(f"{exporter.url}/metrics")
        assert "shadow" not in text


async def test_scrape_under_way_outlives_its_source() -> None:
    """Anyone who asked before the switch gets the numbers of the source that goes, which is closed after that."""
    world = Switching(collection={"max_age_seconds": 0})
    source = world.sources["a"]
    async with world.exporter(world.parts("a")) as exporter:
        await ready(exporter)
        source.answers.clear()
        source.asked.clear()
        scrape = asyncio.create_task(get(f"{exporter.url}/metrics"))
        await source.asked.wait()
        await exporter.swap(world.parts("b"))
        assert source.closed == 0
        source.answers.set()
        status, text = await scrape
        assert (status, source.closed) == (200, 1)
        assert 'quotascope_source_up{source="a"} 1.0' in text


async def test_discovery_can_come_change_and_go() -> None:
    """What was found stays until other finders have looked, and goes with the last finder."""
    world = Switching(collection={"max_age_seconds": 0})
    finder, other = world.finders["kafka"], ScriptedFinder("kafka", target("d:1", 4))
    other.answers.clear()
    async with world.exporter(world.parts("a")) as exporter:
        await ready(exporter)

        async def found(*names: str) -> None:
            while names != tuple(s.name for s in exporter._roster.sources):  # noqa: ASYNC110 - until they are
                await asyncio.sleep(0)

        await exporter.swap(world.parts("a", finders=(finder,)))
        await found("a", "c:1")
        same = exporter.parts.finders
        await exporter.swap(world.parts("ab", finders=same))
        await found("a", "b", "c:1")
        await exporter.swap(world.parts("a", finders=(other,)))
        await found("a", "c:1")
        assert finder.closed
        other.answers.set()
        await found("a", "d:1")
        await exporter.swap(world.parts("a"))
        await found("a")
        assert other.closed
        assert (await exporter.snapshot()).discoveries == ()


async def test_sampling_can_come_change_and_go() -> None:
    """Maxima and counts go on while it goes on; without it there are none."""
    world = Switching(collection={"max_age_seconds": 0})
    every = {"sample_every_seconds": 3600.0, "max_age_seconds": 0}
    async with world.exporter(world.parts("a", collection=every)) as exporter:
        await ready(exporter)
        assert exporter._sampler is not None
        exporter._sampler.sampling = Sampling(samples=5)
        every = {"sample_every_seconds": 1800.0, "max_age_seconds": 0}
        await exporter.swap(world.parts("a", collection=every))
        assert (await exporter.snapshot()).sampling == Sampling(samples=5)
        await exporter.swap(world.parts("a"))
        assert (await exporter.snapshot()).sampling is None


async def test_push_can_come_change_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one sends what it has before the new one starts; counters do not fall, not even meanwhile."""
    world = Switching(collection={"max_age_seconds": 0})
    senders = ScriptedSender(), ScriptedSender()
    first, second = (
        OtlpPush(lambda _, sender=sender: sender, "http://c", 3600)  # type: ignore[misc]
        for sender in senders
    )
    close, meanwhile = first.close, list[Snapshot]()

    async def closing() -> None:
        await close()
        meanwhile.append(await exporter.snapshot())

    monkeypatch.setattr(first, "close", closing)
    async with world.exporter(world.parts("a")) as exporter:
        await ready(exporter)
        for push in (first, second, None):
            await exporter.swap(replace(world.parts("a"), push=push))
            shown = await exporter.snapshot()
            assert (shown.push is None) == (push is None)
        assert [sender.closed for sender in senders] == [1, 1]
        assert second.counts.health.exports_total["success"] >= 1
        assert second.counts is first.counts
    (shown,) = meanwhile
    assert shown.push is not None
    assert shown.push.exports_total["success"] >= 1


async def test_what_cannot_be_made_changes_nothing() -> None:
    """A switch to something that cannot be made leaves all as it was, and each part open."""
    world = Switching(collection={"max_age_seconds": 0})
    before = world.parts("a", "first")

    def fail(_: str) -> ScriptedSender:
        raise ZeroDivisionError

    async with world.exporter(before) as exporter:
        await ready(exporter)
        broken = OtlpPush(fail, "http://c", 3600)
        after = world.parts("b", "second", finders=(world.finders["kafka"],))
        with pytest.raises(ZeroDivisionError):
            await exporter.swap(replace(after, push=broken))
        assert exporter.parts is before
        assert not any(each.closed for each in world.sources.values())
        assert not any(each.closed for each in world.limits.values())
        shown = await exporter.snapshot()
        assert [source.name for source in shown.sources] == ["a"]
        assert shown.discoveries == ()  # nor is one waited for
        await exporter.swap(world.parts("b", "second"))
        assert [each.closed for each in world.limits.values()] == [1, 0]


async def test_what_cannot_be_closed_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that raise when they are closed: the new ones are in use all the same, and a way back makes no mix."""
    world = Switching(collection={"max_age_seconds": 0})

    async def fail() -> None:
        raise ZeroDivisionError

    first = ScriptedSender(), ScriptedSender()
    pushes = [
        OtlpPush(lambda _, sender=sender: sender, "http://c", 3600)  # type: ignore[misc]
        for sender in first
    ]
    monkeypatch.setattr(world.limits["first"], "close", fail)
    monkeypatch.setattr(world.sources["a"], "close", fail)
    monkeypatch.setattr(pushes[0], "close", fail)
    before = replace(world.parts("a", "first"), push=pushes[0])
    after = replace(world.parts("b", "second"), push=pushes[1])
    with capture_logs() as lines:
        async with world.exporter(before) as exporter:
            await ready(exporter)
            await exporter.swap(after)
            assert exporter.parts is after
            assert exporter.parts.limits is world.limits["second"]
            shown = await exporter.snapshot()
            assert [source.name for source in shown.sources] == ["b"]
    reported = [(line["event"], line.get("part")) for line in lines]
    assert ("a source could not be closed", None) in reported
    assert ("a part of the exporter could not be closed", "limits") in reported
    assert ("a part of the exporter could not be closed", "push") in reported
    assert (world.limits["second"].closed, first[1].closed) == (1, 1)
    await pushes[0].__class__.close(pushes[0])
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_limits_are_read_again_after_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh that dies is reported, lets the first collection through, and begins again."""
    monkeypatch.setattr(background, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(LimitsRefresh, "_succeeded", broken_once())
    with capture_logs() as lines:
        async with exporter_of(config(), [ScriptedSource()], ScriptedLimits()) as exporter:
            await ready(exporter)
            while exporter._refresh.limits is None:  # noqa: ASYNC110 - until it is read again
                await asyncio.sleep(0)
            exporter.collection.configure(0.0, 5.0, 60.0)
            shown = await exporter.snapshot()
    assert shown.restarts == {"limits": 1, "trails": 0}
    (reported,) = (line for line in lines if line.get("work") == "limits")
    assert reported["log_level"] == "error"


def broken_once() -> Any:
    """What the refresh does with limits, but for the first time."""
    real, calls = LimitsRefresh._succeeded, list[int]()

    def succeeded(self: LimitsRefresh, limits: Limits) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        real(self, limits)

    return succeeded
