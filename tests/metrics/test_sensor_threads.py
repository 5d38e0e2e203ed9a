"""Many threads at one sensor."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.metrics.threads import EACH, NAME, TEN_TOKENS, THREADS, Interrupting, only_metric, together, yielding
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    CumulativeSum,
    MetricConfig,
    MetricName,
    Quota,
    QuotaViolation,
    Rate,
    Registry,
    Sensor,
    Stat,
    TokenBucket,
)


class WatchedLock:
    """A lock that reports when a thread has to wait for it."""

    def __init__(self) -> None:
        self.contended = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.contended.set()
            self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


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

    def test_strict_use_checks_and_records_in_one_step(self, registry: Registry) -> None:
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

    def test_reading_does_not_wait_for_a_check(self, registry: Registry) -> None:
        """A thread that holds the sensor's lock does not block a reader."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, CumulativeSum(3.0))
        with sensor.lock, ThreadPoolExecutor(1) as pool:
            read = pool.submit(lambda: (only_metric(sensor).value(EPOCH_MS), sensor.has_metrics()))
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


class Total(Stat):
    """A program's own statistic, which lets other threads run at the worst moment."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0.0

    def record(self, config: MetricConfig, value: float, now_ms: int) -> None:  # noqa: ARG002 - timeless
        """Read the total, wait, and write it back."""
        before = self.total
        time.sleep(0)
        self.total = before + value


class TestContention:
    """Many at once."""

    def test_totals_are_exact(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """No value of any thread is lost, in a sampled statistic, a cumulative one, and the parent's."""
        parent = registry.sensor("parent", EPOCH_MS)
        parent.add(MetricName("parent", "g"), CumulativeSum())
        sensor = registry.sensor("s", EPOCH_MS, parents=(parent,))
        sensor.add(NAME, CumulativeSum())
        sensor.add(MetricName("rate", "g"), Rate(), MetricConfig(1, 1_000_000, event_window=7))

        def work(_number: int) -> None:
            for _ in range(EACH):
                sensor.record(yielding(1.0), EPOCH_MS)

        together(pool, work)
        assert only_metric(sensor).value(EPOCH_MS) == THREADS * EACH
        assert only_metric(parent).value(EPOCH_MS) == THREADS * EACH

    def test_statistics_of_a_program_are_guarded_too(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """Whatever a statistic does while it records, no other thread records to its sensor meanwhile."""
        sensor = registry.sensor("s", EPOCH_MS)
        stat = Total()
        sensor.add(NAME, stat)

        def work(_number: int) -> None:
            for _ in range(EACH):
                sensor.record(1.0, EPOCH_MS)

        together(pool, work)
        assert stat.total == THREADS * EACH

    def test_new_configs_lose_nothing(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """Quotas may be changed and metrics read while values come in."""
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add(NAME, CumulativeSum())
        metric = only_metric(sensor)

        def work(number: int) -> None:
            for turn in range(EACH):
                if number == 0:
                    metric.config = MetricConfig(quota=Quota(1e9 + turn))
                    metric.value(EPOCH_MS)
                else:
                    sensor.record(yielding(1.0), EPOCH_MS)

        together(pool, work)
        assert metric.value(EPOCH_MS) == (THREADS - 1) * EACH

    def test_one_sensor_for_all(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """Anyone who asks first makes the sensor and its metric, and everybody records to these."""

        def work(_number: int) -> Sensor:
            sensor = registry.sensor("shared", EPOCH_MS)
            assert sensor.add(NAME, CumulativeSum())
            sensor.record(yielding(1.0), EPOCH_MS)
            return sensor

        sensors = together(pool, work)
        assert len(set(sensors)) == 1
        assert only_metric(sensors[0]).value(EPOCH_MS) == THREADS

    def test_sensors_come_and_go(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """Expiry beside recording, reading and registration: in the end nothing is left over."""

        def work(number: int) -> None:
            for turn in range(EACH):
                name = f"s{(number + turn) % 3}"
                sensor = registry.sensor(name, turn, inactive_seconds=0)
                sensor.add(MetricName(name, f"{number}-{turn}"), CumulativeSum())
                sensor.record(1.0, turn)
                registry.metrics()
                registry.expire_sensors(turn + 1)

        together(pool, work)
        registry.expire_sensors(EACH + 1)
        assert registry.sensors() == {}
