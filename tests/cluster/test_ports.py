"""Ports of test nodes."""

from tests.cluster.ports import free_port


def test_no_port_is_given_twice() -> None:
    """A node that starts later finds its ports as free as when it was given them."""
    ports = [free_port() for _ in range(1_000)]
    assert len(set(ports)) == len(ports)
