from math import inf, nan

import pytest

from quotascope.clients import (
    AdminRequestFailed,
    BrokerSettings,
    ConfigOrigin,
    ConfiguredQuota,
    Node,
    PermissionMissing,
    QuotaChange,
    answers,
)
from quotascope.metrics.kafka.release import KafkaRelease

from .recorded import answer


def test_every_quota_keeps_its_entity_and_key() -> None:
    """Names come through as they are, and the default entity is None; an empty list and no list at all mean none."""
    quotas = answers.quotas(answer("quotas"))
    assert len(quotas) == 7
    assert ConfiguredQuota(entity={"user": None}, key="request_percentage", value=2.5) in quotas
    names = {quota.entity.get("client-id") for quota in quotas}
    assert {"my app/1=x,*?", 'line\nbreak "<b>" ü', None} <= names
    assert answers.quotas({"entries": []}) == answers.quotas({"entries": None}) == ()


def test_a_quota_that_is_no_number_limits_nothing() -> None:
    """A quota of NaN, which Kafka stores up to 4.3, throttles no request; two reads of it are equal."""
    entry = {
        "entity": [{"entity_type": "user", "entity_name": "a"}],
        "values": [{"key": "request_percentage", "value": nan}],
    }
    (quota,) = answers.quotas({"entries": [entry]})
    assert quota == ConfiguredQuota(entity={"user": "a"}, key="request_percentage", value=inf)


def test_the_cluster_lists_its_brokers() -> None:
    """
    Brokers have the address and id of the listener that was asked.

    Only a new cluster reports if a broker is fenced.
    """
    recorded = answer("cluster")
    (broker,) = recorded["brokers"]
    nodes = (Node(node_id=1, host="127.0.0.1", port=broker["port"]),)
    described, reported = answers.cluster(recorded), answers.brokers(recorded)
    assert (described.cluster_id, described.nodes) == ("cXVvdGFzY29wZS10ZXN0cw", nodes)
    assert (reported.nodes, reported.with_fenced) == (nodes, True)
    old = {key: value for key, value in broker.items() if key != "is_fenced"}
    assert not answers.brokers(recorded | {"brokers": [old]}).with_fenced


def test_settings_are_numbers() -> None:
    """Settings are numbers, and include a broker's defaults."""
    values = answers.configs(answer("settings"))
    assert answers.settings(1, values) == BrokerSettings(
        node_id=1,
        num_io_threads=8,
        num_network_threads=3,
        quota_samples=11,
        quota_window_seconds=1,
        controller_quota_samples=11,
        controller_quota_window_seconds=1,
        client_quota_callback_class=None,
    )


@pytest.mark.parametrize("value", [None, "", "many"])
def test_a_setting_that_is_no_number_is_named(value: str | None) -> None:
    """An answer without a usable value says which setting is missing."""
    strange = {**answers.configs(answer("settings")), "num.io.threads": value}
    with pytest.raises(AdminRequestFailed, match=r"broker 1 does not report num\.io\.threads"):
        answers.settings(1, strange)


def test_a_broker_without_quotas_of_mutations_has_no_windows_for_them() -> None:
    """A broker before Kafka 2.7 does not report these keys, and all others are read."""
    values = {k: v for k, v in answers.configs(answer("settings")).items() if not k.startswith("controller.quota")}
    assert answers.settings(1, values).controller_quota_samples == 11
    with pytest.raises(AdminRequestFailed, match=r"does not report quota\.window\.num"):
        answers.settings(1, {k: v for k, v in values.items() if k != "quota.window.num"})


def test_limits_of_a_broker_are_its_own_or_the_cluster_s() -> None:
    """
    Limits of replication, tiered storage, connections and listeners are read with their origins.

    A key without a limit is left out.
    """
    values = answers.configs(answer("limited_settings"))
    keys = answers.listener_rate_keys(values)
    assert len(keys) == 5
    values |= answers.configs(answer("limited_listeners"))
    assert answers.settings(1, values).rates == {
        "leader.replication.throttled.rate": 300_000,
        "follower.replication.throttled.rate": 400_000,
        "remote.log.manager.copy.max.bytes.per.second": 500_000,
        "max.connection.creation.rate": 77,
        "listener.name.sasl.max.connection.creation.rate": 50,
    }
    origins = answers.config_origins(answer("limited_settings"))
    limited = answers.settings(1, values, origins).origins
    assert limited["leader.replication.throttled.rate"] is ConfigOrigin.BROKER
    assert limited["follower.replication.throttled.rate"] is ConfigOrigin.ALL_BROKERS
    assert "num.io.threads" not in limited


@pytest.mark.parametrize("listeners", [None, "", ",", "://127.0.0.1:9092"])
def test_a_broker_that_names_no_listener_has_no_keys_of_any(listeners: str | None) -> None:
    """The broker is asked for no further keys then."""
    assert answers.listener_rate_keys({"listeners": listeners}) == []


def test_a_byte_rate_may_be_the_largest_connection_rate() -> None:
    """The value that stands for unlimited depends on the key: 2 GB/s is a limit, as many connections are not."""
    settings = answers.configs(answer("settings"))
    for key in ("leader.replication.throttled.rate", "max.connection.creation.rate"):
        settings[key] = "2147483647"
    assert answers.settings(1, settings).rates == {"leader.replication.throttled.rate": 2_147_483_647}


def test_the_leader_of_the_quorum_is_the_active_controller() -> None:
    """DescribeQuorum names the leader of the metadata partition; -1 during an election is no node."""
    described = answer("quorum")
    assert answers.quorum_leader(described) == 1
    described["topics"][0]["partitions"][0]["leader_id"] = -1
    assert answers.quorum_leader(described) is None


@pytest.mark.parametrize("name", ["quotas", "cluster", "settings", "quorum", "denied_cluster"])
def test_an_answer_without_an_error_passes(name: str) -> None:
    """Code 0 everywhere means success, whatever the text beside it."""
    answers.check("any", answer(name), None)


@pytest.mark.parametrize(
    ("name", "request_name", "operation"),
    [
        ("denied_quotas", "DescribeClientQuotas", "DescribeConfigs"),
        ("denied_settings", "DescribeConfigs", "DescribeConfigs"),
        ("denied_quorum", "DescribeQuorum", "Describe"),
        ("denied_altered", "AlterClientQuotas", "AlterConfigs"),
    ],
)
def test_a_missing_permission_names_the_acl(name: str, request_name: str, operation: str) -> None:
    """The message is the command that grants the missing permission, at any place of the error in the answer."""
    with pytest.raises(PermissionMissing) as caught:
        answers.check(request_name, answer(name), "mallory", ("a:9093", "b:9093"), is_secured=True)
    assert caught.value.operation == operation
    assert str(caught.value) == (
        f"{request_name} is not permitted; to grant it: "
        f"kafka-acls.sh --bootstrap-server a:9093,b:9093 --command-config admin.properties "
        f"--add --allow-principal User:mallory --operation {operation} --cluster"
    )


def test_another_error_keeps_its_code_and_reason() -> None:
    """A change that Kafka refuses is reported in Kafka's words; DescribeQuorum may fail for the partition only."""
    with pytest.raises(AdminRequestFailed, match="nonsense") as caught:
        answers.check("AlterClientQuotas", answer("altered"), None)
    assert caught.value.code == 42
    failed = answer("quorum")
    failed["topics"][0]["partitions"][0] |= {"error_code": 6, "error_message": None}
    with pytest.raises(AdminRequestFailed, match=r"\(error 6\): no reason given"):
        answers.check("DescribeQuorum", failed, None)


def test_changes_of_one_entity_go_together() -> None:
    """Changes of one entity become one entry, in whatever order its parts come: Kafka would refuse two."""
    a_first = QuotaChange(entity={"user": "a", "client-id": None}, key="producer_byte_rate", value=1.0)
    a_only = QuotaChange(entity={"user": "a"}, key="producer_byte_rate", value=2.0)
    second = QuotaChange(entity={"client-id": None, "user": "a"}, key="consumer_byte_rate", value=None)
    assert answers.by_entity([a_first, a_only, second]) == [
        ({"user": "a", "client-id": None}, [a_first, second]),
        ({"user": "a"}, [a_only]),
    ]


def test_voters_are_reported_with_their_addresses_by_new_clusters_only() -> None:
    """Version 2 of the answer has the voters' listeners, and an older one only their ids."""
    reported = answers.quorum_voters(answer("quorum"))
    (node,) = reported.nodes
    assert (reported.node_ids, node.node_id, node.host) == ((1,), 1, "127.0.0.1")
    old = {k: v for k, v in answer("quorum").items() if k != "nodes"}
    assert answers.quorum_voters(old).nodes == ()
    assert answers.quorum_voters(old).node_ids == (1,)


@pytest.mark.parametrize(
    ("level", "release"),
    [
        (33, KafkaRelease(4, 4)),
        (31, KafkaRelease(4, 3)),
        (30, KafkaRelease(4, 3)),
        (29, KafkaRelease(4, 2)),
        (99, KafkaRelease(4, 4)),
        (8, KafkaRelease(3, 4)),
    ]
)  # fmt: skip
def test_the_newest_metadata_version_names_the_release(level: int, release: KafkaRelease | None) -> None:
    """
    The level that a broker supports counts, not the finalized one.

    A level of a later release counts as the newest known.
    """
    features = [
        {"name": "group.version", "min_version": 0, "max_version": 1},
        {"name": "metadata.version", "min_version": 7, "max_version": level},
    ]
    several = {"api_keys": apis({1: 13, 35: 4})}
    assert answers.release({**several, "supported_features": features}) == release
    assert answers.release({**several, "supported_features": features[:1]}) is None
    assert answers.release({**several, "supported_features": None}) is None


def apis(newest: dict[int, int]) -> list[dict[str, int]]:
    return [{"api_key": key, "min_version": 0, "max_version": version} for key, version in newest.items()]


@pytest.mark.parametrize(
    ("newest", "level", "expected"),
    [
        # what APIs show, where no level is named: with LeaderAndIsr (4) a broker in ZooKeeper mode
        ({1: 12, 2: 6, 4: 5}, None, "2.8 in ZooKeeper mode"),
        ({1: 17, 4: 7}, None, "3.9 in ZooKeeper mode"),
        ({1: 17, 4: 7}, 21, "3.9 in ZooKeeper mode"),
        ({1: 12, 2: 5}, None, "2.7"),
        ({1: 13, 35: 4}, None, "3.3 to 3.4"),
        # a level names one of them
        ({1: 13, 35: 4}, 7, "3.3"),
        ({1: 18}, 27, "4.1"),
        ({1: 18}, 29, "4.2"),
        ({1: 18}, 34, "4.4 or later"),
        ({1: 18, 18: 5}, None, "4.4 or later"),
        # one that is older than all that is known of
        ({1: 11}, None, "2.4 in ZooKeeper mode or before"),
        # one that does not know our version of the request, and answers with this API alone
        ({18: 3}, None, None),
        ({}, 30, None),
    ],
)
def test_releases_that_a_broker_may_be_of(newest: dict[int, int], level: int | None, expected: str | None) -> None:
    """
    The newest `metadata.version` under KRaft, otherwise the versions of its APIs decide.

    Several releases may answer alike.
    """
    features = [{"name": "metadata.version", "min_version": 1, "max_version": level}]
    answer = {"api_keys": apis(newest), "supported_features": None if level is None else features}
    releases = answers.releases(answer)
    assert (None if releases is None else str(releases)) == expected
