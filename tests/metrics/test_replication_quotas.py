"""Quotas on what brokers move for themselves: replicas, and data of tiered storage."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.extras.byte_rate_quota import ByteRateQuota
from quotascope.metrics.engine.extras.replication_quotas import (
    ALL_REPLICAS,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    ReplicationQuotaManager,
    ReplicationQuotas,
    parse_throttled_replicas,
)
from quotascope.metrics.engine.extras.tiered_storage import RLMQuotaManager, TieredStorageQuotas
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.errors import InvalidConfig
from quotascope.metrics.kafka.node_quota_types import ReplicationQuotaType, RLMQuotaType
from quotascope.metrics.kafka.numbers import LONG_MAX
from quotascope.metrics.kafka.windows import WindowConfig


def make_quota(registry: Registry, quota: Quota | None = None) -> ByteRateQuota:
    return ByteRateQuota(registry, "RLMCopy", "about", WindowConfig(samples=10), quota)


def test_without_a_bound_nothing_is_in_violation(registry: Registry) -> None:
    """Without a bound, before one was set or after its removal, no rate is a violation."""
    quota = make_quota(registry)
    quota.record(1e18, EPOCH_MS)
    assert quota.violation(EPOCH_MS) is None
    quota.update_quota(Quota(1))
    assert quota.violation(EPOCH_MS) is not None
    quota.update_quota(None)
    assert quota.violation(EPOCH_MS) is None


def test_the_sensor_lives_an_hour(registry: Registry) -> None:
    """A sensor lives for an hour after its last record, and a new one has no history."""
    quota = make_quota(registry, Quota(5))
    quota.record(10, EPOCH_MS)
    assert registry.expire_sensors(EPOCH_MS + 3_600_000) == ()
    quota.violation(EPOCH_MS + 3_600_001)
    assert registry.expire_sensors(EPOCH_MS + 3_600_001) == ("RLMCopy",)
    assert registry.metric(quota.metric_name) is None
    assert quota.violation(EPOCH_MS + 3_600_002) is None
    assert registry.metric(quota.metric_name) is not None


def test_the_wait_is_not_clamped() -> None:
    """The wait is clamped neither to a window nor to 32 bits; a bound of 0 waits forever."""
    manager = RLMQuotaManager(Registry(), RLMQuotaType.FETCH, 1)
    manager.record(3e9, EPOCH_MS)
    assert manager.throttle_time_ms(EPOCH_MS) == 2_999_999_999_000
    manager.update_quota(Quota(0))
    assert manager.throttle_time_ms(EPOCH_MS) == LONG_MAX


def waits(registry: Registry) -> dict[str, float]:
    return {
        name.name: metric.value(EPOCH_MS)
        for name, metric in registry.metrics().items()
        if name.group == "RemoteLogManager"
    }


def test_waits_are_measured(registry: Registry) -> None:
    """Each direction has an average and a maximum of its waits, from the first wait on."""
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


def test_metrics_and_keys_are_named_as_kafkas(registry: Registry) -> None:
    """Names agree word by word; one attribute of one MBean for each kind."""
    quotas = TieredStorageQuotas(registry, (10, WindowConfig()), (10, WindowConfig()))
    for tiered in RLMQuotaType:
        what, name = tiered.name.lower(), quotas.of(tiered).metric_name
        quotas.of(tiered).record(20, EPOCH_MS)
        quotas.wait_ms(tiered, EPOCH_MS)
        assert (name.name, name.group) == ("byte-rate", tiered.value)
        assert name.description == f"Tracking {what} byte-rate for Remote Log Manager"
        assert tiered.rate_key == f"remote.log.manager.{what}.max.bytes.per.second"
    about = {name.name: name.description for name in registry.metrics()}
    end = "was throttled by a broker"
    assert about["remote-fetch-throttle-time-avg"] == f"The average time in millis remote fetches {end}"
    assert about["remote-copy-throttle-time-max"] == f"The maximum time in millis remote copies {end}"
    for replication in ReplicationQuotaType:
        name = make(replication).metric_name
        assert (name.name, name.group, name.tags) == ("byte-rate", replication.value, {})
        assert name.description == f"Tracking byte-rate for {replication.value}"


def test_closing_removes_the_metrics_of_waits(registry: Registry) -> None:
    """Closing removes the metrics of waits, and rates stay until they expire."""
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
        ("".join(map(chr, range(33))) + "0:101\0", (0,)),
        ("", ()),
        ("  ", ()),
        (",", ()),
        ("99999999999999999999:102", ()),
    ],
)
def test_parses(text: str, partitions: tuple[int, ...]) -> None:
    """Throttled replicas are parsed, and only the partitions of this broker count."""
    assert parse_throttled_replicas(text, 101) == partitions


@pytest.mark.parametrize(
    "text",
    [
        *("all", "0", "0:", ":101", "0:101:1", "*,0:101", "0:-1", "-1:101", "٣:101"),
        *("0:101,,1:101", ",0:101", "0:101, 1:101", "0 :101", "!0:101"),
        *("2147483648:101", "0:99999999999", f"{'9' * 10_000}:101"),
    ],
)
def test_refuses_what_brokers_cannot_read(text: str) -> None:
    """A list that brokers cannot read is refused, whether or not Kafka would store it."""
    with pytest.raises(InvalidConfig):
        parse_throttled_replicas(text, 101)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """A text is parsed or refused with one kind of error."""
    with suppress(InvalidConfig):
        assert all(partition >= -1 for partition in parse_throttled_replicas(text, 1))


def make(quota_type: ReplicationQuotaType = ReplicationQuotaType.LEADER) -> ReplicationQuotaManager:
    return ReplicationQuotaManager(Registry(), quota_type, WindowConfig(samples=10))


def test_only_marked_partitions_are_throttled() -> None:
    """New marks of a topic replace the former (`ReplicationQuotaManagerTest`); a topic can be marked whole."""
    manager = make()
    marks: list[tuple[int, ...] | None] = [(0, 1, 2), (3,), (), None]
    throttled = []
    for partitions in marks:
        manager.mark_throttled("topic1", *([] if partitions is None else [partitions]))
        throttled.append([manager.is_throttled("topic1", partition) for partition in (0, 3, 4711)])
    assert throttled == [[True, False, False], [False, True, False], [False] * 3, [True] * 3]
    assert not manager.is_throttled("topic2", 0)
    for _ in range(2):
        manager.remove_throttle("topic1")
    assert not manager.is_throttled("topic1", 4711)


def test_throttles_what_is_marked_exceeded_and_out_of_sync(registry: Registry) -> None:
    """A replica is held back only if throttled, not in sync, and above its rate, which is checked last as in Kafka."""
    manager = ReplicationQuotaManager(registry, ReplicationQuotaType.LEADER, WindowConfig(samples=10))
    assert not manager.should_throttle("t", 0, EPOCH_MS, in_sync=False)
    assert registry.get_sensor("LeaderReplication") is None
    manager.update_rate(1)
    manager.mark_throttled("t", [0])
    assert not manager.should_throttle("t", 0, EPOCH_MS, in_sync=False)
    manager.record(10, EPOCH_MS)
    answers = [
        manager.should_throttle("t", n, EPOCH_MS, in_sync=in_sync) for n, in_sync in ((0, False), (0, True), (1, False))
    ]
    assert answers == [True, False, False]


def test_the_upper_bound_is_a_whole_number() -> None:
    """The upper bound is a whole number, and without a rate the largest long."""
    manager = make()
    assert manager.upper_bound == LONG_MAX
    manager.update_rate(None)
    assert manager.upper_bound == LONG_MAX
    assert manager.quota == Quota(float(LONG_MAX))
    manager.update_quota(Quota(2.9))
    assert manager.upper_bound == 2


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
    """A broker's own rate overrides the cluster's; without both there is no bound."""
    quotas.apply_broker_configs({LEADER_RATE: "10"}, {LEADER_RATE: "20", DIRECTORIES_RATE: " 30 "})
    assert bounds(quotas) == [10, LONG_MAX, 30]
    quotas.apply_broker_configs({}, {FOLLOWER_RATE: "0"})
    assert bounds(quotas) == [LONG_MAX, 0, LONG_MAX]


@pytest.mark.parametrize("text", ["", "-1", "1.5", "9223372036854775808", "1_000", "x" * 10_000])
def test_refuses_a_rate_that_is_no_long(quotas: ReplicationQuotas, text: str) -> None:
    """The key is named, and of a long text 60 characters are quoted."""
    with pytest.raises(InvalidConfig, match=LEADER_RATE) as caught:
        quotas.apply_broker_configs({LEADER_RATE: text}, {})
    assert str(caught.value).count("x") == (60 if "x" in text else 0)


def test_topics_mark_replicas(quotas: ReplicationQuotas) -> None:
    """Leaders and followers are marked apart; a config that is gone takes its marks along."""

    def marked() -> list[bool]:
        leader, follower = quotas.leader, quotas.follower
        return [leader.is_throttled("t", 0), leader.is_throttled("t", 1), follower.is_throttled("t", 9)]

    quotas.apply_topic_configs("t", {LEADER_REPLICAS: "0:1,1:2", FOLLOWER_REPLICAS: "*"})
    assert marked() == [True, False, True]
    quotas.apply_topic_configs("t", {LEADER_REPLICAS: ""})
    assert marked() == [False, False, False]
