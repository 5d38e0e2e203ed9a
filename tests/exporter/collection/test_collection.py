from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import fields, replace

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import NOW, ScriptedLimits, ScriptedSource, table

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.collection.reads import STALE_AFTER_SECONDS
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.diagnosis import diagnose
from quotascope.exporter.errors import SourceUnreachable
from quotascope.exporter.join import Join
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import DiscoveryHealth, OwnHealth, PushHealth, ReloadHealth, Snapshot
from quotascope.metrics.catalog import OVERFLOW

LONG = 60.0
"""Seconds that no test waits."""
Make = Callable[..., Collection]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes collections without limits, and closes them."""
    made: list[Collection] = []

    def collection(*sources: ScriptedSource, max_age: float = LONG, patience: float = LONG) -> Collection:
        made.append(Collection(sources, LimitsRefresh(), max_age, clock=lambda: NOW, patience_seconds=patience))
        return made[-1]

    yield collection
    for each in made:
        await each.close()


async def turn() -> None:
    """Let every task that can go on do so."""
    for _ in range(60):
        await asyncio.sleep(0)


def up(snapshot: Snapshot) -> dict[str, bool]:
    """Which sources are up."""
    return {source.name: source.up for source in snapshot.sources}


async def test_snapshot_of_all_sources(make: Make) -> None:
    """Every source is read once, and their numbers are joined."""
    first, second = ScriptedSource("a", "1"), ScriptedSource("b", "2")
    shown = await make(first, second).snapshot(LONG)
    assert [usage.entity.broker for usage in shown.entities] == ["1", "2"]
    assert up(shown) == {"a": True, "b": True}
    assert shown.taken_at == NOW


async def test_sources_are_read_at_the_same_time(make: Make) -> None:
    """A second source does not wait for the first."""
    first, second = ScriptedSource("a", "1"), ScriptedSource("b", "2")
    first.answers.clear()
    task = asyncio.create_task(make(first, second).snapshot(LONG))
    await turn()
    assert second.reads == 1
    first.answers.set()
    await task


async def test_fresh_snapshot_is_given_again(make: Make) -> None:
    """Two Prometheus servers cost the brokers one read."""
    source = ScriptedSource()
    collection = make(source)
    assert await collection.snapshot(LONG) is await collection.snapshot(LONG)
    assert source.reads == 1


async def test_old_snapshot_is_not(make: Make) -> None:
    """Numbers older than asked for are read again."""
    source = ScriptedSource()
    collection = make(source, max_age=0)
    assert await collection.snapshot(LONG) is not await collection.snapshot(LONG)
    assert source.reads == 2


async def test_age_counts_from_the_start_of_a_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that took longer to read than they may be old are not given twice."""
    source = ScriptedSource()
    source.answers.clear()
    collection = make(source, max_age=10)
    task = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    loop = asyncio.get_running_loop()
    later = loop.time() + 10
    monkeypatch.setattr(loop, "time", lambda: later)
    source.answers.set()
    await task
    await collection.snapshot(LONG)
    assert source.reads == 2


async def test_scrapes_at_the_same_time_share_one_collection(make: Make) -> None:
    """Anyone who comes while a collection runs gets its result."""
    source = ScriptedSource()
    source.answers.clear()
    collection = make(source, max_age=0)
    tasks = [asyncio.create_task(collection.snapshot(LONG)) for _ in range(5)]
    await turn()
    source.answers.set()
    shown = await asyncio.gather(*tasks)
    assert source.reads == 1
    assert all(each is shown[0] for each in shown)


async def test_scrape_that_goes_away_does_not_end_the_collection_for_others(make: Make) -> None:
    """A client that hangs up takes nothing from those that stay."""
    source = ScriptedSource()
    source.answers.clear()
    collection = make(source)
    leaving, staying = (asyncio.create_task(collection.snapshot(LONG)) for _ in range(2))
    await turn()
    leaving.cancel()
    await turn()
    source.answers.set()
    assert up(await staying) == {"broker-1": True}
    assert source.canceled == 0


async def test_slow_source_is_shown_as_down_at_the_deadline(make: Make) -> None:
    """It has the reason, and the others have their numbers."""
    slow, quick = ScriptedSource("slow", "1"), ScriptedSource("quick", "2")
    slow.answers.clear()
    shown = await make(slow, quick).snapshot(0.01)
    assert up(shown) == {"slow": False, "quick": True}
    assert (shown.sources[0].error or "").startswith("no answer after ")
    assert [usage.entity.broker for usage in shown.entities] == ["2"]


async def test_source_that_takes_long_is_read_in_the_background(make: Make) -> None:
    """It is asked once and read to its end; its numbers are there for the next scrape, and said to be older ones."""
    slow = ScriptedSource("slow")
    slow.answers.clear()
    collection = make(slow, max_age=0, patience=0.01)
    for _ in range(2):
        assert up(await collection.snapshot(0.01)) == {"slow": False}
    slow.answers.set()
    await turn()
    slow.answers.clear()
    slow.table = table("1", alice=2.0)
    shown = await collection.snapshot(0.01)
    (health,) = shown.sources
    assert (health.up, health.late, health.read_at) == (True, True, NOW)
    assert [usage.usage for usage in shown.entities] == [1.0]
    assert any("has not answered yet" in each.text for each in diagnose(shown))
    slow.answers.set()
    await turn()
    shown = await collection.snapshot(LONG)
    assert [usage.usage for usage in shown.entities] == [2.0]
    assert not shown.sources[0].late
    assert (slow.reads, slow.canceled) == (3, 0)


async def test_old_numbers_of_a_source_go(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two minutes after they were asked for they are not shown any more."""
    source = ScriptedSource()
    collection = make(source, max_age=0)
    await collection.snapshot(LONG)
    source.answers.clear()
    loop = asyncio.get_running_loop()
    began = loop.time()
    for later, there in (
        (STALE_AFTER_SECONDS - 1, True),
        (STALE_AFTER_SECONDS + 1, False),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(loop, "time", lambda later=later: began + later)
            shown = await collection.snapshot(0.0)
        assert up(shown) == {"broker-1": there}
        assert len(shown.entities) == there
    assert "older than 120 s" in (shown.sources[0].error or "")


@pytest.mark.parametrize("fails", [True, False])
async def test_source_that_took_long_is_not_waited_for(
    make: Make, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """Neither when it answered late nor when it failed late: the others' numbers are there at once."""
    slow, quick = ScriptedSource("slow", "1"), ScriptedSource("quick", "2")
    slow.answers.clear()
    slow.error = slow.fail() if fails else None
    collection = make(slow, quick, max_age=0)
    first = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    loop = asyncio.get_running_loop()
    later = loop.time() + LONG / 2 + 1
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: later)
        slow.answers.set()
        assert up(await first) == {"slow": not fails, "quick": True}
    slow.answers.clear()
    second = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    assert second.done()
    assert up(await second) == {"slow": not fails, "quick": True}


async def test_read_that_fails_late_again_and_again_is_waited_for_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For half of a collection's time, and then by no collection until a read ended in less."""
    slow, quick = ScriptedSource("slow", "1"), ScriptedSource("quick", "2")
    slow.fail()
    slow.answers.clear()
    collection = make(slow, quick, max_age=0)
    first = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    assert not first.done()
    loop = asyncio.get_running_loop()
    with monkeypatch.context() as patch:
        for passed, ends in ((1, False), (1, True), (LONG, True), (LONG, False)):
            later = loop.time() + LONG / 2 + passed
            patch.setattr(loop, "time", lambda later=later: later)
            assert up(await first) == {"slow": False, "quick": True}
            if ends:
                slow.answers.set()
                await turn()
                slow.answers.clear()
            first = asyncio.create_task(collection.snapshot(LONG))
            await turn()
            assert first.done()
    assert (slow.reads, quick.reads) == (3, 5)


async def test_source_that_took_long_once_is_waited_for_when_nothing_else_can_be_shown(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where scrapes are further apart than numbers are shown, a single slow read makes no source look down."""
    source = ScriptedSource()
    source.answers.clear()
    collection = make(source, max_age=0)
    first = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    loop = asyncio.get_running_loop()
    began = loop.time()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: began + LONG / 2 + 1)
        source.answers.set()
        assert up(await first) == {"broker-1": True}
        patch.setattr(loop, "time", lambda: began + STALE_AFTER_SECONDS + 1)
        source.answers.clear()
        second = asyncio.create_task(collection.snapshot(LONG))
        await turn()
        assert not second.done()
        source.answers.set()
        assert up(await second) == {"broker-1": True}


async def test_impatient_scrapes_are_no_news_of_a_source(make: Make) -> None:
    """However many cut collections short: a source that may still answer in time is no other than before, and the patient get all of it."""
    slow, quick = ScriptedSource("slow", "1"), ScriptedSource("quick", "2")
    collection = make(slow, quick, max_age=0)
    with capture_logs() as lines:
        for round_ in (1, 2):
            slow.answers.clear()
            for _ in range(10):
                hasty = await collection.snapshot(0.001)
                await turn()
            assert up(hasty) == {"slow": round_ > 1, "quick": True}
            patient = asyncio.create_task(collection.snapshot(LONG))
            await turn()
            await collection.snapshot(0.001)
            slow.answers.set()
            shown = await patient
            assert up(shown) == {"slow": True, "quick": True}
            assert not any(each.pending or each.late for each in shown.sources)
            assert (slow.reads, slow.canceled) == (round_, 0)
    assert sorted((line["event"], line["source"]) for line in lines) == [
        ("source is up", "quick"),
        ("source is up", "slow"),
    ]


async def test_source_that_hangs_is_down_however_impatient_scrapes_are(make: Make) -> None:
    """It is reported once what it was waited for is over, although no collection lasts that long."""
    hung = ScriptedSource("hung")
    hung.answers.clear()
    collection = make(hung, max_age=0, patience=0.02)
    with capture_logs() as lines:
        for _ in range(10):
            await collection.snapshot(0.005)
            await turn()
    assert [line["event"] for line in lines] == ["source is down"]
    assert (hung.reads, hung.canceled) == (1, 0)


async def test_collection_that_no_one_waits_for_gives_way(make: Make) -> None:
    """A scrape does not get numbers from long ago because one node of many hangs."""
    slow, quick = ScriptedSource("slow", "1"), ScriptedSource("quick", "2")
    slow.answers.clear()
    collection = make(slow, quick, max_age=0)
    await collection.snapshot(0.001)
    await turn()
    await collection.snapshot(0.001)
    await turn()
    assert (slow.reads, quick.reads, slow.canceled) == (1, 2, 0)


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (SourceUnreachable("connection refused"), "connection refused"),
        (ZeroDivisionError("oops"), "unexpected ZeroDivisionError: oops"),
    ],
)
async def test_failing_source_costs_only_itself(make: Make, error: Exception, reported: str) -> None:
    """Partial data at 3 a.m. beats an empty page; an exception that no source may raise is reported like a failure."""
    broken, fine = ScriptedSource("broken", "1"), ScriptedSource("fine", "2")
    broken.error = error
    shown = await make(broken, fine).snapshot(LONG)
    assert up(shown) == {"broken": False, "fine": True}
    assert shown.sources[0].error == reported


async def test_what_a_source_noticed_is_reported(make: Make) -> None:
    """What is wrong with an answer that could be read, and what to check, reach the diagnosis."""
    source = ScriptedSource()
    source.table = replace(source.table, remark="odd", hint="look there")
    (health,) = (await make(source).snapshot(LONG)).sources
    assert (health.up, health.remark, health.hint) == (True, "odd", "look there")


async def test_one_log_line_for_each_change_of_state(make: Make) -> None:
    """A broker that is down for a day is two lines; how much it gave last is remembered."""
    source = ScriptedSource()
    collection = make(source, max_age=0)
    with capture_logs() as lines:
        for failing in (False, False, True, True, False):
            source.error = source.fail() if failing else None
            shown = await collection.snapshot(LONG)
            assert shown.sources[0].readings == 1
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("info", "source is up"),
        ("warning", "source is down"),
        ("info", "source is up again"),
    ]


async def test_node_that_is_read_twice_counts_once(make: Make) -> None:
    """Two sources for one node id would double every total: the second is shown as down."""
    first, second = ScriptedSource("a", "1"), ScriptedSource("b", "1")
    shown = await make(first, second).snapshot(LONG)
    assert up(shown) == {"a": True, "b": False}
    assert len(shown.entities) == 1


async def test_first_collection_waits_for_limits() -> None:
    """Without limits left-over beans could not be distinguished from live ones."""
    limits = ScriptedLimits()
    limits.answers.clear()
    refresh = LimitsRefresh(limits, timeout_seconds=LONG)
    collection = Collection([ScriptedSource()], refresh)
    reading = asyncio.create_task(refresh.refresh())
    task = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    assert not task.done()
    limits.answers.set()
    assert (await task).limits is not None
    await reading
    await collection.close()


async def test_first_collection_does_not_wait_for_limits_beyond_its_deadline() -> None:
    """An Admin API that hangs does not keep usage from being shown."""
    refresh = LimitsRefresh(ScriptedLimits(), timeout_seconds=LONG)
    collection = Collection([ScriptedSource()], refresh)
    shown = await collection.snapshot(0.01)
    assert shown.limits is None
    assert up(shown) == {"broker-1": True}
    await collection.close()


async def test_defect_of_the_join_is_reported_and_the_next_try_is_fresh(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot that cannot be made is an error for those who asked, and for no one after them."""
    collection = make(ScriptedSource())

    def fail(*_: object) -> Snapshot:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Join, "snapshot", fail)
        with pytest.raises(ZeroDivisionError):
            await collection.snapshot(LONG)
    assert up(await collection.snapshot(LONG)) == {"broker-1": True}


async def test_close_ends_what_is_under_way(make: Make) -> None:
    """Reads are canceled, connections released, no task is left."""
    source = ScriptedSource()
    source.answers.clear()
    collection = make(source)
    task = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    await collection.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (source.canceled, source.closed) == (1, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_no_task_is_left_after_the_end(make: Make) -> None:
    """But for a read that goes on in the background, which ends with the collection."""
    slow, quick = ScriptedSource("slow", "1"), ScriptedSource("quick", "2")
    slow.answers.clear()
    collection = make(slow, quick, patience=0.01)
    await collection.snapshot(0.01)
    await turn()
    assert len(asyncio.all_tasks()) == 2
    await collection.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert slow.canceled == 1


async def test_entities_are_folded_once_for_each_snapshot() -> None:
    """What a scrape sees is within the cap, and shared like everything else."""
    source = ScriptedSource()
    source.table = table("1", alice=1.0, bob=2.0, carol=4.0)
    kept = Cardinality(CardinalityConfig(max_entities=1))
    collection = Collection([source], LimitsRefresh(), LONG, cardinality=kept)
    shown = await collection.snapshot(LONG)
    amounts = {each.entity.user: each.usage for each in shown.entities}
    assert amounts == {"carol": 4.0, OVERFLOW: 3.0}
    assert await collection.snapshot(LONG) is shown
    await collection.close()


async def test_a_snapshot_shows_how_the_exporter_does_at_its_moment() -> None:
    """It is asked once for each, and no snapshot changes afterwards."""
    asked: list[OwnHealth] = []

    def own() -> OwnHealth:
        number = len(asked)
        asked.append(
            OwnHealth(
                discoveries=(DiscoveryHealth(name=f"look {number}"),),
                push=PushHealth(exports_total={"success": number}),
                reload=ReloadHealth(succeeded_at=float(number)),
                restarts={"limits": number},
            )
        )
        return asked[-1]

    collection = Collection([ScriptedSource()], LimitsRefresh(), 0, own=own)
    for number in range(2):
        shown = await collection.snapshot(LONG)
        assert len(asked) == number + 1
        for field in fields(OwnHealth):
            assert getattr(shown, field.name) == getattr(asked[-1], field.name)
    await collection.close()
