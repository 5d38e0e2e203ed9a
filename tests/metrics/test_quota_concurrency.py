"""Many threads on one entity: nothing is admitted twice and nothing is lost."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.metrics.threads import THREADS, together

from quotascope.metrics import (
    ClientQuotaManager,
    ControllerMutationQuotaManager,
    KafkaMetric,
    ManagerConfig,
    Principal,
    QuotaEntity,
    QuotaManagers,
    QuotaType,
    Registry,
    ThrottleCallback,
    ThrottlingQuotaExceeded,
)

T0 = 1_600_000_000_000
ALICE = Principal("alice")
RULE = QuotaEntity("alice")
ROUNDS = 250


@pytest.fixture(autouse=True)
def _contention() -> Iterator[None]:
    """Threads change places as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def metric(registry: Registry, name: str, group: str, **tags: str) -> KafkaMetric:
    """A metric of alice."""
    chosen = tags or {"user": "alice", "client-id": ""}
    return registry.metrics()[registry.metric_name(name, group, chosen)]


def test_a_bucket_is_never_over_admitted(pool: ThreadPoolExecutor) -> None:
    """With a burst of 1000 exactly 1001 single mutations pass: the one that meets zero tokens too."""
    registry = Registry()
    manager = ControllerMutationQuotaManager(registry, T0, ManagerConfig(samples=10))
    manager.update_quota(RULE, 100)
    admitted: list[int] = []

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            quota = manager.strict_quota_for(ALICE, f"c{number}", T0)
            try:
                quota.record(1, T0)
                admitted.append(number)
            except ThrottlingQuotaExceeded as refusal:
                assert refusal.throttle_time_ms == 10  # noqa: PT017 - in a thread

    together(pool, work)
    group = "ControllerMutation"
    assert len(admitted) == 1001
    assert metric(registry, "tokens", group).value(T0) == -1.0
    assert metric(registry, "mutation-rate", group).value(T0) == 1001 / 30
    refused = THREADS * ROUNDS - 1001
    assert metric(registry, "rejection-count", group).value(T0) == refused


def test_records_are_not_lost(pool: ThreadPoolExecutor) -> None:
    """The sum of what all threads recorded is measured, and the first violation comes exactly at the bound."""
    registry = Registry()
    manager = ClientQuotaManager(registry, QuotaType.PRODUCE, T0)
    total = THREADS * ROUNDS
    manager.update_quota(RULE, (total - 10) / 10)
    throttles: list[int] = []

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            ms = manager.record_and_get_throttle_time(ALICE, "c", 1.0, T0)
            if ms > 0:
                throttles.append(ms)

    together(pool, work)
    assert metric(registry, "byte-rate", "Produce").value(T0) == total / 10
    assert len(throttles) == 10


def test_throttle_counters_are_exact(pool: ThreadPoolExecutor) -> None:
    """Every throttle is counted once, in both counters and in the queue, while others are ended."""
    registry = Registry()
    manager = ClientQuotaManager(registry, QuotaType.FETCH, T0)
    manager.update_quota(RULE, 1.0)
    ended: list[int] = []

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            manager.throttle(ALICE, "c", 7, ThrottleCallback(), now_ms=T0, now_ns=0)
            if number % 2 and manager.reap(T0 + 7, 7_000_000):
                ended.append(number)

    together(pool, work)
    total = THREADS * ROUNDS
    assert metric(registry, "throttle-count", "Fetch").value(T0) == total
    assert metric(registry, "throttle-time-total", "Fetch").value(T0) == 7 * total
    queue = registry.metrics()[registry.metric_name("queue-size", "Fetch")]
    assert queue.value(T0) == total - len(ended) == len(manager.reaper.queue)


def test_no_one_meets_a_sensor_without_metrics(pool: ThreadPoolExecutor) -> None:
    """First requests of many clients at once: every value counts, also while quotas change and sensors expire."""
    registry = Registry()
    managers = QuotaManagers(registry, T0)
    managers.update_quota(QuotaType.PRODUCE, QuotaEntity(None, "other"), 1.0)

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            client_id = f"c{turn}"
            managers.produce.record_and_get_throttle_time(ALICE, client_id, 1.0, T0)
            if number == 0:
                rule = QuotaEntity(None, client_id)
                managers.update_quota(QuotaType.PRODUCE, rule, 1e9)
                registry.expire_sensors(T0)

    together(pool, work)
    for turn in range(ROUNDS):
        rate = metric(registry, "byte-rate", "Produce", **{"user": "", "client-id": f"c{turn}"})
        assert rate.value(T0) == THREADS / 10
        assert rate.config.quota is not None
        assert rate.config.quota.bound == 1e9
