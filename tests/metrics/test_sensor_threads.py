"""
Many threads at one sensor.

Values whose arithmetic calls back, or lets other threads run, put the worst moment of an interleaving where it
hurts: between reading a total and writing it back. The tests that take the locks away show that it would.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.metrics.threads import NAME, TEN_TOKENS, Interrupting, only_metric
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    CumulativeSum,
    QuotaViolation,
    Registry,
    Sensor,
    TokenBucket,
)


class NoLock:
    """What is left without a lock."""

    def __enter__(self) -> None:
        """Let everybody in."""

    def __exit__(self, *error: object) -> None:
        """Do nothing."""


class WatchedLock:
    """A lock that tells when somebody has to wait for it."""

    def __init__(self) -> None:
        self.contended = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.contended.set()
            self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def take_locks_away(sensor: Sensor) -> None:
    """Leave the sensor and its metrics unguarded."""
    unguarded: Any = sensor
    unguarded.lock = unguarded._metric_lock = NoLock()


@pytest.mark.interpreted
class TestOneAtATime:
    """The worst interleavings, one by one; in C neither locks can be watched nor arithmetic be interrupted."""

    def test_records_do_not_interleave(self, registry: Registry) -> None:
        """A second record waits for the first to write its total back."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, CumulativeSum())
        lock: Any = WatchedLock()
        sensor.lock = lock
        other = threading.Thread(target=sensor.record, args=(1.0, EPOCH_MS))

        def meanwhile() -> None:
            other.start()
            assert lock.contended.wait(60)

        sensor.record(Interrupting(1.0, meanwhile), EPOCH_MS)
        other.join(60)
        assert only_metric(sensor).value(EPOCH_MS) == 2.0

    def test_without_the_locks_a_value_would_be_lost(self, registry: Registry) -> None:
        """The same interleaving with nothing to wait for."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, CumulativeSum())
        take_locks_away(sensor)
        meanwhile = Interrupting(1.0, lambda: sensor.record(1.0, EPOCH_MS))
        sensor.record(meanwhile, EPOCH_MS)
        assert only_metric(sensor).value(EPOCH_MS) == 1.0

    def test_strict_use_checks_and_records_in_one_step(
        self, registry: Registry
    ) -> None:
        """With nothing left but the right to overdraw once, of two threads one is refused."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, TokenBucket(), TEN_TOKENS)
        sensor.record(10.0, EPOCH_MS)
        lock: Any = WatchedLock()
        sensor.lock = lock
        with ThreadPoolExecutor(1) as pool:
            other: list[Any] = []

            def meanwhile() -> None:
                other.append(pool.submit(sensor.record_if_within_quota, 1.0, EPOCH_MS))
                assert lock.contended.wait(60)

            sensor.record_if_within_quota(Interrupting(1.0, meanwhile), EPOCH_MS)
            assert isinstance(other[0].exception(60), QuotaViolation)
        assert only_metric(sensor).value(EPOCH_MS) == -1.0

    def test_without_the_locks_both_would_overdraw(self, registry: Registry) -> None:
        """The same interleaving with nothing to wait for: the second is accepted, and its token lost."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, TokenBucket(), TEN_TOKENS)
        sensor.record(10.0, EPOCH_MS)
        take_locks_away(sensor)
        accepted: list[float] = []

        def meanwhile() -> None:
            sensor.record_if_within_quota(1.0, EPOCH_MS)
            accepted.append(1.0)

        sensor.record_if_within_quota(Interrupting(1.0, meanwhile), EPOCH_MS)
        assert accepted == [1.0]

    def test_reading_does_not_wait_for_a_check(self, registry: Registry) -> None:
        """Whoever holds the sensor's lock does not keep a reader."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, CumulativeSum(3.0))
        with sensor.lock, ThreadPoolExecutor(1) as pool:
            read = pool.submit(
                lambda: (only_metric(sensor).value(EPOCH_MS), sensor.has_metrics())
            )
            assert read.result(60) == (3.0, True)

    def test_a_new_config_waits_for_a_record(self, registry: Registry) -> None:
        """All metrics of a sensor see a value under the configs of one moment."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, CumulativeSum())
        metric: Any = only_metric(sensor)
        unguarded: Any = sensor
        lock: Any = WatchedLock()
        metric._lock = unguarded._metric_lock = lock
        before = metric.config
        seen = []

        def change() -> None:
            metric.config = TEN_TOKENS

        changing = threading.Thread(target=change)

        def meanwhile() -> None:
            changing.start()
            assert lock.contended.wait(60)
            seen.append(metric.config)

        sensor.record(Interrupting(1.0, meanwhile), EPOCH_MS)
        changing.join(60)
        assert seen == [before]
        assert metric.config is TEN_TOKENS
