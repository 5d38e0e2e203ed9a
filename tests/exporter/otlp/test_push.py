"""The loop that pushes, with a sender that does as it is set."""

from __future__ import annotations

import asyncio
import threading

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import NOW, snapshot
from tests.exporter.otlp.scripted import ScriptedSender

from quotascope.exporter.otlp import push as module
from quotascope.exporter.otlp.push import (
    FORGET_AFTER_SECONDS,
    LONGEST_PAUSE_SECONDS,
    OtlpPush,
    PushCounts,
    PushResult,
    Starts,
)
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family


class World:
    def __init__(self, interval: float = 3600) -> None:
        self.sender = ScriptedSender()
        self.snapshot = snapshot()
        self.urls: list[str] = []
        self.push = OtlpPush(self._open, "http://c", interval, lambda: NOW)

    def _open(self, url: str) -> ScriptedSender:
        self.urls.append(url)
        return self.sender

    async def collect(self) -> Snapshot:
        return self.snapshot

    def start(self) -> None:
        self.push.start("http://here:9749", self.collect)

    async def hanging(self) -> None:
        self.sender.released.clear()
        self.start()
        await asyncio.to_thread(self.sender.began.wait)

    async def settled(self, pushes: int) -> None:
        counts = self.push.counts
        while sum(counts.health.exports_total.values()) < pushes:  # noqa: ASYNC110 - a push shows in counters alone
            await asyncio.sleep(0)


async def test_a_receiver_that_asks_for_a_pause_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next push comes after the pause that a receiver asks for, up to a sensible maximum."""
    pauses: list[float] = []
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        asleep.set()
        await asyncio.Event().wait()

    for requested, paused in ((90.0, 90.0), (1e9, LONGEST_PAUSE_SECONDS)):
        world = World(interval=0)
        world.sender.report = PushResult(lost=3, reason="HTTP 429", pause_seconds=requested)
        with monkeypatch.context() as patched:
            patched.setattr("quotascope.exporter.otlp.push.asyncio.sleep", sleep)
            world.start()
            await asleep.wait()
        await world.push.close()
        assert pauses.pop() == paused
        asleep.clear()


async def test_it_pushes_at_once_and_at_every_interval() -> None:
    """
    The first push comes at once, the others at every interval.

    An exporter that could not listen closes a push that never started.
    """
    await World().push.close()
    world = World(interval=0)
    world.start()
    await world.settled(3)
    await world.push.close()
    assert world.urls == ["http://here:9749"]
    assert world.sender.sent[0] == (world.snapshot, NOW)
    assert world.push.counts.health.points_total["accepted"] >= 3
    assert world.sender.closed == 1


@pytest.mark.parametrize(("report", "pushes"), [(PushResult(accepted=1), 2), (PushResult(lost=1, reason="no"), 1)])
async def test_the_last_snapshot_is_pushed_at_the_end(report: PushResult, pushes: int) -> None:
    """Events since the last interval are not lost; a collector that is down costs no time at the end."""
    world = World()
    world.sender.report = report
    world.start()
    await world.settled(1)
    await world.push.close()
    assert len(world.sender.sent) == pushes


async def test_a_push_under_way_is_the_last_one() -> None:
    """The end waits for a running push and does not begin another."""
    world = World()
    await world.hanging()
    asyncio.get_running_loop().call_later(0.02, world.sender.released.set)
    await world.push.close()
    assert len(world.sender.sent) == 1
    assert world.push.counts.health.exports_total["success"] == 1


async def test_a_hanging_receiver_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flush is bounded, and its thread keeps no process from exiting."""
    monkeypatch.setattr(module, "LONGEST_FLUSH_SECONDS", 0.02)
    world = World()
    await world.hanging()
    await world.push.close()
    assert (world.sender.closed, world.sender.sent) == (1, [])
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "otlp-push"]
    assert thread.daemon
    world.sender.released.set()
    await asyncio.to_thread(thread.join)


async def test_a_slow_push_keeps_no_scrape_waiting() -> None:
    """Sending runs beside the loop that answers scrapes, and never twice at once."""
    world = World(interval=0)
    await world.hanging()
    for _ in range(1_000):  # turns of the loop, none of which waits
        await asyncio.sleep(0)
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("otlp-push") == 1
    assert world.sender.threads == {"otlp-push"}
    world.sender.released.set()
    await world.push.close()


async def test_an_unexpected_error_is_a_failed_push() -> None:
    """An unexpected error is a failed push in the health, and the loop goes on."""
    world = World(interval=0)
    world.sender.error = RuntimeError("odd")
    with capture_logs():  # drawing tracebacks takes long
        world.start()
        await world.settled(2)
        world.sender.error = None
        await world.push.close()
    assert world.push.counts.health.exports_total["failure"] >= 2


GOOD = PushResult(accepted=10)
PARTIAL = PushResult(accepted=8, rejected=2, reason="too old")
BAD = PushResult(accepted=4, lost=6, reason="no connection")


def test_everything_is_counted_and_a_change_is_reported_once() -> None:
    """Pushes are counted by outcome and points by fate, from zero on; a new outcome is logged once."""
    ledger = PushCounts("http://c")
    assert ledger.health.exports_total == {"success": 0, "partial": 0, "failure": 0}
    assert ledger.health.points_total == {"accepted": 0, "rejected": 0, "lost": 0}
    with capture_logs() as lines:
        for report in (GOOD, GOOD, BAD, BAD, BAD, GOOD, PARTIAL, PARTIAL):
            ledger.add(report)
    assert ledger.health.exports_total == {"success": 3, "partial": 2, "failure": 3}
    assert ledger.health.points_total == {"accepted": 58, "rejected": 4, "lost": 18}
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("info", "metrics are pushed"),
        ("warning", "metrics cannot be pushed"),
        ("info", "metrics are pushed"),
        ("warning", "the receiver rejects some points"),
    ]
    assert lines[1]["error"] == "no connection"
    ledger.add(PushResult(reason="unexpected"))  # there was no snapshot to push
    assert (ledger.failing, ledger.health.exports_total["failure"]) == (True, 4)


async def test_another_push_counts_on() -> None:
    """Counters continue with another receiver, whose outcome is logged."""
    first_world, second = World(), World()
    first_world.push.counts.receiver = "d"
    await first_world.push.close()
    first_world.push.counts.add(BAD)
    second.push.resume(first_world.push.counts)
    counts = second.push.counts
    assert not counts.failing
    with capture_logs() as lines:
        counts.add(BAD)
    assert counts.health.points_total["lost"] == 12
    assert [line["receiver"] for line in lines] == ["http://c"]


ERRORS, OWN = catalog.THROTTLING_ERRORS, catalog.LIMITS_REFRESH_ERRORS
BROKER = b"1 CreateTopics"


@pytest.mark.parametrize(
    ("family", "began", "seen", "starts"),
    [
        (OWN, 5, [(3.0, 10), (4.0, 20)], [5, 5]),
        (OWN, 50, [(3.0, 10)], [10]),  # clocks may be set back
        (ERRORS, 5, [(3.0, 10), (3.0, 20), (4.0, 30)], [10, 10, 10]),
        (ERRORS, 5, [(3.0, 10), (9.0, 20), (1.0, 30), (2.0, 40)], [10, 10, 20, 20]),
        (OWN, 50, [(3.0, 10), (4.0, 20)], [10, 10]),
        (ERRORS, 5, [(3.0, 90), (4.0, 50), (5.0, 60)], [90, 50, 50]),
        (ERRORS, 5, [(3.0, 20), (4.0, 90), (5.0, 30)], [20, 20, 20]),  # the clock was set forth, and back
        (ERRORS, 5, [(3.0, 20), (4.0, 90), (1.0, 30), (2.0, 40)], [20, 20, 30, 30]),
    ],
)
def test_counters_have_a_start(family: Family, began: int, seen: list[tuple[float, int]], starts: list[int]) -> None:
    """
    A counter starts with the exporter, or with the first look.

    A restarted node counts since some time after the last look.
    """
    ledger = Starts(began)
    starts_of_series = [
        ledger.of(family, {BROKER: value}, seconds, steady) for steady, (value, seconds) in enumerate(seen)
    ]
    assert starts_of_series == [[start] for start in starts]


def test_series_do_not_share_a_start_and_are_forgotten() -> None:
    """Each series has a start of its own, and old series are forgotten."""
    starts = Starts(5)
    starts.of(ERRORS, {BROKER: 3.0}, 10, 0.0)
    starts.of(catalog.REQUEST_THROTTLED_SECONDS, {BROKER: 1.0}, 15, 5.0)
    both = {b"2 CreateTopics": 1.0, BROKER: 3.0}
    assert starts.of(ERRORS, both, 20, 10.0) == [20, 10]
    starts.forget(10.0 + FORGET_AFTER_SECONDS)
    assert starts.of(ERRORS, both, 30, 20.0) == [20, 10]
    starts.forget(21.0 + FORGET_AFTER_SECONDS)
    assert len(starts._counts) == 0
