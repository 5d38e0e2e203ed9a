from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import NOW, ScriptedLimits, ScriptedSource, limits, rates, table

from quotascope.exporter.api.answers import health_document
from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import Collection
from quotascope.exporter.collection.reads import STALE_AFTER_SECONDS
from quotascope.exporter.config import CardinalityConfig
from quotascope.exporter.diagnosis.findings import diagnose
from quotascope.exporter.errors import SourceUnreachable
from quotascope.exporter.exposition import Renderer
from quotascope.exporter.join.join import FEW, Join
from quotascope.exporter.join.placing import Placing
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.snapshot import DiscoveryHealth, OwnHealth, PushHealth, ReloadHealth, Snapshot
from quotascope.metrics.catalog import OVERFLOW

LONG = 60.0
"""Seconds that no test waits."""
Make = Callable[..., Collection]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Return a function that makes collections without a cache, and close them."""
    collections: list[Collection] = []

    def collection(
        *sources: ScriptedSource,
        limits: LimitsRefresh | None = None,
        max_age: float = 0,
        patience: float = LONG,
        **options: Any,
    ) -> Collection:
        limits = limits or LimitsRefresh()
        times = {"clock": lambda: NOW, "steady": lambda: asyncio.get_running_loop().time()}
        collections.append(Collection(sources, limits, max_age, patience_seconds=patience, **times | options))
        return collections[-1]

    yield collection
    for made_collection in collections:
        await made_collection.close()


@pytest.fixture
def slow() -> ScriptedSource:
    """Node 1, which answers when the test lets it."""
    source = ScriptedSource("slow", "1")
    source.answers.clear()
    return source


@pytest.fixture
def quick() -> ScriptedSource:
    """Node 2, which answers at once."""
    return ScriptedSource("quick", "2")


class Clock:
    def __init__(self) -> None:
        self._real = asyncio.get_running_loop().time
        self._set: float | None = None

    def __call__(self) -> float:
        return self._real() if self._set is None else self._set

    def move(self, seconds: float) -> None:
        self._set = self() + seconds


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clock]:
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "time", clock)
        yield clock


async def turn() -> None:
    """Let every task that can run do so."""
    for _ in range(60):
        await asyncio.sleep(0)


async def begun(collection: Collection) -> asyncio.Task[Snapshot]:
    task = asyncio.create_task(collection.snapshot(LONG))
    await turn()
    return task


def up(snapshot: Snapshot) -> dict[str, bool]:
    return {source.name: source.up for source in snapshot.sources}


async def test_snapshot_of_all_sources(make: Make, slow: ScriptedSource, quick: ScriptedSource) -> None:
    """Every source is read once, at the same time, and joined. Remarks about an answer reach the diagnosis."""
    quick.table = replace(quick.table, node_id="2", remark="odd", hint="look there")
    task = await begun(make(slow, quick))
    assert quick.reads == 1
    slow.answers.set()
    state = await task
    assert [usage.entity.broker for usage in state.entities] == ["1", "2"]
    assert up(state) == {"slow": True, "quick": True}
    assert [(health.remark, health.hint) for health in state.sources] == [(None, None), ("odd", "look there")]
    assert state.taken_at == NOW
    assert (slow.reads, quick.reads) == (1, 1)


@pytest.mark.parametrize(("max_age", "reads"), [(LONG, 1), (0, 2)])
async def test_fresh_snapshot_is_given_again(make: Make, quick: ScriptedSource, max_age: float, reads: int) -> None:
    """A fresh snapshot answers two Prometheus servers; one that is older than allowed is read again."""
    collection = make(quick, max_age=max_age)
    assert (await collection.snapshot(LONG) is await collection.snapshot(LONG)) == (reads == 1)
    assert quick.reads == reads


async def test_age_counts_from_the_start_of_a_read(make: Make, slow: ScriptedSource, clock: Clock) -> None:
    """Numbers whose read took longer than their maximal age are not returned twice."""
    collection = make(slow, max_age=10)
    task = await begun(collection)
    clock.move(10)
    slow.answers.set()
    await task
    await collection.snapshot(LONG)
    assert slow.reads == 2


async def test_scrapes_at_the_same_time_share_one_collection(make: Make, slow: ScriptedSource) -> None:
    """Scrapes at the same time share a collection, which goes on when one of their clients hangs up."""
    collection = make(slow)
    leaving, *staying = [await begun(collection) for _ in range(5)]
    leaving.cancel()
    await turn()
    slow.answers.set()
    states = await asyncio.gather(*staying)
    assert all(state is states[0] for state in states)
    assert up(states[0]) == {"slow": True}
    assert (slow.reads, slow.canceled) == (1, 0)


async def test_source_that_takes_long_is_read_in_the_background(make: Make, slow: ScriptedSource) -> None:
    """A slow source is read once and to its end, and its numbers are in the next scrape, marked as older."""
    collection = make(slow, patience=0.01)
    for _ in range(2):
        (health,) = (await collection.snapshot(0.01)).sources
        assert not health.up
        assert (health.error or "").startswith("no answer after ")
    slow.answers.set()
    await turn()
    slow.answers.clear()
    slow.table = table("1", alice=2.0)
    state = await collection.snapshot(0.01)
    (health,) = state.sources
    assert (health.up, health.late) == (True, True)
    assert health.read_at is not None
    assert NOW - LONG < health.read_at < NOW
    assert [usage.usage for usage in state.entities] == [1.0]
    assert any("has not answered yet" in finding.text for finding in diagnose(state))
    slow.answers.set()
    await turn()
    state = await collection.snapshot(LONG)
    assert [usage.usage for usage in state.entities] == [2.0]
    assert not state.sources[0].late
    assert (slow.reads, slow.canceled) == (3, 0)


async def test_old_numbers_of_a_source_go(make: Make, quick: ScriptedSource, clock: Clock) -> None:
    """Numbers of a source are shown until two minutes after they were asked for."""
    collection = make(quick)
    clock.move(0)
    await collection.snapshot(LONG)
    quick.answers.clear()
    for later, is_shown in ((STALE_AFTER_SECONDS - 1, True), (2, False)):
        clock.move(later)
        state = await collection.snapshot(0.0)
        assert up(state) == {"quick": is_shown}
        assert len(state.entities) == is_shown
    assert "older than 120 s" in (state.sources[0].error or "")


@pytest.mark.parametrize("step", [3_600.0, -3_600.0])
async def test_a_clock_that_is_set_changes_no_age(make: Make, quick: ScriptedSource, clock: Clock, step: float) -> None:
    """A clock that is set changes no age of sources or limits on any page, and a fresh snapshot stays fresh."""
    ahead = 0.0

    def wall() -> float:
        return NOW + clock() + ahead

    clock.move(0)
    limits = LimitsRefresh(ScriptedLimits(), clock=wall, steady=clock)
    collection = make(quick, limits=limits, clock=wall, steady=clock)
    await limits.refresh()
    await collection.snapshot(LONG)
    quick.answers.clear()
    for later in (7.0, STALE_AFTER_SECONDS - 8):
        ahead += step
        clock.move(later)
        shown = await collection.snapshot(0.0)
    age = STALE_AFTER_SECONDS - 1
    assert shown.taken_at == wall()
    (source,) = shown.sources
    assert source.up
    assert shown.taken_at - (source.read_at or 0.0) == pytest.approx(age, abs=1e-5)
    assert shown.limits_health.age_seconds(shown.taken_at) == pytest.approx(age, abs=1e-5)
    late = replace(shown, sources=(replace(source, late=True, pending=False),))
    assert [finding.text for finding in diagnose(late) if f"its values are {age:.0f} s old" in finding.text]
    ahead += step
    clock.move(3.0)
    document = health_document(shown)
    assert document.taken_at - (document.limits.read_at or 0.0) == pytest.approx(age, abs=1e-5)
    lines = Renderer().render(shown, shown.time_at(clock())).decode().splitlines()
    samples = (line.split(" ") for line in lines if "_age_seconds" in line and not line.startswith("#"))
    ages = {name: float(value) for name, value in samples}
    assert ages == {
        "quotascope_snapshot_age_seconds": pytest.approx(3.0, abs=1e-5),
        "quotascope_limits_age_seconds": pytest.approx(age + 3, abs=1e-5),
        'quotascope_source_age_seconds{source="quick"}': pytest.approx(age + 3, abs=1e-5),
    }


@pytest.mark.parametrize("fails", [True, False])
async def test_source_that_took_long_is_not_waited_for(
    make: Make, slow: ScriptedSource, quick: ScriptedSource, clock: Clock, *, fails: bool
) -> None:
    """A source that answered or failed late is not waited for again, and others' numbers are there at once."""
    slow.error = slow.fail() if fails else None
    collection = make(slow, quick)
    first_task = await begun(collection)
    clock.move(LONG / 2 + 1)
    slow.answers.set()
    assert up(await first_task) == {"slow": not fails, "quick": True}
    slow.answers.clear()
    second = await begun(collection)
    assert second.done()
    assert up(await second) == {"slow": not fails, "quick": True}


async def test_a_source_that_took_its_time_to_fail_is_waited_for_a_second(
    make: Make, slow: ScriptedSource, quick: ScriptedSource, clock: Clock
) -> None:
    """A source that failed slowly is waited for a second at most, and is shown by the next scrape once it is up."""
    slow.fail()
    collection = make(slow, quick)
    first_task = await begun(collection)
    clock.move(2.0)
    slow.answers.set()
    assert up(await first_task) == {"slow": False, "quick": True}
    slow.answers.clear()
    slow.error = None
    second = await begun(collection)
    assert not second.done()
    clock.move(1.01)
    assert up(await second) == {"slow": False, "quick": True}
    slow.answers.set()
    await turn()
    assert up(await collection.snapshot(LONG)) == {"slow": True, "quick": True}


async def test_read_that_fails_late_again_and_again_is_waited_for_once(
    make: Make, slow: ScriptedSource, quick: ScriptedSource, clock: Clock
) -> None:
    """Collections wait for a source that fails late once, and not again until a read of it ends early."""
    slow.fail()
    collection = make(slow, quick)
    first_task = await begun(collection)
    assert not first_task.done()
    for passed, ends in ((1, False), (1, True), (LONG, True), (LONG, False)):
        clock.move(LONG / 2 + passed)
        assert up(await first_task) == {"slow": False, "quick": True}
        if ends:
            slow.answers.set()
            await turn()
            slow.answers.clear()
        first_task = await begun(collection)
        assert first_task.done()
    assert (slow.reads, quick.reads) == (3, 5)


async def test_source_that_took_long_once_is_waited_for_when_nothing_else_can_be_shown(
    make: Make, slow: ScriptedSource, clock: Clock
) -> None:
    """A single slow read makes no source look down where scrapes are further apart than numbers are shown."""
    collection = make(slow)
    first_task = await begun(collection)
    clock.move(LONG / 2 + 1)
    slow.answers.set()
    assert up(await first_task) == {"slow": True}
    clock.move(STALE_AFTER_SECONDS - LONG / 2)
    slow.answers.clear()
    second = await begun(collection)
    assert not second.done()
    slow.answers.set()
    assert up(await second) == {"slow": True}


async def test_source_that_is_always_slower_than_rare_scrapes_can_wait_has_advice(
    make: Make, slow: ScriptedSource, clock: Clock
) -> None:
    """A source whose reads always end after their scrape, too early for the next one, is shown with advice."""
    collection = make(slow)
    first_task = await begun(collection)
    clock.move(40)
    await first_task
    slow.answers.set()
    await turn()
    slow.answers.clear()
    clock.move(STALE_AFTER_SECONDS)
    second = await begun(collection)
    clock.move(LONG / 2 + 1)
    assert "The last one took 40.0 s: raise Prometheus's scrape_timeout" in str((await second).sources[0].error)


async def test_impatient_scrapes_are_no_news_of_a_source(
    make: Make, slow: ScriptedSource, quick: ScriptedSource
) -> None:
    """Collections that scrapes cut short change nothing of a source, which patient scrapes still read in full."""
    collection = make(slow, quick)
    with capture_logs() as lines:
        for round_ in (1, 2):
            slow.answers.clear()
            for _ in range(10):
                hasty = await collection.snapshot(0.001)
                await turn()
            assert up(hasty) == {"slow": round_ > 1, "quick": True}
            patient = await begun(collection)
            await collection.snapshot(0.001)
            slow.answers.set()
            state = await patient
            assert up(state) == {"slow": True, "quick": True}
            assert not any(health.pending or health.late for health in state.sources)
            assert (slow.reads, slow.canceled) == (round_, 0)
    reported = [(line["event"], line["source"]) for line in lines]
    assert sorted(reported) == [("source is up", "quick"), ("source is up", "slow")]


async def test_source_that_hangs_is_down_however_impatient_scrapes_are(make: Make, slow: ScriptedSource) -> None:
    """A source that hangs is down after the time to wait for it, although no collection lasts that long."""
    collection = make(slow, patience=0.02)
    with capture_logs() as lines:
        for _ in range(10):
            await collection.snapshot(0.005)
            await turn()
    assert [line["event"] for line in lines] == ["source is down"]
    assert (slow.reads, slow.canceled) == (1, 0)


async def test_collection_that_no_scrape_waits_for_gives_way(
    make: Make, slow: ScriptedSource, quick: ScriptedSource
) -> None:
    """A collection that no scrape waits for is given up, so that the next one has no old numbers of it."""
    collection = make(slow, quick)
    for _ in range(2):
        await collection.snapshot(0.001)
        await turn()
    assert (slow.reads, quick.reads, slow.canceled) == (1, 2, 0)


async def test_close_ends_what_is_under_way(make: Make, slow: ScriptedSource, quick: ScriptedSource) -> None:
    """Closing cancels a running collection and reads in the background, and releases their connections."""
    collection = make(slow)
    task = await begun(collection)
    await collection.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (slow.canceled, slow.closed) == (1, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    collection = make(slow, quick, max_age=LONG, patience=0.01)
    await collection.snapshot(0.01)
    await turn()
    assert len(asyncio.all_tasks()) == 2
    await collection.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert slow.canceled == 2


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (SourceUnreachable("connection refused"), "connection refused"),
        (ZeroDivisionError("oops"), "unexpected ZeroDivisionError: oops"),
    ],
)
async def test_failing_source_costs_only_itself(
    make: Make, quick: ScriptedSource, error: Exception, reported: str
) -> None:
    """A failing source costs only its own data, even if it raises an exception that no source may raise."""
    broken = ScriptedSource("broken", "1")
    broken.error = error
    state = await make(broken, quick).snapshot(LONG)
    assert up(state) == {"broken": False, "quick": True}
    assert state.sources[0].error == reported


async def test_one_log_line_for_each_change_of_state(make: Make, quick: ScriptedSource) -> None:
    """A source that goes down and comes back is two log lines, and its last number of values is remembered."""
    collection = make(quick)
    with capture_logs() as lines:
        for failing in (False, False, True, True, False):
            quick.error = quick.fail() if failing else None
            state = await collection.snapshot(LONG)
            assert state.sources[0].readings == 1
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("info", "source is up"),
        ("warning", "source is down"),
        ("info", "source is up again"),
    ]


async def test_first_collection_waits_for_limits(make: Make, quick: ScriptedSource) -> None:
    """The first collection waits for the limits, which distinguish left-over beans from live ones."""
    limits = ScriptedLimits()
    limits.answers.clear()
    refresh = LimitsRefresh(limits, timeout_seconds=LONG)
    reading = asyncio.create_task(refresh.refresh())
    task = await begun(make(quick, limits=refresh))
    assert not task.done()
    limits.answers.set()
    assert (await task).limits is not None
    await reading


async def test_first_collection_does_not_wait_for_limits_beyond_its_deadline(make: Make, quick: ScriptedSource) -> None:
    """An Admin API that hangs does not keep usage from being shown."""
    collection = make(quick, limits=LimitsRefresh(ScriptedLimits(), timeout_seconds=LONG))
    patient = await begun(collection)
    state = await collection.snapshot(0.0)
    assert state.limits is None
    assert up(state) == {"quick": True}
    assert not patient.done()
    patient.cancel()


async def test_defect_of_the_join_is_reported_and_the_next_try_is_fresh(
    make: Make, quick: ScriptedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed snapshot is an error for the scrapes that waited for it, and for no later one."""
    collection = make(quick, max_age=LONG)

    def fail(*_: object) -> Snapshot:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Join, "snapshot", fail)
        with pytest.raises(ZeroDivisionError):
            await collection.snapshot(LONG)
    assert up(await collection.snapshot(LONG)) == {"quick": True}


async def test_entities_are_folded_once_for_each_snapshot(make: Make, quick: ScriptedSource) -> None:
    """A scrape sees entities within the cap, and shares them like everything else."""
    quick.table = table("1", alice=1.0, bob=2.0, carol=4.0)
    collection = make(quick, max_age=LONG, cardinality=Cardinality(CardinalityConfig(max_entities=1)))
    state = await collection.snapshot(LONG)
    assert {entity_usage.entity.user: entity_usage.usage for entity_usage in state.entities} == {
        "carol": 4.0,
        OVERFLOW: 3.0,
    }
    assert await collection.snapshot(LONG) is state


async def test_a_snapshot_shows_how_the_exporter_does_at_its_moment(make: Make, quick: ScriptedSource) -> None:
    """The health is asked for once for each snapshot, and no snapshot changes afterwards."""
    health_reports: list[OwnHealth] = []

    def own() -> OwnHealth:
        number = len(health_reports)
        health_reports.append(
            OwnHealth(
                discoveries=(DiscoveryHealth(name=f"look {number}"),),
                push=PushHealth(exports_total={"success": number}),
                reload=ReloadHealth(succeeded_at=float(number)),
                restarts={"limits": number},
            )
        )
        return health_reports[-1]

    collection = make(quick, own_health=own)
    for number in range(2):
        state = await collection.snapshot(LONG)
        assert len(health_reports) == number + 1
        for field in fields(OwnHealth):
            assert getattr(state, field.name) == getattr(health_reports[-1], field.name)


@pytest.mark.parametrize("change", ["start", "other quotas"])
async def test_many_entities_are_placed_beside_the_event_loop(
    make: Make, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Many entities are placed in a thread: the event loop runs on, and impatient requests get all or none of them."""
    loop_thread, entered, go = threading.get_ident(), threading.Event(), threading.Event()
    place = Placing.place

    def held(placing: Placing, *arguments: Any) -> object:
        if threading.get_ident() != loop_thread:
            entered.set()
            assert go.wait(LONG)
        return place(placing, *arguments)

    many, refresh = ScriptedSource(), LimitsRefresh()
    many.table = rates("1", {f"user-{number}": 1.0 for number in range(FEW + 1)})
    collection = make(many, limits=refresh)
    if change == "other quotas":
        await collection.snapshot(LONG)
        refresh.read_from(ScriptedLimits(limits()), LONG, LONG)
        await refresh.refresh()
    monkeypatch.setattr(Placing, "place", held)
    task = await begun(collection)
    assert await asyncio.to_thread(entered.wait, LONG)
    hasty = asyncio.create_task(collection.snapshot(0))
    await turn()
    assert not task.done()
    assert not hasty.done()
    go.set()
    for state in await asyncio.gather(task, hasty):
        assert len(state.columns.layout) == FEW + 1


async def test_few_entities_are_placed_at_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few entities are placed without a thread, which would cost more than it spares."""
    threads: set[int] = set()
    place = Placing.place

    def noted(placing: Placing, *arguments: Any) -> object:
        threads.add(threading.get_ident())
        return place(placing, *arguments)

    monkeypatch.setattr(Placing, "place", noted)
    source = ScriptedSource()
    source.table = rates("1", {f"user-{number}": 1.0 for number in range(FEW)})
    await make(source).snapshot(LONG)
    assert threads == {threading.get_ident()}
