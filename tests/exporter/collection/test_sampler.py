from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import snapshot

from quotascope.exporter.collection import Sampler
from quotascope.exporter.snapshot import Sampling, Snapshot


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


async def sampled(collection: Timed, before: Sampling | None = None) -> Sampling:
    """Sample every 5 s until the collection has no more."""
    sampler = Sampler(collection.snapshot, 5.0, 9.0, before)
    with pytest.raises(asyncio.CancelledError):
        await sampler.run(lambda: collection.now, collection.pause)
    return sampler.sampling


@pytest.mark.parametrize(
    ("takes", "before", "after", "began"),
    [
        ([0.1, 4.9, 0.0, 1.0], None, Sampling(samples=4, missed=0), [5.0, 10.0, 15.0, 20.0]),
        # nothing piles up: the next sample comes at the next time on the grid, and those left out are counted
        ([13.0, 0.0], None, Sampling(samples=2, missed=2), [5.0, 20.0]),
        # counters do not begin again with a sampler
        ([0.1, 5.1], Sampling(samples=7, missed=2), Sampling(samples=9, missed=3), [5.0, 10.0]),
    ],
)
async def test_steady_pace(takes: list[float], before: Sampling | None, after: Sampling, began: list[float]) -> None:
    """A read that takes a while does not move the next one."""
    collection = Timed(*takes)
    assert await sampled(collection, before) == after
    assert collection.began == began


async def test_failure_is_reported_and_does_not_count() -> None:
    """A defect ends one sample, not the sampling."""
    collection = Timed(0.0, 0.0)
    collection.fails = True
    with capture_logs() as lines:
        assert await sampled(collection) == Sampling(samples=0, missed=0)
    assert [line["event"] for line in lines] == ["a sample failed"] * 2
