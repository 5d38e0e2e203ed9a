"""A few seeds of the simulation of the exporter, what it found, and that each of its invariants can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from secrets import randbelow
from typing import Any

import numpy as np
import pytest

from quotascope.exporter.cardinality import Cardinality
from quotascope.exporter.collection import reads
from quotascope.exporter.join import usage
from quotascope.exporter.join.staleness import Staleness
from quotascope.exporter.join.usage import NodeCounters, UsageReader
from quotascope.exporter.limits.refresh import LimitsRefresh
from quotascope.exporter.otlp.push import OtlpPush
from quotascope.exporter.snapshot import Columns, Snapshot

from .invariants import Broken
from .simulation import simulate
from .world import EPOCH

FOUND = (37, 370, 209069329, 46668891, 912726116)
"""
Seeds that showed something once.

Counts of pushes and of sampling that began again after a reload had left these out for a while; counters that were far
too high in three answers, the first of them the highest; two sources of one node with the same name; a push that failed
at the moment of a reload, whose error nobody looked at.
"""
MOST = 60
"""Seeds that a mutant may take to be found, from the first one that showed it."""


@pytest.mark.slow
def test_seeds_that_found_something_hold(tmp_path: Path) -> None:
    """A seed that once found a defect passes."""
    for seed in FOUND:
        simulate(seed, tmp_path)


@pytest.mark.slow
def test_some_seeds_hold(tmp_path: Path) -> None:
    """Whatever agents, the Admin API, a discovery and a receiver do, the same seeds hold in each run."""
    assert sum(simulate(seed, tmp_path) for seed in range(20)) > 200


@pytest.mark.slow
def test_new_seeds_hold(tmp_path: Path) -> None:
    """Seeds of this run hold; the message of one that does not hold names it."""
    for _ in range(3):
        simulate(randbelow(10**9), tmp_path)


def old_numbers(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(reads, "STALE_AFTER_SECONDS", 1e9)


def zero_for_unknown(patched: pytest.MonkeyPatch) -> None:
    read = UsageReader.read

    def changed(self: UsageReader, values: Any) -> Columns:
        columns = read(self, values)
        object.__setattr__(columns, "usage", np.nan_to_num(columns.usage))
        return columns

    patched.setattr(UsageReader, "read", changed)


def faults_of_others(patched: pytest.MonkeyPatch) -> None:
    """A source that fails takes the answer of the one read after it."""
    failed = [False]
    read = reads._SourceReads.read

    async def changed(self: Any) -> None:
        await read(self)
        if failed[0] and self._last.table is not None:
            self._last = self._failure("of another source", 0.0)
        failed[0] = self._last.table is None

    patched.setattr(reads._SourceReads, "read", changed)


def counter_reset(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(NodeCounters, "sum_ms", lambda _self, _name, mean, count: float(round(mean * count)))


def absurd_counters_held(patched: pytest.MonkeyPatch) -> None:
    """A counter that was far too high once stays so."""
    patched.setattr(usage, "OVERDUE_SECONDS", 1e9)


def unknown_start_is_another(patched: pytest.MonkeyPatch) -> None:
    """A source that reports no start of its node has counters of its own."""
    begin = NodeCounters.begin
    patched.setattr(
        NodeCounters, "begin", lambda self, start, *times: begin(self, -1.0 if start is None else start, *times)
    )


def pushes_forgotten(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(OtlpPush, "resume", lambda *_: None)


def throttled_client_dropped(patched: pytest.MonkeyPatch) -> None:
    """A client that no rule explains is dropped, though its throttle rises."""
    patched.setattr("quotascope.exporter.join.staleness.RecentRows.note", lambda *_: None)


def explained_client_dropped(patched: pytest.MonkeyPatch) -> None:
    stale = Staleness.stale

    def changed(self: Staleness, placed: Any, *args: Any) -> Any:
        dropped = stale(self, placed, *args)
        dropped[-1:] |= placed.is_read[-1:]
        return dropped

    patched.setattr(Staleness, "stale", changed)


def folded_without_need(patched: pytest.MonkeyPatch) -> None:
    allows = Cardinality.allows
    patched.setattr(Cardinality, "_shows_all", lambda *_: False)
    patched.setattr(
        Cardinality, "allows", lambda self, user, client_id: user != "alice" and allows(self, user, client_id)
    )


def limits_of_before(patched: pytest.MonkeyPatch) -> None:
    succeeded = LimitsRefresh._succeeded
    last: list[Any] = []

    def changed(self: LimitsRefresh, limits: Any) -> None:
        last.append(limits)
        succeeded(self, last[-2] if len(last) > 1 else limits)

    patched.setattr(LimitsRefresh, "_succeeded", changed)


def ages_by_the_wall(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(LimitsRefresh, "health_on_clock", lambda self, *_: self.health)


def numbers_age_by_the_wall(patched: pytest.MonkeyPatch) -> None:
    """A page is written with the time of the clock that is set."""
    patched.setattr(Snapshot, "time_at", lambda self, steady: max(self.taken_at, EPOCH + steady))


def unlimited_for_unknown(patched: pytest.MonkeyPatch) -> None:
    patched.setattr("quotascope.exporter.join.placing.overruled", lambda *_: frozenset())


def waits_for_all(patched: pytest.MonkeyPatch) -> None:
    """A collection waits for each source for as long as that takes."""

    async def changed(self: reads.Reads) -> None:
        for answer in self._current:
            if answer.task is not None:
                await answer.task

    async def unless(_expired: object, *work: Any) -> None:
        await asyncio.gather(*work)

    patched.setattr(reads.Reads, "wait", changed)
    patched.setattr("quotascope.exporter.collection.collection.wait_unless", unless)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "first", "found"),
    [
        (old_numbers, 12, "is stale"),
        (zero_for_unknown, 2, "usage 0.0, but (-?inf|nan) was reported"),
        (faults_of_others, 1, "has answered and is down"),
        (counter_reset, 0, "the counter .*throttled.* goes back"),
        (unknown_start_is_another, 37, "the counter .*throttled.* goes back"),
        (absurd_counters_held, 0, "which one answer said long ago"),
        (pushes_forgotten, 37, "the counter .*push.* goes back"),
        (throttled_client_dropped, 178, "is throttled on node .*, and not shown"),
        (explained_client_dropped, 0, "which is not shown"),
        (folded_without_need, 0, "is throttled on node .*, and not shown"),
        (limits_of_before, 0, "the limits are not those"),
        (ages_by_the_wall, 0, "the limits are .* s old, not"),
        (numbers_age_by_the_wall, 0, "a page says"),
        (unlimited_for_unknown, 7, "limits are unknown, but"),
        (waits_for_all, 10, "a scrape that waits .* took"),
    ],
)
def test_each_invariant_can_fail(
    mutant: Callable[[pytest.MonkeyPatch], None],
    first: int,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A mistake of its kind is found within a few seeds."""
    mutant(monkeypatch)
    with pytest.raises(Broken, match=found):
        sum(simulate(seed, tmp_path) for seed in range(first, first + MOST))
