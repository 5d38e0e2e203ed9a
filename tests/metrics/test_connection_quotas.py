"""Quotas on new connections, and how many there may be."""

import pytest
from tests.metrics.examples import bound_of, metric_of
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.errors import ConnectionThrottled, TooManyConnections, UnknownConnection
from quotascope.metrics.engine.extras.connection_counts import ConnectionCounts
from quotascope.metrics.engine.extras.connection_quotas import ConnectionQuotas
from quotascope.metrics.engine.extras.delayed_close import DelayedClose
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.jmx import mbean_name
from quotascope.metrics.kafka.numbers import INT_MAX
from quotascope.metrics.kafka.windows import WindowConfig

IP = "10.0.0.1"
TWO = WindowConfig(samples=2)


def make(registry: Registry, max_rate: int = INT_MAX) -> ConnectionQuotas:
    """Return quotas over two windows of a second, with a listener for clients and one for brokers."""
    counts = ConnectionCounts(inter_broker_listener="BROKER")
    quotas = ConnectionQuotas(registry, EPOCH_MS, TWO, max_rate, counts)
    for listener in ("CLIENT", "BROKER"):
        quotas.add_listener(listener, EPOCH_MS, INT_MAX)
    return quotas


def metric(registry: Registry, name: str, **tags: str) -> KafkaMetric:
    return metric_of(registry, name, "socket-server-metrics", tags)


def rate(registry: Registry, name: str = "connection-accept-rate", **tags: str) -> float:
    return metric(registry, name, **tags).value(EPOCH_MS)


def connect(quotas: ConnectionQuotas, times: int, ip: str = IP) -> int:
    """Open connections all at once, and return how many were admitted before the first refusal."""
    for admitted in range(times):
        quotas.accept("CLIENT", EPOCH_MS)
        try:
            quotas.admit("CLIENT", ip, EPOCH_MS)
        except ConnectionThrottled:
            return admitted
    return times


def test_a_refused_connection_leaves_no_trace(registry: Registry) -> None:
    """A refused connection is taken back from address, listener and broker; only the throttle time is measured."""
    quotas = make(registry)
    quotas.update_ip_rate(IP, 0)
    quotas.accept("CLIENT", EPOCH_MS)
    with pytest.raises(ConnectionThrottled) as refusal:
        quotas.admit("CLIENT", IP, EPOCH_MS)
    assert refusal.value.throttle_time_ms == 1_000
    assert refusal.value.end_ms == EPOCH_MS + 1_000
    assert rate(registry, ip=IP) == 0
    assert rate(registry, listener="CLIENT") == 0
    assert rate(registry, "broker-connection-accept-rate") == 0
    name = "ip-connection-accept-throttle-time"
    assert rate(registry, name, listener="CLIENT") == 1_000
    assert quotas.counts.total == 0


def test_a_wait_of_one_ms_is_a_refusal(registry: Registry) -> None:
    """
    The shortest possible wait refuses a connection.

    Where 2000/s are allowed, the 2001st of a second is (2001 - 2000) / 2000 s too early: half a millisecond, which is
    rounded up.
    """
    quotas = make(registry)
    quotas.update_ip_rate(IP, 2_000)
    assert connect(quotas, 2_010) == 2_000
    assert rate(registry, ip=IP) == 2_000
    name = "ip-connection-accept-throttle-time"
    assert rate(registry, name, listener="CLIENT") == 1
    assert quotas.counts.total == 2_000


def test_a_broker_past_its_limit_makes_acceptors_wait(registry: Registry) -> None:
    """A broker past its limit makes acceptors wait until the rate is back at it; the connection itself counts."""
    quotas = make(registry, max_rate=4)
    assert [quotas.accept("CLIENT", EPOCH_MS) for _ in range(5)] == [0, 0, 0, 0, 250]
    name = "connection-accept-throttle-time"
    assert rate(registry, name, listener="CLIENT") == 250
    assert rate(registry, "broker-connection-accept-rate") == 5
    quotas.update_broker_rate(5)
    assert quotas.accept("CLIENT", EPOCH_MS) == 200


def test_a_listener_has_a_limit_of_its_own(registry: Registry) -> None:
    """A listener has a limit of its own, of which and the broker's the longer wait counts, up to one window."""
    quotas = make(registry, max_rate=4)
    quotas.update_listener_rate("CLIENT", 1)
    assert [quotas.accept("CLIENT", EPOCH_MS) for _ in range(4)] == [0, 1_000, 1_000, 1_000]


def test_brokers_do_not_count_for_the_broker(registry: Registry) -> None:
    """A connection of another broker does not count for the broker's rate, also not when it is refused."""
    quotas = make(registry, max_rate=0)
    assert quotas.accept("BROKER", EPOCH_MS) == 0
    assert rate(registry, "broker-connection-accept-rate") == 0
    quotas.update_ip_rate(IP, 0)
    with pytest.raises(ConnectionThrottled):
        quotas.admit("BROKER", IP, EPOCH_MS)
    assert [rate(registry, "broker-connection-accept-rate"), rate(registry, listener="BROKER")] == [0, 0]


def test_a_listener_takes_over_the_brokers_limits(registry: Registry) -> None:
    """A listener without its own limit has the broker's, as in Kafka; so the brokers' listener is limited too."""
    counts = ConnectionCounts(3, inter_broker_listener="BROKER")
    quotas = ConnectionQuotas(registry, EPOCH_MS, TWO, 1, counts)
    for listener in ("CLIENT", "BROKER"):
        quotas.add_listener(listener, EPOCH_MS)
    assert [quotas.accept("BROKER", EPOCH_MS) for _ in range(2)] == [0, 1_000]
    for _ in range(3):
        quotas.admit("BROKER", IP, EPOCH_MS)
    assert not counts.has_slot("BROKER")
    quotas.update_broker_rate(7)
    quotas.add_listener("OTHER", EPOCH_MS, max_connections=1)
    assert bound_of(metric(registry, "connection-accept-rate", listener="OTHER")) == 7


def test_an_unknown_listener_never_waits(registry: Registry) -> None:
    """An unknown listener never waits, and its connection counts for the broker."""
    quotas = make(registry, max_rate=0)
    assert quotas.accept("OTHER", EPOCH_MS) == 0
    assert rate(registry, "broker-connection-accept-rate") == 1
    quotas.update_ip_rate(IP, 0)
    with pytest.raises(ConnectionThrottled):
        quotas.admit("OTHER", IP, EPOCH_MS)
    assert rate(registry, "broker-connection-accept-rate") == 0


def test_addresses_are_measured_only_under_a_limit(registry: Registry) -> None:
    """An address is measured only under a limit, and until it expires once the limit is removed."""
    quotas = make(registry)
    quotas.admit("CLIENT", IP, EPOCH_MS)
    assert registry.get_sensor(f"Connection-Accept-Rate-{IP}") is None
    quotas.update_ip_rate(IP, 1)
    quotas.admit("CLIENT", IP, EPOCH_MS)
    assert rate(registry, ip=IP) == 1
    quotas.update_ip_rate(IP, None)
    assert connect(quotas, 5) == 5
    assert rate(registry, ip=IP) == 1
    assert bound_of(metric(registry, "connection-accept-rate", ip=IP)) == INT_MAX
    later = EPOCH_MS + 3_600_001
    assert registry.expire_sensors(later) == (f"Connection-Accept-Rate-{IP}",)


def test_an_own_limit_beats_the_default(registry: Registry) -> None:
    """The own limit stays when the default changes afterwards."""
    quotas = make(registry)
    quotas.update_ip_rate(IP, 3)
    quotas.update_ip_rate(None, 1)
    assert (quotas.rate_for_ip(IP), quotas.rate_for_ip("::1")) == (3, 1)
    assert (connect(quotas, 9), connect(quotas, 9, "::1")) == (3, 1)
    quotas.update_ip_rate(None, 2)
    assert (connect(quotas, 9), connect(quotas, 9, "::1")) == (0, 1)
    quotas.update_ip_rate(IP, None)
    quotas.update_ip_rate(None, None)
    assert quotas.rate_for_ip(IP) == INT_MAX


def test_refuses_what_is_no_address(registry: Registry) -> None:
    """A text that is no address is refused, and changes nothing."""
    quotas = make(registry)
    with pytest.raises(MalformedName):
        quotas.update_ip_rate("localhost", 3)
    with pytest.raises(MalformedName):
        quotas.admit("CLIENT", "localhost", EPOCH_MS)


def test_too_many_connections_of_an_address(registry: Registry) -> None:
    """Connections of an address beyond its maximum are recorded, counted and closed at once."""
    counts = ConnectionCounts(max_per_ip=0)
    quotas = ConnectionQuotas(registry, EPOCH_MS, TWO, counts=counts)
    with pytest.raises(TooManyConnections):
        quotas.admit("CLIENT", IP, EPOCH_MS)
    assert counts.total == 1
    quotas.closed("CLIENT", IP)
    assert counts.total == 0


def test_a_listener_comes_once_and_goes(registry: Registry) -> None:
    """The listener comes and goes with all its metrics; a broker that stops takes its own along."""
    quotas = make(registry)
    quotas.add_listener("CLIENT", EPOCH_MS, max_rate=1)
    assert [quotas.accept("CLIENT", EPOCH_MS) for _ in range(2)] == [0, 0]
    quotas.remove_listener("CLIENT")
    quotas.remove_listener("CLIENT")
    assert {"listener": "CLIENT"} not in [name.tags for name in registry.metrics()]
    quotas.close()
    assert set(registry.sensors()) == set()


def test_mbeans_are_kafkas(registry: Registry) -> None:
    """The broker, each listener and each address have an MBean; only addresses expire."""
    quotas = make(registry)
    quotas.update_ip_rate("::1", 5)
    quotas.admit("CLIENT", "::1", EPOCH_MS)
    start = "kafka.server:type=socket-server-metrics"
    of_a_listener = ("connection-accept-rate", "connection-accept-throttle-time", "ip-connection-accept-throttle-time")
    assert {
        f"{mbean_name('kafka.server', name.group, name.tags)}#{name.name}"
        for name in registry.metrics()
        if name.group == "socket-server-metrics"
    } == {
        f"{start}#broker-connection-accept-rate",
        f'{start},ip="0:0:0:0:0:0:0:1"#connection-accept-rate',
        *(f"{start},listener={listener}#{name}" for listener in ("CLIENT", "BROKER") for name in of_a_listener),
    }
    later = EPOCH_MS + 10**12
    assert registry.expire_sensors(later) == ("Connection-Accept-Rate-0:0:0:0:0:0:0:1",)


def test_counts_by_address_and_in_total() -> None:
    """Connections are counted by address and in total, and an address without any is forgotten."""
    counts = ConnectionCounts()
    for ip in ("::1", "0:0:0:0:0:0:0:1", "10.0.0.1"):
        counts.add("CLIENT", ip)
    assert (counts.count("::1"), counts.count("10.0.0.2"), counts.total) == (2, 0, 3)
    counts.remove("CLIENT", "10.0.0.1")
    with pytest.raises(UnknownConnection, match="no connection"):
        counts.remove("CLIENT", "10.0.0.1")
    assert counts.total == 2


def test_an_address_has_a_limit_or_one_of_its_own() -> None:
    """A connection too many is counted until it is closed."""
    counts = ConnectionCounts(max_per_ip=1, overrides={"10.0.0.2": 2})
    for ip, limit in (("10.0.0.1", 1), ("10.0.0.2", 2)):
        for _ in range(limit):
            counts.add("CLIENT", ip)
        with pytest.raises(TooManyConnections, match=f"more than {limit}"):
            counts.add("CLIENT", ip)
        assert counts.count(ip) == limit + 1
    counts.update_overrides({})
    with pytest.raises(TooManyConnections, match="more than 1"):
        counts.add("CLIENT", "10.0.0.2")


def test_a_listener_has_slots() -> None:
    """The acceptor waits while all slots are taken."""
    counts = ConnectionCounts()
    counts.set_listener("CLIENT", 1)
    has_slot = [counts.has_slot("CLIENT")]
    counts.add("CLIENT", "10.0.0.1")
    for max_connections in (1, 2, 1):
        counts.set_listener("CLIENT", max_connections)
        has_slot.append(counts.has_slot("CLIENT"))
    counts.remove("CLIENT", "10.0.0.1")
    assert [*has_slot, counts.has_slot("CLIENT")] == [True, False, True, False, True]


def test_brokers_reach_each_other_when_clients_took_all_slots() -> None:
    """Brokers connect when clients took all slots, as soon as they have a listener of their own."""
    counts = ConnectionCounts(max_connections=1, inter_broker_listener="BROKER")
    counts.set_listener("BROKER")
    assert not counts.is_protected("BROKER")
    counts.set_listener("CLIENT")
    assert counts.is_protected("BROKER")
    for _ in range(2):
        counts.add("CLIENT", "10.0.0.1")
    assert (counts.has_slot("CLIENT"), counts.has_slot("BROKER")) == (False, True)
    assert counts.is_exceeded("CLIENT")
    assert not counts.is_exceeded("BROKER")


def test_a_removed_listener_is_forgotten() -> None:
    """Connections of a removed listener count for the broker until they are closed."""
    counts = ConnectionCounts(inter_broker_listener="BROKER")
    for listener in ("BROKER", "CLIENT"):
        counts.set_listener(listener)
    counts.add("CLIENT", "10.0.0.1")
    counts.remove_listener("CLIENT")
    counts.remove_listener("CLIENT")
    assert not counts.is_protected("BROKER")
    assert counts.total == 1
    counts.remove("CLIENT", "10.0.0.1")
    assert counts.total == 0


@pytest.mark.parametrize(
    ("earliest_first", "ends_ms", "now_ms", "due"),
    [
        (False, {"a": 100, "c": 300, "b": 200}, 299, []),
        (False, {"a": 100, "c": 300, "b": 200}, 301, ["c", "b", "a"]),
        (True, {"c": 300, "a": 100, "b": 200}, 201, ["a", "b"]),
        (False, {"a": 100}, 100, []),
        (False, {"a": 100}, 101, ["a"]),
        (False, {"first": 100, "second": 100}, 101, ["first", "second"]),
    ],
    ids=[
        "Kafka's queue looks at the latest deadline first",
        "latest first",
        "for those that do not want to keep refused connections",
        "not at the deadline",
        "after the deadline",
        "with the same deadline in the order of their refusal",
    ],
)
def test_refused_connections_are_closed_when_due(
    earliest_first: bool,  # noqa: FBT001 - a parameter
    ends_ms: dict[str, int],
    now_ms: int,
    due: list[str],
) -> None:
    """Due connections are closed in their order; an acceptor that stops closes the others."""
    names = {object(): name for name in ends_ms}
    sockets: DelayedClose[object] = DelayedClose(earliest_first=earliest_first)
    for connection, name in names.items():
        sockets.add(connection, ends_ms[name])
    assert [names[connection] for connection in sockets.due(now_ms)] == due
    assert len(sockets) == len(ends_ms) - len(due)
    assert {names[connection] for connection in sockets.clear()} == ends_ms.keys() - set(due)
    assert sockets.clear() == []
