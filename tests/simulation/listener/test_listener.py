"""A few seeds of the simulation of the Spark listener, what it found, and the mistakes that it finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from secrets import randbelow
from typing import Any

import pytest

from quotascope.clients.accounting import ThrottleAccount
from quotascope.spark_listener.event_log import log
from quotascope.spark_listener.job import Job, attempts, queries, throttles
from quotascope.spark_listener.job.recent import Recent
from quotascope.spark_listener.sources.pull import PullSource

from .simulation import Broken, simulate

FOUND = (5, 32)
"""
Seeds that showed something once.

The end of the application raised beside executors that are gone already; lost executors went back with it; the counts
of a forgotten query left its name.
"""
MOST = 80
"""Seeds that a mutant may take to be found."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted({*FOUND, *range(30)}))
def test_a_seed(seed: int, tmp_path: Path) -> None:
    """Whatever happens to events, nothing raises, no counter goes back, and losses are reported."""
    simulate(seed, tmp_path)


@pytest.mark.slow
def test_new_seeds(tmp_path: Path) -> None:
    """Seeds of this run hold; the message of one that does not hold names it."""
    for _ in range(10):
        simulate(randbelow(10**9), tmp_path)


def refused_not_counted(patched: pytest.MonkeyPatch) -> None:
    count = PullSource._count
    patched.setattr(PullSource, "_count", lambda self, skipped, _refused: count(self, skipped, 0))


def drops_not_counted(patched: pytest.MonkeyPatch) -> None:
    def changed(self: PullSource, skipped: int, refused: int) -> None:
        before, self._counts = self._counts, (skipped, refused, 0)
        self._job.passed(skipped - before[0])
        self._job.lost(refused - before[1])

    patched.setattr(PullSource, "_count", changed)


def counted_again(patched: pytest.MonkeyPatch) -> None:
    """The totals of the queue are added at each fetch."""
    patched.setattr(PullSource, "_count", lambda self, skipped, refused: self._job.passed(skipped + refused))


def unreadable_not_counted(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Job, "lost", lambda *_, **__: None)


def lost_ends_forgotten(patched: pytest.MonkeyPatch) -> None:
    lost = Job.lost
    patched.setattr(Job, "lost", lambda self, events, **_: lost(self, events, ends=False))


def retried_twice(patched: pytest.MonkeyPatch) -> None:
    """An attempt counts as a retry when it starts and when it ends."""

    class Forgetful(Recent[int, None]):
        def __setitem__(self, key: int, value: None) -> None: ...

    begin = attempts.AttemptCounts.__init__

    def changed(self: attempts.AttemptCounts) -> None:
        begin(self)
        self._running = Forgetful(1)

    patched.setattr(attempts.AttemptCounts, "__init__", changed)


def note_replaced(patched: pytest.MonkeyPatch) -> None:
    """The notes of a query's next attempt replace those before."""

    def changed(self: throttles.ThrottleNotes, query: str, totals: Any) -> None:
        account = self._accounts[query] = ThrottleAccount(1_000, self._clock)
        for row in totals:
            account.add(row)

    patched.setattr(throttles.ThrottleNotes, "add", changed)


def unreported_forgotten(patched: pytest.MonkeyPatch) -> None:
    """Attempts without a report that ended before the first report of their stage do not count."""

    def changed(self: attempts.UnreportedAttempts, stage: int) -> None:
        self._reporting[stage] = None

    patched.setattr(attempts.UnreportedAttempts, "reports", changed)


def last_read_forgotten(patched: pytest.MonkeyPatch) -> None:
    def changed(self: throttles.LastRead) -> bool:
        try:
            self.totals = tuple(self._read())
        except OSError:
            self.totals = ()
        self.seen = self._kind if self.totals else None
        return True

    patched.setattr(throttles.LastRead, "update", changed)


def unbounded(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Recent, "__setitem__", dict.__setitem__)


def lost_executors_go_back(patched: pytest.MonkeyPatch) -> None:
    count: Any = property(lambda self: self._executors.count, lambda *_: None)
    patched.setattr(Job, "_executors_lost", count, raising=False)


def forgotten_with_its_name(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(queries, "_FORGOTTEN", 0)


def end_raises(patched: pytest.MonkeyPatch) -> None:
    """The end of the application changes the entries that it goes through."""

    def changed(self: attempts.LostExecutors, application: Any) -> None:
        for executor, time in self._gone.items():
            if time is not None and time >= application.time:
                self._gone[executor] = None
                self.count -= 1

    patched.setattr(attempts.LostExecutors, "ended", changed)


def retries_left_out_of_logs(patched: pytest.MonkeyPatch) -> None:
    """A log leaves out later attempts like first ones."""
    pattern = log._FIRST_ATTEMPT.pattern.replace(b'"Attempt":0', rb'"Attempt":\d+')
    patched.setattr(log, "_FIRST_ATTEMPT", re.compile(pattern))


def counted_after_the_end(patched: pytest.MonkeyPatch) -> None:
    """Executors that the end of the application takes along count as lost."""
    patched.setattr(attempts.LostExecutors, "ended", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        (refused_not_counted, "events .* are counted"),
        (drops_not_counted, "events .* are counted"),
        (counted_again, "events .* are counted"),
        (unreadable_not_counted, "events .* are counted"),
        (lost_ends_forgotten, "are called complete"),
        (retried_twice, "retries"),
        (note_replaced, "goes back|throttle times are"),
        (unreported_forgotten, "unknown.attempts"),
        (last_read_forgotten, "the counter .*throttled.* goes back|throttle times are"),
        (unbounded, "entries are kept"),
        (lost_executors_go_back, "the counter .*executors_lost.* goes back"),
        (forgotten_with_its_name, "the counter .* goes back"),
        (end_raises, "dictionary keys changed|executors"),
        (retries_left_out_of_logs, "retries is .* live, and .* of the log"),
        (counted_after_the_end, "lost executors"),
    ],
)
def test_mutants_are_found(
    mutant: Callable[[pytest.MonkeyPatch], None], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A mistake of its kind is found within a few seeds."""
    mutant(monkeypatch)
    with pytest.raises(Broken, match=message):
        _seeds((*FOUND, *range(MOST)), tmp_path)


def _seeds(seeds: Iterable[int], folder: Path) -> None:
    for seed in seeds:
        simulate(seed, folder)
