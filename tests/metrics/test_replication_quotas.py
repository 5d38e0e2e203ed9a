"""The replication quotas of a broker, set by configs."""

import pytest

from quotascope.metrics import LONG_MAX, InvalidConfig, Registry, ReplicationQuotas
from quotascope.metrics.replication_quotas import FOLLOWER_REPLICAS, LEADER_REPLICAS

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
