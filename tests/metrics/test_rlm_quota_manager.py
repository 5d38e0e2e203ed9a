"""Quotas on the traffic with tiered storage."""

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    LONG_MAX,
    Quota,
    Registry,
    RLMQuotaManager,
    RLMQuotaType,
)


def test_waits_until_the_rate_is_back_at_its_bound() -> None:
    """500 bytes against 50 B/s are worth ten seconds (`RLMQuotaManagerTest`)."""
    manager = RLMQuotaManager(Registry(), RLMQuotaType.COPY, 50)
    assert manager.throttle_time_ms(EPOCH_MS) == 0
    manager.record(500, EPOCH_MS)
    assert manager.throttle_time_ms(EPOCH_MS + 1_000) == 9_000
    assert manager.throttle_time_ms(EPOCH_MS + 9_000) == 1_000
    assert manager.throttle_time_ms(EPOCH_MS + 10_000) == 0


def test_a_new_bound_changes_the_wait() -> None:
    """At once, in both directions."""
    manager = RLMQuotaManager(Registry(), RLMQuotaType.FETCH, 50)
    manager.record(51, EPOCH_MS)
    assert manager.throttle_time_ms(EPOCH_MS) == 20
    manager.update_quota(Quota(60))
    assert manager.throttle_time_ms(EPOCH_MS) == 0
    manager.update_quota(Quota(40))
    assert manager.throttle_time_ms(EPOCH_MS) == 275


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
