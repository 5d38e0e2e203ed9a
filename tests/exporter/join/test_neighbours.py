"""The quotas beside the client quotas, from beans and limits to a snapshot."""

from math import nan

import pytest
from tests.exporter.join.world import Numbers, World, limits

from quotascope.exporter.limits import Limits, NodeSettings
from quotascope.exporter.mapping import Bean, BeanColumn
from quotascope.exporter.snapshot import ConnectionUsage, LimitedRate, NodeUsage

SETTINGS = NodeSettings(
    connection_limit=100.0,
    listener_connection_limits={"sasl": 20.0},
    replication_limits={"leader": 1000.0, "alter_log_dirs": 7.0},
    remote_storage_limits={"copy": 500.0},
)


def bean(kind: str, numbers: dict[str, float], **properties: str) -> Numbers:
    """One bean of `kafka.server`."""
    name = Bean.of("kafka.server", {"type": kind, **properties})
    return {BeanColumn(name, attribute): value for attribute, value in numbers.items()}


def listener(name: str, rate: float, wait_ms: float, refusal_ms: float) -> Numbers:
    """A listener's bean."""
    numbers = {
        "connection-accept-rate": rate,
        "connection-accept-throttle-time": wait_ms,
        "ip-connection-accept-throttle-time": refusal_ms,
    }
    return bean("socket-server-metrics", numbers, listener=name)


def address(ip: str, rate: float = 1.0) -> Numbers:
    """The bean of an IP address."""
    return bean("socket-server-metrics", {"connection-accept-rate": rate}, ip=ip)


def node(configured: Limits | None, *parts: Numbers) -> NodeUsage:
    """What the one node of a snapshot says."""
    (found,) = World(configured).collect_one(*parts).nodes
    return found


def test_listeners_have_their_own_limit_or_the_broker_s() -> None:
    """Kafka falls back from the listener's key to the broker's; names differ in case only."""
    found = node(
        limits({}, settings=SETTINGS),
        bean("socket-server-metrics", {"broker-connection-accept-rate": 3.5}),
        listener("SASL", 3.0, 400.0, nan),
        listener("TLS", 0.5, nan, 250.0),
    ).connections
    assert found.broker == LimitedRate(rate=3.5, limit=100.0)
    assert found.listeners == {
        "SASL": LimitedRate(rate=3.0, limit=20.0, throttle_time_seconds=0.4),
        "TLS": LimitedRate(rate=0.5, limit=100.0, throttle_time_seconds=0.0),
    }
    assert found.ip_throttle_time_seconds == {"SASL": 0.0, "TLS": 0.25}


def test_addresses_left_over_from_earlier_rules_are_left_out() -> None:
    """Kafka measures an address only under a limit, and keeps its bean for an hour after."""
    configured = Limits(connection_limits={"10.0.0.1": 5.0}, read_at=0.0)
    found = node(configured, address("10.0.0.1", 2.0), address("10.0.0.2"))
    assert found.connections.ips == {"10.0.0.1": LimitedRate(rate=2.0, limit=5.0)}


def test_without_limits_all_addresses_are_shown() -> None:
    """Nothing can be recognized as left over."""
    found = node(None, address("10.0.0.1"), address("10.0.0.2"))
    assert found.connections.ips == {
        "10.0.0.1": LimitedRate(rate=1.0),
        "10.0.0.2": LimitedRate(rate=1.0),
    }


def test_rules_that_change_are_followed() -> None:
    """Addresses are judged by the rules of this collection."""
    world = World(Limits(connection_limits={"10.0.0.1": 5.0}, read_at=0.0))
    world.collect_one(address("10.0.0.1"))
    world.limits = Limits(connection_limits={"<default>": 6.0}, read_at=1.0)
    (found,) = world.collect_one(address("10.0.0.1")).nodes
    assert found.connections.ips["10.0.0.1"].limit == 6.0


def test_transfers_show_by_direction_with_rate_or_limit() -> None:
    """A limit that was left on shows without any transfer, and a rate without a limit."""
    found = node(
        limits({}, settings=SETTINGS),
        bean("LeaderReplication", {"byte-rate": 900.0}),
        bean("FollowerReplication", {"byte-rate": 0.0}),
        bean("RLMFetch", {"byte-rate": 50.0}),
        bean(
            "RemoteLogManager",
            {
                "remote-copy-throttle-time-avg": 1500.0,
                "remote-fetch-throttle-time-avg": nan,
            },
        ),
    )
    assert found.replication == {
        "leader": LimitedRate(rate=900.0, limit=1000.0),
        "follower": LimitedRate(rate=0.0),
        "alter_log_dirs": LimitedRate(limit=7.0),
    }
    assert found.remote_storage == {
        "copy": LimitedRate(limit=500.0, throttle_time_seconds=1.5),
        "fetch": LimitedRate(rate=50.0, throttle_time_seconds=0.0),
    }


@pytest.mark.parametrize("configured", [None, limits({}, nodes=())])
def test_a_node_of_which_nothing_is_known_has_none(configured: Limits | None) -> None:
    """A controller, or a broker that did not report its settings."""
    found = node(configured, bean("LeaderReplication", {"byte-rate": 900.0}))
    assert found.connections == ConnectionUsage()
    assert found.replication == {"leader": LimitedRate(rate=900.0)}
    assert found.remote_storage == {}


def test_beans_of_a_network_thread_are_no_listener() -> None:
    """They have the same type, and one more key property."""
    thread = bean("socket-server-metrics", {"connection-accept-rate": 1.0}, listener="SASL", networkProcessor="0")
    assert node(None, thread).connections.listeners == {}
