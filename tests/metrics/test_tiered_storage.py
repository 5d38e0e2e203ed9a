"""Quotas on the traffic with tiered storage."""

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    LONG_MAX,
    Quota,
    Registry,
    RLMQuotaManager,
    RLMQuotaType,
    TieredStorageQuotas,
    WindowConfig,
)


def test_the_wait_is_not_clamped() -> None:
    """Neither to a window nor to 32 bits; a bound of 0 waits forever."""
    manager = RLMQuotaManager(Registry(), RLMQuotaType.FETCH, 1)
    manager.record(3e9, EPOCH_MS)
    assert manager.throttle_time_ms(EPOCH_MS) == 2_999_999_999_000
    manager.update_quota(Quota(0))
    assert manager.throttle_time_ms(EPOCH_MS) == LONG_MAX


@pytest.mark.parametrize("quota_type", RLMQuotaType)
def test_names_are_kafkas(quota_type: RLMQuotaType) -> None:
    """Of the metric and of the config."""
    name = RLMQuotaManager(Registry(), quota_type).metric_name
    what = quota_type.name.lower()
    assert (name.name, name.group) == ("byte-rate", quota_type.value)
    assert name.description == f"Tracking {what} byte-rate for Remote Log Manager"
    key = f"remote.log.manager.{what}.max.bytes.per.second"
    assert quota_type.rate_key == key


def waits(registry: Registry) -> dict[str, float]:
    """Return the metrics of waits."""
    return {
        name.name: metric.value(EPOCH_MS)
        for name, metric in registry.metrics().items()
        if name.group == "RemoteLogManager"
    }


def test_waits_are_measured(registry: Registry) -> None:
    """Average and maximum of each direction, from its first wait on."""
    quotas = TieredStorageQuotas(registry, (100, WindowConfig()), (10, WindowConfig()))
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 0
    assert waits(registry) == {}
    quotas.fetch.record(20, EPOCH_MS)
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 1_000
    quotas.fetch.record(20, EPOCH_MS)
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 3_000
    assert waits(registry) == {
        "remote-fetch-throttle-time-avg": 2_000.0,
        "remote-fetch-throttle-time-max": 3_000.0,
    }


def test_directions_are_apart(registry: Registry) -> None:
    """What is copied does not keep anybody from fetching."""
    quotas = TieredStorageQuotas(registry, (10, WindowConfig()))
    quotas.copy.record(20, EPOCH_MS)
    assert quotas.wait_ms(RLMQuotaType.FETCH, EPOCH_MS) == 0
    assert quotas.wait_ms(RLMQuotaType.COPY, EPOCH_MS) == 1_000
    assert set(waits(registry)) == {
        "remote-copy-throttle-time-avg",
        "remote-copy-throttle-time-max",
    }


def test_descriptions_are_kafkas(registry: Registry) -> None:
    """Word by word."""
    quotas = TieredStorageQuotas(registry, (10, WindowConfig()), (10, WindowConfig()))
    for quota_type in RLMQuotaType:
        quotas.of(quota_type).record(20, EPOCH_MS)
        quotas.wait_ms(quota_type, EPOCH_MS)
    about = {name.name: name.description for name in registry.metrics()}
    end = "was throttled by a broker"
    fetch, copy = "remote-fetch-throttle-time", "remote-copy-throttle-time"
    assert about[f"{fetch}-avg"] == f"The average time in millis remote fetches {end}"
    assert about[f"{copy}-max"] == f"The maximum time in millis remote copies {end}"


def test_closing_removes_the_metrics_of_waits(registry: Registry) -> None:
    """The rates stay until they expire."""
    quotas = TieredStorageQuotas(registry, (10, WindowConfig()))
    quotas.copy.record(20, EPOCH_MS)
    quotas.wait_ms(RLMQuotaType.COPY, EPOCH_MS)
    quotas.close()
    assert waits(registry) == {}
    assert registry.metric(quotas.copy.metric_name) is not None
