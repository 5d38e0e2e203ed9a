"""How many connections there are, and how many there may be."""

import pytest

from quotascope.metrics import ConnectionCounts, TooManyConnections, UnknownConnection


def test_counts_by_address_and_in_total() -> None:
    """An address without connections is forgotten."""
    counts = ConnectionCounts()
    counts.add("CLIENT", "::1")
    counts.add("CLIENT", "0:0:0:0:0:0:0:1")
    counts.add("CLIENT", "10.0.0.1")
    assert (counts.count("::1"), counts.count("10.0.0.2"), counts.total) == (2, 0, 3)
    counts.remove("CLIENT", "10.0.0.1")
    with pytest.raises(UnknownConnection, match="no connection"):
        counts.remove("CLIENT", "10.0.0.1")
    assert counts.total == 2


def test_an_address_has_a_limit_or_one_of_its_own() -> None:
    """A connection too many is counted until it is closed."""
    counts = ConnectionCounts(max_per_ip=1, overrides={"10.0.0.2": 2})
    counts.add("CLIENT", "10.0.0.1")
    with pytest.raises(TooManyConnections, match="more than 1"):
        counts.add("CLIENT", "10.0.0.1")
    assert counts.count("10.0.0.1") == 2
    for _ in range(2):
        counts.add("CLIENT", "10.0.0.2")
    with pytest.raises(TooManyConnections, match="more than 2"):
        counts.add("CLIENT", "10.0.0.2")
    counts.update_overrides({})
    with pytest.raises(TooManyConnections, match="more than 1"):
        counts.add("CLIENT", "10.0.0.2")


def test_a_listener_has_slots() -> None:
    """When they are taken, the acceptor waits."""
    counts = ConnectionCounts()
    counts.set_listener("CLIENT", 1)
    assert counts.has_slot("CLIENT")
    counts.add("CLIENT", "10.0.0.1")
    assert not counts.has_slot("CLIENT")
    counts.set_listener("CLIENT", 2)
    assert counts.has_slot("CLIENT")
    counts.set_listener("CLIENT", 1)
    counts.remove("CLIENT", "10.0.0.1")
    assert counts.has_slot("CLIENT")


def test_brokers_reach_each_other_when_clients_took_all_slots() -> None:
    """Their listener is protected as soon as there is another."""
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
    """Its connections count for the broker until they are closed."""
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
