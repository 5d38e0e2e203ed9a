"""The demo follows the clock that it is given."""

import asyncio
from itertools import count

import pytest

from quotascope.demo import Simulation, run
from quotascope.demo.simulation import pause_ms
from quotascope.metrics import QuotaType

START_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("due_in_ms", "pause"), [(-5_000, 10), (3, 10), (40, 40), (5_000, 100)]
)
def test_pause(due_in_ms: int, pause: int) -> None:
    """Never so short that it costs much, never so long that a throttle would end late."""
    assert pause_ms(due_in_ms) == pause


async def test_runs_until_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients work as the clock goes on, without a break, until somebody ends it."""
    simulation = Simulation(START_MS)
    ticks = count(START_MS, 10)
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))
    task = asyncio.create_task(run(simulation, lambda: next(ticks)))
    while next(ticks) < START_MS + 5_000:
        await sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    names = simulation.registry.metrics()
    assert any(name.group == QuotaType.PRODUCE.group for name in names)
