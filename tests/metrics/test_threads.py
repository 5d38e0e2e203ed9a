"""Many threads at one sensor and at one entity: nothing is admitted twice and nothing is lost."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import pytest
from tests.metrics.examples import ALICE, RULE, bound_of, metric_of
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.client_quota_manager import ClientQuotaManager
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.controller_mutation import ControllerMutationQuotaManager
from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.errors import QuotaViolation, ThrottlingQuotaExceeded
from quotascope.metrics.engine.extras.all_time import CumulativeCount
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.quota_factory import QuotaManagers
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.sensor import Sensor
from quotascope.metrics.engine.stat import Stat
from quotascope.metrics.engine.throttle_callback import ThrottleCallback
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType

THREADS = 8
EACH = 200
NAME = MetricName("m", "g")
TEN_TOKENS = MetricConfig(10, 1_000, quota=Quota(1.0))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Yield threads whose errors are raised."""
    with ThreadPoolExecutor(THREADS) as pool:
        yield pool


class Interrupting(float):
    """A number whose addition or subtraction is interrupted by other work."""

    during: Callable[[], object]

    def __new__(cls, value: float, during: Callable[[], object]) -> Self:
        number = super().__new__(cls, value)
        number.during = during
        return number

    def __radd__(self, other: float) -> float:
        self.during()
        return other + float(self)

    def __rsub__(self, other: float) -> float:
        self.during()
        return other - float(self)


def together(pool: ThreadPoolExecutor, work: Callable[[int], object]) -> list[Any]:
    """Run the work in all threads at the same time and return what each returned."""
    barrier = threading.Barrier(THREADS)

    def started(number: int) -> object:
        barrier.wait(60)
        return work(number)

    return list(pool.map(started, range(THREADS)))


def only_metric(sensor: Sensor) -> KafkaMetric:
    return sensor.metrics()[0]


def with_metric(registry: Registry, stat: Stat, config: MetricConfig | None = None) -> Sensor:
    sensor = registry.sensor("s", EPOCH_MS)
    sensor.add(NAME, stat, config)
    return sensor


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
        sensor = with_metric(registry, CumulativeSum())
        lock: Any = WatchedLock()
        sensor.lock = lock
        thread = threading.Thread(target=sensor.record, args=(1.0, EPOCH_MS))

        def meanwhile() -> None:
            thread.start()
            assert lock.contended.wait(60)

        sensor.record(Interrupting(1.0, meanwhile), EPOCH_MS)
        thread.join(60)
        assert only_metric(sensor).value(EPOCH_MS) == 2.0

    def test_strict_use_checks_and_records_in_one_step(self, registry: Registry) -> None:
        """Of two threads that meet a bucket with one overdraft left, one is refused."""
        sensor = with_metric(registry, TokenBucket(), TEN_TOKENS)
        sensor.record(10.0, EPOCH_MS)
        lock: Any = WatchedLock()
        sensor.lock = lock
        with ThreadPoolExecutor(1) as pool:
            errors: list[Any] = []

            def meanwhile() -> None:
                errors.append(pool.submit(sensor.record_if_within_quota, 1.0, EPOCH_MS))
                assert lock.contended.wait(60)

            sensor.record_if_within_quota(Interrupting(1.0, meanwhile), EPOCH_MS)
            assert isinstance(errors[0].exception(60), QuotaViolation)
        assert only_metric(sensor).value(EPOCH_MS) == -1.0

    def test_reading_waits_for_metrics_only(self, registry: Registry) -> None:
        """A thread that holds the sensor's lock does not block a reader."""
        sensor = with_metric(registry, CumulativeSum(3.0))
        with sensor.lock, ThreadPoolExecutor(1) as pool:
            reading = pool.submit(lambda: (only_metric(sensor).value(EPOCH_MS), sensor.has_metrics()))
            assert reading.result(60) == (3.0, True)

    def test_a_new_config_waits_for_a_record(self, registry: Registry) -> None:
        """A new config waits for a record, so that all metrics of a sensor see a value under the same configs."""
        sensor = with_metric(registry, CumulativeSum())
        metric: Any = only_metric(sensor)
        unguarded: Any = sensor
        lock: Any = WatchedLock()
        metric._lock = unguarded._metric_lock = lock
        old_config = metric.config
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
        assert seen == [old_config]
        assert metric.config is TEN_TOKENS


class Total(Stat):
    """A program's own statistic, which lets other threads run at the worst moment."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0.0

    def record(self, config: MetricConfig, value: float, now_ms: int) -> None:  # noqa: ARG002 - timeless
        total = self.total
        time.sleep(0)
        self.total = total + value

    def measure(self, config: MetricConfig, now_ms: int) -> float:  # noqa: ARG002 - timeless
        return self.total


class TestContention:
    """Tests of many threads at once."""

    def test_totals_are_exact(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """No value of any thread is lost, in a sensor or its parent: threads record to it one after the other."""
        parent = registry.sensor("parent", EPOCH_MS)
        parent.add(MetricName("parent", "g"), Total())
        sensor = registry.sensor("s", EPOCH_MS, parents=(parent,))
        sensor.add(NAME, Total())

        def work(_number: int) -> None:
            for _ in range(EACH):
                sensor.record(1.0, EPOCH_MS)

        together(pool, work)
        assert only_metric(sensor).value(EPOCH_MS) == THREADS * EACH
        assert only_metric(parent).value(EPOCH_MS) == THREADS * EACH

    def test_new_configs_lose_nothing(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """Quotas may be changed and metrics read while values come in."""
        sensor = with_metric(registry, Total())
        metric = only_metric(sensor)

        def work(number: int) -> None:
            for turn in range(EACH):
                if number == 0:
                    metric.config = MetricConfig(quota=Quota(1e9 + turn))
                    metric.value(EPOCH_MS)
                else:
                    sensor.record(1.0, EPOCH_MS)

        together(pool, work)
        assert metric.value(EPOCH_MS) == (THREADS - 1) * EACH

    def test_one_sensor_for_all(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """The first thread makes the sensor and its metric, and all threads record to these."""

        def work(_number: int) -> Sensor:
            sensor = registry.sensor("shared", EPOCH_MS)
            assert sensor.add(NAME, Total())
            sensor.record(1.0, EPOCH_MS)
            return sensor

        sensors = together(pool, work)
        assert len(set(sensors)) == 1
        assert only_metric(sensors[0]).value(EPOCH_MS) == THREADS

    def test_sensors_come_and_go(self, registry: Registry, pool: ThreadPoolExecutor) -> None:
        """Sensors expire beside recording, reading and registration: in the end nothing is left over."""

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


ROUNDS = 250


@pytest.fixture
def _contention() -> Iterator[None]:
    """Threads change places as often as the interpreter can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_contention")
def test_a_bucket_is_never_over_admitted(pool: ThreadPoolExecutor) -> None:
    """With a burst of 1000 exactly 1001 single mutations pass, as the one that meets zero tokens does, too."""
    registry = Registry()
    manager = ControllerMutationQuotaManager(registry, EPOCH_MS, ManagerConfig(samples=10))
    manager.update_quota(RULE, 100)
    admitted: list[int] = []
    refused: list[int] = []

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            quota = manager.strict_quota_for(ALICE, f"c{number}", EPOCH_MS)
            try:
                quota.record(1, EPOCH_MS)
                admitted.append(number)
            except ThrottlingQuotaExceeded as refusal:
                refused.append(refusal.throttle_time_ms)

    together(pool, work)
    group = "ControllerMutation"
    assert len(admitted) == 1001
    assert metric_of(registry, "tokens", group).value(EPOCH_MS) == -1.0
    assert metric_of(registry, "mutation-rate", group).value(EPOCH_MS) == 1001 / 30
    assert refused == [10] * (THREADS * ROUNDS - 1001)


@pytest.mark.usefixtures("_contention")
def test_records_are_not_lost(pool: ThreadPoolExecutor) -> None:
    """The sum of what all threads recorded is measured, and the first violation comes exactly at the bound."""
    registry = Registry()
    manager = ClientQuotaManager(registry, QuotaType.PRODUCE, EPOCH_MS)
    total = THREADS * ROUNDS
    manager.update_quota(RULE, (total - 10) / 10)
    throttles: list[int] = []

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            ms = manager.record_and_get_throttle_time(ALICE, "c", 1.0, EPOCH_MS)
            if ms > 0:
                throttles.append(ms)

    together(pool, work)
    assert metric_of(registry, "byte-rate", "Produce").value(EPOCH_MS) == total / 10
    assert len(throttles) == 10


@pytest.mark.usefixtures("_contention")
def test_throttle_counters_are_exact(pool: ThreadPoolExecutor) -> None:
    """Every throttle is counted once, in both counters and in the queue, while others are ended."""
    registry = Registry()
    manager = ClientQuotaManager(registry, QuotaType.FETCH, EPOCH_MS)
    manager.update_quota(RULE, 1.0)
    sensor = manager.sensors_for(ALICE, "c", EPOCH_MS).throttle_time
    sensor.add(registry.metric_name("throttles", "Fetch", {}), CumulativeCount())
    sensor.add(registry.metric_name("throttled-ms", "Fetch", {}), CumulativeSum())
    ended: list[int] = []

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            manager.throttle(ALICE, "c", 7, ThrottleCallback(), now_ms=EPOCH_MS, now_ns=0)
            if number % 2 and manager.reap(EPOCH_MS + 7, 7_000_000):
                ended.append(number)

    together(pool, work)
    total = THREADS * ROUNDS
    assert metric_of(registry, "throttles", "Fetch", {}).value(EPOCH_MS) == total
    assert metric_of(registry, "throttled-ms", "Fetch", {}).value(EPOCH_MS) == 7 * total
    queue_size = metric_of(registry, "queue-size", "Fetch", {}).value(EPOCH_MS)
    assert queue_size == total - len(ended) == len(manager.reaper.queue)


@pytest.mark.usefixtures("_contention")
def test_no_one_meets_a_sensor_without_metrics(pool: ThreadPoolExecutor) -> None:
    """
    Threads that send first requests at once find a sensor with its metrics.

    Every value counts, also while quotas change and sensors expire.
    """
    registry = Registry()
    managers = QuotaManagers(registry, EPOCH_MS)
    managers.update_quota(QuotaType.PRODUCE, QuotaEntity(None, "other"), 1.0)

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            client_id = f"c{turn}"
            managers.produce.record_and_get_throttle_time(ALICE, client_id, 1.0, EPOCH_MS)
            if number == 0:
                rule = QuotaEntity(None, client_id)
                managers.update_quota(QuotaType.PRODUCE, rule, 1e9)
                registry.expire_sensors(EPOCH_MS)

    together(pool, work)
    for turn in range(ROUNDS):
        rate = metric_of(registry, "byte-rate", "Produce", {"user": "", "client-id": f"c{turn}"})
        assert rate.value(EPOCH_MS) == THREADS / 10
        assert bound_of(rate) == 1e9
