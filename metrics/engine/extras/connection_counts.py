"""Numbers of connections, and their maxima."""

from collections.abc import Mapping

from ...kafka.host_address import host_address
from ...kafka.numbers import INT_MAX
from ..errors import TooManyConnections, UnknownConnection


class ConnectionCounts:
    """
    The numbers of a broker's open connections, with their limits (Kafka: the other half of `ConnectionQuotas`).

    Not synchronized: `ConnectionQuotas` changes it under its lock. All limits are the largest 32-bit number unless
    given.

    Args:
        max_connections: of the broker, `max.connections`; the protected listener may exceed it.
        max_per_ip: of an address, `max.connections.per.ip`.
        overrides: of some addresses, `max.connections.per.ip.overrides`.
        inter_broker_listener: protected if it is not the only one, so that clients cannot keep brokers apart.

    """

    def __init__(
        self,
        max_connections: int = INT_MAX,
        max_per_ip: int = INT_MAX,
        overrides: Mapping[str, int] | None = None,
        inter_broker_listener: str | None = None,
    ) -> None:
        self.max_connections: int = max_connections
        self.max_per_ip: int = max_per_ip
        self.total: int = 0
        self._overrides: dict[str, int] = {}
        self._inter_broker_listener: str | None = inter_broker_listener
        self._ips: dict[str, int] = {}
        self._listeners: dict[str, int] = {}
        self._listener_limits: dict[str, int] = {}
        self.update_overrides(overrides or {})

    def update_overrides(self, overrides: Mapping[str, int]) -> None:
        """Set the limits of some addresses; raises `MalformedName` for what is no address."""
        self._overrides = {host_address(ip): limit for ip, limit in overrides.items()}

    def set_listener(self, listener: str, max_connections: int = INT_MAX) -> None:
        """Add a listener, or change its limit: `listener.name.<listener>.max.connections`."""
        self._listeners.setdefault(listener, 0)
        self._listener_limits[listener] = max_connections

    def remove_listener(self, listener: str) -> None:
        """Forget a listener; its connections still count for the broker until they are closed."""
        self._listeners.pop(listener, None)
        self._listener_limits.pop(listener, None)

    def is_protected(self, listener: str) -> bool:
        """Return whether a listener is the brokers' own, beside others."""
        return listener == self._inter_broker_listener and len(self._listeners) > 1

    def has_slot(self, listener: str) -> bool:
        """Return whether another connection may be accepted; the acceptor waits until it may."""
        limit = self._listener_limits.get(listener, INT_MAX)
        if self._listeners.get(listener, 0) >= limit:
            return False
        return self.is_protected(listener) or self.total < self.max_connections

    def is_exceeded(self, listener: str) -> bool:
        """Return whether connections of a listener are to be closed because the broker has too many."""
        return self.total > self.max_connections and not self.is_protected(listener)

    def count(self, ip: str) -> int:
        """Return the connections of an address."""
        return self._ips.get(host_address(ip), 0)

    def add(self, listener: str, ip: str) -> None:
        """
        Count a connection.

        Raises:
            TooManyConnections: of its address; it is counted until it is closed.

        """
        address = host_address(ip)
        count = self._ips.get(address, 0)
        self._ips[address] = count + 1
        self.total += 1
        if listener in self._listeners:
            self._listeners[listener] += 1
        limit = self._overrides.get(address, self.max_per_ip)
        if count >= limit:
            raise TooManyConnections(address, limit)

    def remove(self, listener: str, ip: str) -> None:
        """
        Count a connection that was closed.

        Raises:
            UnknownConnection: the address has none.

        """
        address = host_address(ip)
        if address not in self._ips:
            raise UnknownConnection(address)
        self._ips[address] -= 1
        if self._ips[address] == 0:
            del self._ips[address]
        self.total -= 1
        if self._listeners.get(listener, 0) > 0:
            self._listeners[listener] -= 1
