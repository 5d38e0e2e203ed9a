"""A quota on bytes that a broker moves for itself."""

from tests.strategies import EPOCH_MS

from quotascope.metrics import ByteRateQuota, Quota, Registry, WindowConfig


def make(registry: Registry, quota: Quota | None = None) -> ByteRateQuota:
    """Return a quota over ten windows."""
    return ByteRateQuota(registry, "RLMCopy", "about", WindowConfig(samples=10), quota)


def test_a_first_value_counts_for_one_window(registry: Registry) -> None:
    """It is not spread over windows to come."""
    quota = make(registry, Quota(100))
    quota.record(150, EPOCH_MS)
    violation = quota.violation(EPOCH_MS)
    assert violation is not None
    assert (violation.value, violation.bound) == (150.0, 100.0)
    assert quota.violation(EPOCH_MS + 1_500) is None


def test_recording_never_refuses(registry: Registry) -> None:
    """Whatever the bound, the bytes were moved."""
    quota = make(registry, Quota(0))
    for _ in range(3):
        quota.record(1e9, EPOCH_MS)
    metric = registry.metric(quota.metric_name)
    assert metric is not None
    assert metric.value(EPOCH_MS) == 3e9


def test_without_a_bound_nothing_is_in_violation(registry: Registry) -> None:
    """Before one was set, and after it was taken away."""
    quota = make(registry)
    quota.record(1e18, EPOCH_MS)
    assert quota.violation(EPOCH_MS) is None
    quota.update_quota(Quota(1))
    assert quota.violation(EPOCH_MS) is not None
    quota.update_quota(None)
    assert quota.violation(EPOCH_MS) is None


def test_a_new_bound_keeps_what_was_recorded(registry: Registry) -> None:
    """It takes effect at once, also on a sensor that comes later."""
    quota = make(registry)
    quota.update_quota(Quota(5))
    quota.record(10, EPOCH_MS)
    assert quota.violation(EPOCH_MS) is not None
    quota.update_quota(Quota(10))
    assert quota.quota == Quota(10)
    assert quota.violation(EPOCH_MS) is None


def test_the_sensor_lives_an_hour(registry: Registry) -> None:
    """Asking does not keep it, and a new one starts without history."""
    quota = make(registry, Quota(5))
    quota.record(10, EPOCH_MS)
    assert registry.expire_sensors(EPOCH_MS + 3_600_000) == ()
    quota.violation(EPOCH_MS + 3_600_001)
    assert registry.expire_sensors(EPOCH_MS + 3_600_001) == ("RLMCopy",)
    assert registry.metric(quota.metric_name) is None
    assert quota.violation(EPOCH_MS + 3_600_002) is None
    assert registry.metric(quota.metric_name) is not None
