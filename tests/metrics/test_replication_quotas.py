"""Quotas on the traffic among brokers, set by configs."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    ALL_REPLICAS,
    LONG_MAX,
    InvalidConfig,
    Quota,
    Registry,
    ReplicationQuotaManager,
    ReplicationQuotas,
    ReplicationQuotaType,
    WindowConfig,
    parse_throttled_replicas,
)
from quotascope.metrics.replication_quotas import FOLLOWER_REPLICAS, LEADER_REPLICAS


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("0:101,1:102,2:101", (0, 2)),
        ("7:102", ()),
        ("007:0101", (7,)),
        ("0:101,", (0,)),
        (" 0:101,1:101 ", (0, 1)),
        ("*", ALL_REPLICAS),
        (" *\n", ALL_REPLICAS),
        ("", ()),
        ("  ", ()),
        (",", ()),
        ("99999999999999999999:102", ()),
    ],
)
def test_parses(text: str, partitions: tuple[int, ...]) -> None:
    """Only the replicas of this broker count, and only their partitions are looked at closely."""
    assert parse_throttled_replicas(text, 101) == partitions


@pytest.mark.parametrize(
    "text",
    [
        *("all", "0", "0:", ":101", "0:101:1", "*,0:101", "0:-1", "-1:101", "٣:101"),
        *("0:101,,1:101", ",0:101", "0:101, 1:101", "0 :101"),
        *("2147483648:101", "0:99999999999", f"{'9' * 10_000}:101"),
    ],
)
def test_refuses_what_brokers_cannot_read(text: str) -> None:
    """No matter whether Kafka would store it."""
    with pytest.raises(InvalidConfig):
        parse_throttled_replicas(text, 101)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else is raised."""
    with suppress(InvalidConfig):
        assert all(each >= -1 for each in parse_throttled_replicas(text, 1))


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


LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DIRECTORIES_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def quotas() -> ReplicationQuotas:
    """The quotas of broker 1."""
    return ReplicationQuotas(Registry(), 1)


def bounds(quotas: ReplicationQuotas) -> list[int]:
    """Return the bounds of leader, follower and directories."""
    return [manager.upper_bound for manager in quotas.all()]


def test_a_brokers_own_rate_beats_the_clusters(quotas: ReplicationQuotas) -> None:
    """Where neither is set there is no bound."""
    quotas.apply_broker_configs(
        {LEADER_RATE: "10"}, {LEADER_RATE: "20", DIRECTORIES_RATE: " 30 "}
    )
    assert bounds(quotas) == [10, LONG_MAX, 30]
    quotas.apply_broker_configs({}, {FOLLOWER_RATE: "0"})
    assert bounds(quotas) == [LONG_MAX, 0, LONG_MAX]


@pytest.mark.parametrize("text", ["", "-1", "1.5", "9223372036854775808", "1_000", "x"])
def test_refuses_a_rate_that_is_no_long(quotas: ReplicationQuotas, text: str) -> None:
    """The key is named."""
    with pytest.raises(InvalidConfig, match=LEADER_RATE):
        quotas.apply_broker_configs({LEADER_RATE: text}, {})


def test_a_refusal_quotes_60_characters_of_a_long_text(
    quotas: ReplicationQuotas,
) -> None:
    """Enough to find it, and no more."""
    with pytest.raises(InvalidConfig) as caught:
        quotas.apply_broker_configs({LEADER_RATE: "x" * 10_000}, {})
    assert str(caught.value).count("x") == 60


def test_topics_mark_replicas(quotas: ReplicationQuotas) -> None:
    """Leader and follower apart; a config that is gone takes its marks along."""
    configs = {LEADER_REPLICAS: "0:1,1:2", FOLLOWER_REPLICAS: "*"}
    quotas.apply_topic_configs("t", configs)
    assert quotas.leader.is_throttled("t", 0)
    assert not quotas.leader.is_throttled("t", 1)
    assert quotas.follower.is_throttled("t", 9)
    quotas.apply_topic_configs("t", {LEADER_REPLICAS: ""})
    assert not quotas.leader.is_throttled("t", 0)
    assert not quotas.follower.is_throttled("t", 9)
