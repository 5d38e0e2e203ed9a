"""The quotas beside the client quotas, from beans and limits to a snapshot, and what real brokers said of them."""

from math import nan

import pytest
from tests.exporter.join.world import Numbers, World, bean
from tests.exporter.nodes import Connections, LimitedRate, connections, remote_storage, replication
from tests.exporter.recorded import PAIR_LIMITS, joined, limits

from quotascope.exporter.join.limiting import IpLimits
from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.snapshot import NodeUsage, Snapshot

SETTINGS = NodeSettings(
    connection_limit=100.0,
    listener_connection_limits={"sasl": 20.0},
    replication_limits={"leader": 1000.0, "alter_log_dirs": 7.0},
    remote_storage_limits={"copy": 500.0},
)


def listener(name: str, rate: float, wait_ms: float, refusal_ms: float) -> Numbers:
    numbers = {
        "connection-accept-rate": rate,
        "connection-accept-throttle-time": wait_ms,
        "ip-connection-accept-throttle-time": refusal_ms,
    }
    return bean("socket-server-metrics", numbers, listener=name)


def address(ip: str, rate: float = 1.0) -> Numbers:
    return bean("socket-server-metrics", {"connection-accept-rate": rate}, ip=ip)


def node(configured: Limits | None, *parts: Numbers) -> NodeUsage:
    (node_usage,) = World(configured).collect_one(*parts).nodes
    return node_usage


def test_listeners_have_their_own_limit_or_the_broker_s() -> None:
    """Kafka falls back from the listener's key to the broker's; names differ in case only."""
    rates = connections(
        node(
            limits({}, settings=SETTINGS),
            bean("socket-server-metrics", {"broker-connection-accept-rate": 3.5}),
            listener("SASL", 3.0, 400.0, nan),
            listener("TLS", 0.5, nan, 250.0),
        )
    )
    assert rates.broker == LimitedRate(rate=3.5, limit=100.0)
    assert rates.listeners == {
        "SASL": LimitedRate(rate=3.0, limit=20.0, throttle_time_seconds=0.4),
        "TLS": LimitedRate(rate=0.5, limit=100.0, throttle_time_seconds=0.0),
    }
    assert rates.ip_throttle_time_seconds == {"SASL": 0.0, "TLS": 0.25}


@pytest.mark.parametrize(
    ("configured", "ips"),
    [
        # Kafka measures an address only under a limit, and keeps its bean for an hour after
        (Limits(connection_limits={"10.0.0.1": 5.0}, read_at=0.0), {"10.0.0.1": LimitedRate(rate=2.0, limit=5.0)}),
        # nothing can be recognized as left over
        (None, {"10.0.0.1": LimitedRate(rate=2.0), "10.0.0.2": LimitedRate(rate=1.0)}),
    ],
)
def test_addresses_left_over_from_earlier_rules_are_left_out(
    configured: Limits | None, ips: dict[str, LimitedRate]
) -> None:
    """Addresses without a rule any more are hidden, and shown while the limits are unknown."""
    assert connections(node(configured, address("10.0.0.1", 2.0), address("10.0.0.2"))).ips == ips


def test_rules_that_change_are_followed() -> None:
    """Addresses are judged by the rules of this collection."""
    world = World(Limits(connection_limits={"10.0.0.1": 5.0}, read_at=0.0))
    world.collect_one(address("10.0.0.1"))
    world.limits = Limits(connection_limits={"<default>": 6.0}, read_at=1.0)
    (node_usage,) = world.collect_one(address("10.0.0.1")).nodes
    assert connections(node_usage).ips["10.0.0.1"].limit == 6.0


@pytest.mark.parametrize(
    ("rules", "ip", "limit", "may_limit"),
    [
        ({"10.0.0.1": 5.0, "<default>": 9.0}, "10.0.0.1", 5.0, True),
        ({"10.0.0.1": 5.0, "<default>": 9.0}, "10.0.0.2", 9.0, True),
        # IPv6 addresses are the same however they are written
        ({"::1": 7.0, "<default>": 9.0}, "0:0:0:0:0:0:0:1", 7.0, True),
        # what a broker keeps of an address without a rule is left over; the largest number is no limit either
        ({"10.0.0.3": 1.0}, "10.0.0.2", None, False),
        ({"10.0.0.1": 2_147_483_647.0, "10.0.0.3": 1.0}, "10.0.0.1", None, False),
        # an address may be the host, which only brokers look up: unknown rather than the default
        ({"db.example.org": 3.0}, "10.0.0.2", None, True),
        ({"db.example.org": 3.0, "<default>": 9.0}, "10.0.0.2", None, True),
        ({"db.example.org": 3.0, "10.0.0.1": 5.0, "<default>": 9.0}, "10.0.0.1", 5.0, True),
    ],
)
def test_an_address_has_its_own_rule_or_the_default(
    rules: dict[str, float], ip: str, limit: float | None, *, may_limit: bool
) -> None:
    """An address has its own rule or the default one, resolved as brokers do."""
    ip_limits = IpLimits(rules)
    assert (ip_limits.limit(ip), ip_limits.may_limit(ip)) == (limit, may_limit)


def test_transfers_show_by_direction_with_rate_or_limit() -> None:
    """A limit that was left on shows without any transfer, and a rate without a limit."""
    node_usage = node(
        limits({}, settings=SETTINGS),
        bean("LeaderReplication", {"byte-rate": 900.0}),
        bean("FollowerReplication", {"byte-rate": 0.0}),
        bean("RLMFetch", {"byte-rate": 50.0}),
        bean("RemoteLogManager", {"remote-copy-throttle-time-avg": 1500.0, "remote-fetch-throttle-time-avg": nan}),
    )
    assert replication(node_usage) == {
        "leader": LimitedRate(rate=900.0, limit=1000.0),
        "follower": LimitedRate(rate=0.0),
        "alter_log_dirs": LimitedRate(limit=7.0),
    }
    assert remote_storage(node_usage) == {
        "copy": LimitedRate(limit=500.0, throttle_time_seconds=1.5),
        "fetch": LimitedRate(rate=50.0, throttle_time_seconds=0.0),
    }


@pytest.mark.parametrize("configured", [None, limits({}, nodes=())])
def test_a_node_of_which_nothing_is_known_has_none(configured: Limits | None) -> None:
    """A controller, or a broker that did not report its settings."""
    node_usage = node(configured, bean("LeaderReplication", {"byte-rate": 900.0}))
    assert connections(node_usage) == Connections()
    assert replication(node_usage) == {"leader": LimitedRate(rate=900.0)}
    assert remote_storage(node_usage) == {}


def test_beans_of_a_network_thread_are_no_listener() -> None:
    """The beans of a network thread, which have a listener's type and one more key property, make no listener."""
    thread = bean("socket-server-metrics", {"connection-accept-rate": 1.0}, listener="SASL", networkProcessor="0")
    assert connections(node(None, thread)).listeners == {}


def test_connections_of_a_real_broker_show_by_scope(pair_throttled: Snapshot) -> None:
    """Connections are shown by listener and address, delayed and refused ones of a real broker among them."""
    rates = connections(pair_throttled.nodes[0])
    assert rates.broker == LimitedRate(rate=5.221932114882507, limit=77.0)
    assert rates.listeners["TLS"] == LimitedRate(rate=2.4737779536908766, limit=2.0, throttle_time_seconds=891.8 / 1000)
    assert rates.listeners["SASLTLS"] == LimitedRate(rate=0.0, limit=77.0, throttle_time_seconds=0.0)
    assert rates.ips == {"127.0.0.1": LimitedRate(rate=5.3438891637803065, limit=5.0)}
    unheld = {"SASLTLS": 0.0, "ADMIN": 0.0, "CONTROLLER": 0.0}
    assert rates.ip_throttle_time_seconds == pytest.approx({"TLS": 0.062, "SASL": 0.5152857142857143, **unheld})


def test_a_replica_that_moves_shows_on_both_ends(pair_throttled: Snapshot) -> None:
    """A moving replica shows the leader's rate on one broker, the follower's on the other, and unused limits."""
    assert [replication(node_usage) for node_usage in pair_throttled.nodes] == [
        {
            "leader": LimitedRate(rate=357723.00869861845, limit=300_000.0),
            "follower": LimitedRate(limit=400_000.0),
        },
        {"follower": LimitedRate(rate=345210.2057613169, limit=400_000.0)},
    ]


def test_what_is_left_of_removed_limits_is_no_limit(pair_removed: Snapshot) -> None:
    """Throttles linger and beans stay; the address is not measured any more."""
    leader, follower = pair_removed.nodes
    assert connections(leader).broker == LimitedRate(rate=0.0)
    assert connections(leader).ips == {}
    assert connections(leader).ip_throttle_time_seconds["SASL"] > 0.5
    assert connections(leader).listeners["TLS"].limit is None
    assert replication(leader) == {"leader": LimitedRate(rate=31.700288184438044)}
    assert replication(follower) == {"follower": LimitedRate(rate=0.0)}


def test_both_versions_of_jolokia_report_the_same() -> None:
    """Key properties come in another order, and the read came a moment later."""
    new, old = (joined([f"pair/throttled.1.jolokia{version}.json"], PAIR_LIMITS).nodes[0] for version in (2, 1))
    assert connections(old).listeners.keys() == connections(new).listeners.keys()
    assert connections(old).listeners["TLS"].rate == pytest.approx(2.4, abs=0.1)
    assert connections(old).ips["127.0.0.1"].rate == pytest.approx(5.3, abs=0.1)
    assert replication(old)["leader"].rate == pytest.approx(353_000, rel=0.02)


def test_moves_and_the_remote_storage_are_reported(tiered_moving: Snapshot, tiered_throttled: Snapshot) -> None:
    """Moves between directories are reported for all topics; an unused direction has a limit only."""
    (moving,), (throttled,) = tiered_moving.nodes, tiered_throttled.nodes
    assert replication(moving) == {"alter_log_dirs": LimitedRate(rate=1025517.7591217307, limit=300_000.0)}
    assert remote_storage(moving) == {
        "copy": LimitedRate(rate=328157.86019035114, limit=200_000.0, throttle_time_seconds=2.97),
        "fetch": LimitedRate(limit=100_000.0),
    }
    assert remote_storage(throttled) == {
        "copy": LimitedRate(rate=222100.6219458019, limit=200_000.0, throttle_time_seconds=2.8065),
        "fetch": LimitedRate(rate=995913.3466135458, limit=100_000.0, throttle_time_seconds=8.999),
    }
