"""Quotas on the traffic among brokers."""

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    LONG_MAX,
    Quota,
    Registry,
    ReplicationQuotaManager,
    ReplicationQuotaType,
    WindowConfig,
)


def make(
    quota_type: ReplicationQuotaType = ReplicationQuotaType.LEADER,
) -> ReplicationQuotaManager:
    """Return a manager over ten windows."""
    return ReplicationQuotaManager(Registry(), quota_type, WindowConfig(samples=10))


def test_only_marked_partitions_are_throttled() -> None:
    """New marks of a topic replace the former (`ReplicationQuotaManagerTest`)."""
    manager = make()
    manager.mark_throttled("topic1", [0, 1, 2])
    assert manager.is_throttled("topic1", 0)
    assert not manager.is_throttled("topic1", 3)
    assert not manager.is_throttled("topic2", 0)
    manager.mark_throttled("topic1", [3])
    assert manager.is_throttled("topic1", 3)
    assert not manager.is_throttled("topic1", 0)
    manager.mark_throttled("topic1", [])
    assert not manager.is_throttled("topic1", 3)


def test_a_topic_can_be_marked_whole() -> None:
    """Whatever partitions it gets."""
    manager = make()
    manager.mark_throttled("topic1")
    assert manager.is_throttled("topic1", 4711)
    manager.remove_throttle("topic1")
    manager.remove_throttle("topic1")
    assert not manager.is_throttled("topic1", 4711)


def test_is_exceeded_until_time_passes() -> None:
    """Kafka's own figures: 151 bytes in 1.5 s are more than 100 B/s, in 2 s they are not."""
    manager = make()
    manager.update_quota(Quota(100))
    assert not manager.is_quota_exceeded(EPOCH_MS)
    manager.record(150, EPOCH_MS + 1_500)
    assert not manager.is_quota_exceeded(EPOCH_MS + 1_500)
    manager.record(1, EPOCH_MS + 1_500)
    assert manager.is_quota_exceeded(EPOCH_MS + 1_500)
    assert not manager.is_quota_exceeded(EPOCH_MS + 2_000)


def test_throttles_what_is_marked_exceeded_and_out_of_sync() -> None:
    """All three are needed; a replica in sync is never held back."""
    manager = make()
    manager.update_rate(1)
    manager.mark_throttled("t", [0])
    assert not manager.should_throttle("t", 0, EPOCH_MS, in_sync=False)
    manager.record(10, EPOCH_MS)
    assert manager.should_throttle("t", 0, EPOCH_MS, in_sync=False)
    assert not manager.should_throttle("t", 0, EPOCH_MS, in_sync=True)
    assert not manager.should_throttle("t", 1, EPOCH_MS, in_sync=False)


def test_asking_for_an_unmarked_partition_makes_no_sensor() -> None:
    """The rate is looked at last, as in Kafka."""
    registry = Registry()
    manager = ReplicationQuotaManager(registry, ReplicationQuotaType.FOLLOWER)
    manager.should_throttle("t", 0, EPOCH_MS, in_sync=False)
    assert registry.get_sensor("FollowerReplication") is None


def test_the_upper_bound_is_a_whole_number() -> None:
    """Without a rate the largest, whether one was ever set or not."""
    manager = make()
    assert manager.upper_bound == LONG_MAX
    manager.update_rate(None)
    assert manager.upper_bound == LONG_MAX
    assert manager.quota == Quota(float(LONG_MAX))
    manager.update_quota(Quota(2.9))
    assert manager.upper_bound == 2


@pytest.mark.parametrize("quota_type", ReplicationQuotaType)
def test_the_metric_is_called_as_kafkas(quota_type: ReplicationQuotaType) -> None:
    """One attribute of one MBean for each kind."""
    name = make(quota_type).metric_name
    assert (name.name, name.group, name.tags) == ("byte-rate", quota_type.value, {})
    assert name.description == f"Tracking byte-rate for {quota_type.value}"
