"""Quotas on the time of threads."""

import pytest

from quotascope.metrics import (
    ManagerConfig,
    Principal,
    QuotaEntity,
    Registry,
    RequestQuotaManager,
)

EPOCH_MS = 1_600_000_000_000
ALICE = Principal("alice")
MS = 1_000_000


def exempt_percent(registry: Registry) -> float:
    """The value of exempt-request-time."""
    name = registry.metric_name("exempt-request-time", "Request")
    metric = registry.metric(name)
    assert metric is not None
    return metric.value(EPOCH_MS)


@pytest.mark.parametrize("seconds", [1, 3])
def test_never_longer_than_a_window(registry: Registry, seconds: int) -> None:
    """Whatever a request cost, its client is read again after one window."""
    config = ManagerConfig(window_seconds=seconds)
    manager = RequestQuotaManager(registry, EPOCH_MS, config)
    manager.update_quota(QuotaEntity("alice"), 0.01)
    hour_ns = 3_600_000 * MS
    throttle = manager.maybe_record_request(ALICE, "c", hour_ns, EPOCH_MS)
    assert throttle == seconds * 1000


def test_one_busy_thread_is_100_percent(registry: Registry) -> None:
    """Thread time is measured in percent of one thread, the network thread's included."""
    manager = RequestQuotaManager(registry, EPOCH_MS)
    manager.update_quota(QuotaEntity("alice"), 1e6)
    manager.maybe_record_request(ALICE, "c", 6_000 * MS, EPOCH_MS)
    manager.record_network_thread_time(ALICE, "c", 4_000 * MS, EPOCH_MS)
    metric = manager.sensors_for(ALICE, "c", EPOCH_MS).quota.metrics()[0]
    assert metric.name.name == "request-time"
    assert metric.name.description == "Tracking request-time per user/client-id"
    assert metric.value(EPOCH_MS) == 100.0


def test_without_rules(registry: Registry) -> None:
    """Neither requests nor exempt ones are recorded as long as no rule exists."""
    manager = RequestQuotaManager(registry, EPOCH_MS)
    assert manager.maybe_record_request(ALICE, "c", 9_999 * MS, EPOCH_MS) == 0
    manager.maybe_record_exempt(9_999 * MS, EPOCH_MS)
    assert exempt_percent(registry) == 0.0
    assert set(registry.sensors()) == {"Request-delayQueue", "exempt-Request"}


def test_exempt_requests(registry: Registry) -> None:
    """What no quota applies to is measured over the registry's 2 x 30 s, and never expires."""
    manager = RequestQuotaManager(registry, EPOCH_MS)
    manager.update_quota(QuotaEntity("alice"), 1)
    manager.maybe_record_exempt(3_000 * MS, EPOCH_MS)
    assert exempt_percent(registry) == 10.0
    assert registry.expire_sensors(EPOCH_MS * 2) == ()
