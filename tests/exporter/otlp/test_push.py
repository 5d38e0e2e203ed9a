"""The loop that pushes, with a sender that does as told."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.exporter.examples import NOW, snapshot

from quotascope.exporter.otlp import push as module
from quotascope.exporter.otlp.push import OtlpPush, PushResult
from quotascope.exporter.snapshot import Snapshot


class ScriptedSender:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.sent: list[tuple[Snapshot, float]] = []
        self.report = PushResult(accepted=1)
        self.error: Exception | None = None
        self.released = threading.Event()
        self.released.set()
        self.began = threading.Event()
        self.closed = 0
        self.threads: set[str] = set()

    def send(self, shown: Snapshot, now: float) -> PushResult:
        """As told."""
        self.began.set()
        self.threads.add(threading.current_thread().name)
        self.released.wait(20)
        self.sent.append((shown, now))
        if self.error is not None:
            raise self.error
        return self.report

    def close(self) -> None:
        """Count."""
        self.closed += 1


class World:
    """A push and what is around it."""

    def __init__(self, interval: float = 3600) -> None:
        self.sender = ScriptedSender()
        self.snapshot = snapshot()
        self.urls: list[str] = []
        self.push = OtlpPush(self._open, "http://c", interval, lambda: NOW)

    def _open(self, url: str) -> ScriptedSender:
        self.urls.append(url)
        return self.sender

    async def collect(self) -> Snapshot:
        """The snapshot of the collection that everybody shares."""
        return self.snapshot

    def start(self) -> None:
        """Begin."""
        self.push.start("http://here:9749", self.collect)

    async def settled(self, pushes: int) -> None:
        """Wait for so many results."""
        while sum(self.push.health.exports_total.values()) < pushes:  # noqa: ASYNC110 - a push tells nobody but its counters
            await asyncio.sleep(0)


async def test_it_pushes_at_once_and_at_every_interval() -> None:
    """Nobody waits a minute to see whether it works."""
    world = World(interval=0)
    world.start()
    await world.settled(3)
    await world.push.close()
    assert world.urls == ["http://here:9749"]
    assert world.sender.sent[0] == (world.snapshot, NOW)
    assert world.push.health.points_total["accepted"] >= 3
    assert world.sender.closed == 1


async def test_the_last_snapshot_is_pushed_at_the_end() -> None:
    """What happened since the last interval is not lost."""
    world = World()
    world.start()
    await world.settled(1)
    await world.push.close()
    assert len(world.sender.sent) == 2


async def test_the_end_does_not_try_a_receiver_that_is_down() -> None:
    """A down collector costs no time at the end either."""
    world = World()
    world.sender.report = PushResult(lost=1, reason="no")
    world.start()
    await world.settled(1)
    await world.push.close()
    assert len(world.sender.sent) == 1


async def test_a_push_under_way_is_the_last_one() -> None:
    """The end waits for it rather than begin another."""
    world = World()
    world.sender.released.clear()
    world.start()
    await asyncio.to_thread(world.sender.began.wait)
    asyncio.get_running_loop().call_later(0.02, world.sender.released.set)
    await world.push.close()
    assert len(world.sender.sent) == 1
    assert world.push.health.exports_total["success"] == 1


async def test_a_hanging_receiver_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The flush is bounded, and its thread keeps nobody from exiting."""
    monkeypatch.setattr(module, "LONGEST_FLUSH_SECONDS", 0.02)
    world = World()
    world.sender.released.clear()
    world.start()
    await asyncio.to_thread(world.sender.began.wait)
    await world.push.close()
    assert world.sender.closed == 1
    assert world.sender.sent == []
    (thread,) = [each for each in threading.enumerate() if each.name == "otlp-push"]
    assert thread.daemon
    world.sender.released.set()
    await asyncio.to_thread(thread.join)


async def test_a_slow_push_keeps_nobody_waiting() -> None:
    """Sending runs beside the loop that answers scrapes, and never twice at once."""
    world = World(interval=0)
    world.sender.released.clear()
    world.start()
    await asyncio.to_thread(world.sender.began.wait)
    for _ in range(1_000):  # turns of the loop, in which nobody is kept waiting
        await asyncio.sleep(0)
    names = [each.name for each in threading.enumerate()]
    assert names.count("otlp-push") == 1
    assert world.sender.threads == {"otlp-push"}
    world.sender.released.set()
    await world.push.close()


async def test_an_unexpected_error_is_a_failed_push() -> None:
    """The loop goes on, and the health tells."""
    world = World(interval=0)
    world.sender.error = RuntimeError("odd")
    world.start()
    await world.settled(2)
    world.sender.error = None
    world.sender.report = PushResult(accepted=1)
    await world.push.close()
    assert world.push.health.exports_total["failure"] >= 2


async def test_closing_what_never_started() -> None:
    """An exporter that could not listen closes all the same."""
    await World().push.close()


async def test_another_push_counts_on() -> None:
    """With another receiver, counters go on where they were."""
    first, second = World(), World()
    await first.push.close()
    first.push.counts.add(PushResult(accepted=3))
    second.push.resume(first.push)
    second.push.counts.add(PushResult(accepted=4))
    assert second.push.health.points_total["accepted"] == 7
    assert second.push.counts.receiver == "http://c"
