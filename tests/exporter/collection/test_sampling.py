from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from math import inf, isnan, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.exporter.examples import snapshot, usage

from quotascope.exporter.collection import Sampler
from quotascope.exporter.collection.sampling import PeakKeeper
from quotascope.exporter.snapshot import EntityUsage, NodeUsage, Peaks, Sampling, Snapshot
from quotascope.metrics.kafka.entities import QuotaType


class Timed:
    """A collection whose snapshots take as long as the test says, on a clock of its own."""

    def __init__(self, *takes: float) -> None:
        self.now = 100.0
        self.takes = list(takes)
        self.began: list[float] = []
        self.fails = False

    async def snapshot(self, timeout_seconds: float) -> Snapshot:
        assert timeout_seconds == 9.0
        self.began.append(self.now - 100.0)
        self.now += self.takes.pop(0)
        if self.fails:
            raise ZeroDivisionError
        return snapshot()

    async def pause(self, seconds: float) -> None:
        if not self.takes:
            raise asyncio.CancelledError
        self.now += seconds


async def sampled(collection: Timed, sampling: Sampling | None = None) -> Sampling:
    """Sample every 5 s until the collection has no more."""
    sampler = Sampler(collection.snapshot, 5.0, 9.0, sampling)
    with pytest.raises(asyncio.CancelledError):
        await sampler.run(lambda: collection.now, collection.pause)
    return sampler.sampling


@pytest.mark.parametrize(
    ("takes", "old_counts", "new_counts", "began"),
    [
        ([0.1, 4.9, 0.0, 1.0], None, Sampling(samples=4, missed=0), [5.0, 10.0, 15.0, 20.0]),
        # nothing piles up: the next sample comes at the next time on the grid, and those left out are counted
        ([13.0, 0.0], None, Sampling(samples=2, missed=2), [5.0, 20.0]),
        # counters do not begin again with a sampler
        ([0.1, 5.1], Sampling(samples=7, missed=2), Sampling(samples=9, missed=3), [5.0, 10.0]),
    ],
)
async def test_steady_pace(
    takes: list[float], old_counts: Sampling | None, new_counts: Sampling, began: list[float]
) -> None:
    """Samples keep a steady interval, though a read takes a while."""
    collection = Timed(*takes)
    assert await sampled(collection, old_counts) == new_counts
    assert collection.began == began


async def test_failure_is_reported_and_does_not_count() -> None:
    """A defect ends one sample, not the sampling, and is not counted as a sample."""
    collection = Timed(0.0, 0.0)
    collection.fails = True
    with capture_logs() as lines:
        assert await sampled(collection) == Sampling(samples=0, missed=0)
    assert [line["event"] for line in lines] == ["a sample failed"] * 2


MUTATION = QuotaType.CONTROLLER_MUTATION
WINDOW = 60.0
ALICE = usage(limit=100.0, usage=0.0).entity


def used(amount: float, **changes: object) -> EntityUsage:
    """Return a snapshot in which alice used this amount of her 100 bytes/s."""
    entity_usage = EntityUsage(entity=ALICE, usage=amount)
    for name, value in changes.items():
        setattr(entity_usage, name, value)
    return entity_usage


def shown(amount: float) -> Snapshot:
    return snapshot(used(amount))


def greatest(peaks: Peaks, row: int = 0) -> float | None:
    value = float(peaks.utilization[row])
    return None if isnan(value) else value


class Samples:
    def __init__(self) -> None:
        self.keeper = PeakKeeper(WINDOW)

    def take(self, seconds: float, amount: float) -> float | None:
        return greatest(self.keeper.update(shown(amount), seconds))


@given(
    samples=st.lists(
        st.tuples(st.sampled_from((0.0, 1.0, 7.0, 15.0, 40.0, 90.0)), st.integers(0, 100))
    )
)  # fmt: skip
@example([(0.0, 90), (60.0, 20), (15.1, 30)])
def test_any_samples(samples: list[tuple[float, int]]) -> None:
    """A maximum is that of the samples of the last window, or of up to a quarter more."""
    keeper = Samples()
    seconds, taken = 0.0, []
    for pause, amount in samples:
        seconds += pause
        taken.append((seconds, amount / 100))
        maximum = keeper.take(seconds, amount)
        since = [WINDOW, WINDOW * 1.25]
        lowest, highest = (max(v for t, v in taken if seconds - t <= ago) for ago in since)
        assert maximum is not None
        assert lowest <= maximum <= highest


@pytest.mark.parametrize(("limit", "maximum"), [(1000.0, 0.9), (None, None)])
def test_limit_that_changes_in_between(limit: float | None, maximum: float | None) -> None:
    """The maximum is of ratios, each under the limit of its time; an entity without a limit has none."""
    keeper = PeakKeeper(WINDOW)
    keeper.update(shown(90), 0)
    later = snapshot(EntityUsage(entity=replace(ALICE, limit=limit), usage=100.0))
    assert greatest(keeper.update(later, 0)) == maximum


def test_node_that_missed_a_sample_keeps_its_maximum() -> None:
    """A broker too busy to answer was likely at its peak before: its entities come back with theirs, beside others."""
    keeper = PeakKeeper(WINDOW)
    bob = usage(user="bob", broker="2", limit=10.0, usage=5.0)
    keeper.update(snapshot(used(90), bob), 0)
    for number in range(5, 50, 5):
        passing = usage(user=f"a{number}", limit=10.0, usage=1.0)
        keeper.update(snapshot(bob, passing), number)
    peaks = keeper.update(snapshot(used(1), replace(bob, usage=1.0)), 50)
    assert peaks.utilization.tolist() == [0.9, 0.5]


def test_only_what_the_snapshot_shows_in_detail() -> None:
    """An entity that is folded, gone, or without detail has no maximum. Values without detail do not count."""
    keeper = PeakKeeper(WINDOW)
    keeper.update(shown(40), 0)
    assert greatest(keeper.update(snapshot(used(90, detailed=False)), 0)) is None
    assert len(keeper.update(snapshot(), 0).utilization) == 0
    assert greatest(keeper.update(shown(1), 0)) == 0.4


@pytest.mark.parametrize("amount", [nan, inf])
def test_no_maximum_is_no_number(amount: float) -> None:
    """A value that is no finite number never becomes a maximum."""
    samples = Samples()
    assert samples.take(0, amount) is None
    assert samples.take(1, 20) == 0.2
    assert samples.take(2, amount) == 0.2


def test_burst_and_delay_queues() -> None:
    """The used part of a burst and the delay queue of a present node keep their maximum for the window."""
    bob = usage(MUTATION, "bob", limit=2.0, burst_tokens=20.0, tokens=20.0)
    nodes = {size: (NodeUsage(broker="1", delay_queue_size={QuotaType.PRODUCE: size}),) for size in (0.0, 7.0, nan)}
    keeper = PeakKeeper(WINDOW)
    debt = EntityUsage(entity=bob.entity, tokens=-5.0)
    keeper.update(snapshot(debt, nodes=nodes[7.0]), 0)
    assert keeper.update(snapshot(nodes=()), 10).delay_queue_size == {}
    for size in (0.0, nan):
        peaks = keeper.update(snapshot(bob, nodes=nodes[size]), 20)
        assert peaks.burst_used.tolist() == [1.25]
        assert peaks.delay_queue_size == {("1", QuotaType.PRODUCE): 7.0}
    peaks = keeper.update(snapshot(bob, nodes=nodes[0.0]), 100)
    assert peaks.delay_queue_size == {("1", QuotaType.PRODUCE): 0.0}


def test_names_that_come_and_go_take_no_memory() -> None:
    """Passing client ids are kept for no longer than the window, and the one that stays keeps its maximum."""
    keeper = PeakKeeper(WINDOW)
    names = count()
    for number in range(0, 3_000, 5):
        many = [usage(client_id=str(next(names)), limit=1.0, usage=1.0) for _ in range(10)]
        peaks = keeper.update(snapshot(used(10 if number % 60 else 90), *many), number)
        assert peaks.utilization.tolist() == [0.9] + [1.0] * len(many)
    assert len(keeper._utilization._places) <= 10 * (1.25 * WINDOW / 5 + 1) * 4 / 3 + 30


def test_each_maximum_is_of_its_own_column() -> None:
    """Limit and burst are filled at different moments, and by different amounts: neither maximum is the other's."""
    bob = usage(MUTATION, "bob", limit=2.0, burst_tokens=20.0, usage=0.5, tokens=16.0)
    keeper = PeakKeeper(WINDOW)
    keeper.update(snapshot(EntityUsage(entity=bob.entity, usage=1.5, tokens=18.0)), 0)
    keeper.update(snapshot(EntityUsage(entity=bob.entity, usage=0.25, tokens=-2.0)), 0)
    peaks = keeper.update(snapshot(bob), 0)
    assert peaks.utilization.tolist() == [0.75]
    assert peaks.burst_used.tolist() == [1.1]
