"""Which limit of new connections an IP address is under."""

from __future__ import annotations

from collections.abc import Mapping

from quotascope.metrics import INT_MAX, MalformedName, host_address

from ..limits.model import DEFAULT_IP


class IpLimits:
    """
    The configured limits by address.

    A rule may name a host instead, which each broker looks up by itself. Then an address without a rule of its own
    can be that host, and its limit is not known.

    Args:
        rules: Connections/s by address or host; the default rule reads ``<default>``.

    """

    def __init__(self, rules: Mapping[str, float]) -> None:
        self._default = rules.get(DEFAULT_IP)
        self._own: dict[str, float] = {}
        self._names_hosts = False
        for name, limit in rules.items():
            try:
                self._own[host_address(name)] = limit
            except MalformedName:
                self._names_hosts |= name != DEFAULT_IP

    def limit(self, ip: str) -> float | None:
        """The limit of an address in connections/s, None when it is unlimited or not known."""
        limit = self._own.get(ip, None if self._names_hosts else self._default)
        return None if limit == INT_MAX else limit

    def may_limit(self, ip: str) -> bool:
        """Whether brokers measure an address; what they keep of others is left over from earlier rules."""
        return self.limit(ip) is not None or (self._names_hosts and ip not in self._own)
