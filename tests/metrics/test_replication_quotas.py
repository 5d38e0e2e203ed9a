"""Quotas on what brokers move for themselves: replicas, and data of tiered storage."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    ALL_REPLICAS,
    LONG_MAX,
    ByteRateQuota,
    InvalidConfig,
    Quota,
    Registry,
    ReplicationQuotaManager,
    ReplicationQuotas,
    ReplicationQuotaType,
    RLMQuotaManager,
    RLMQuotaType,
    TieredStorageQuotas,
    WindowConfig,
    parse_throttled_replicas,
)
from quotascope.metrics.replication_quotas import FOLLOWER_REPLICAS, LEADER_REPLICAS


def make_quota(registry: Registry, quota: Quota | None = None) -> ByteRateQuota:
    """Return a quota over ten windows."""
    return ByteRateQuota(registry, "RLMCopy", "about", WindowConfig(samples=10), quota)


def test_without_a_bound_nothing_is_in_violation(registry: Registry) -> None:
    """Before one was set, and after it was taken away."""
    quota = make_quota(registry)
    quota.record(1e18, EPOCH_MS)
    assert quota.violation(EPOCH_MS) is None
    quota.update_quota(Quota(1))
    assert quota.violation(EPOCH_MS) is not None
    quota.update_quota(None)
    assert quota.violation(EPOCH_MS) is None


def test_the_sensor_lives_an_hour(registry: Registry) -> None:
    """Asking does not keep it, and a new one starts without history."""
    quota = make_quota(registry, Quota(5))
    quota.record(10, EPOCH_MS)
    assert registry.expire_sensors(EPOCH_MS + 3_600_000) == ()
    quota.violation(EPOCH_MS + 3_600_001)
    assert registry.expire_sensors(EPOCH_MS + 3_600_001) == ("RLMCopy",)
    assert registry.metric(quota.metric_name) is None
    assert quota.violation(EPOCH_MS + 3_600_002) is None
    assert registry.metric(quota.metric_name) is not None


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


def make(quota_type: ReplicationQuotaType = ReplicationQuotaType.LEADER) -> ReplicationQuotaManager:
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
    quotas.apply_broker_configs({LEADER_RATE: "10"}, {LEADER_RATE: "20", DIRECTORIES_RATE: " 30 "})
    assert bounds(quotas) == [10, LONG_MAX, 30]
    quotas.apply_broker_configs({}, {FOLLOWER_RATE: "0"})
    assert bounds(quotas) == [LONG_MAX, 0, LONG_MAX]


@pytest.mark.parametrize("text", ["", "-1", "1.5", "9223372036854775808", "1_000", "x"])
def test_refuses_a_rate_that_is_no_long(quotas: ReplicationQuotas, text: str) -> None:
    """The key is named."""
    with pytest.raises(InvalidConfig, match=LEADER_RATE):
        quotas.apply_broker_configs({LEADER_RATE: text}, {})


def test_a_refusal_quotes_60_characters_of_a_long_text(quotas: ReplicationQuotas) -> None:
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
