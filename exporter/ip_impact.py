"""Which addresses are affected when the quotas of new connections change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from quotascope.quotas import IpEntity, QuotaSet

from .join.limiting import IpLimits
from .limits import CONNECTION_KEY
from .limits.model import DEFAULT_IP
from .snapshot import NodeUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class IpImpact:
    """One address whose limit changes."""

    ip: str
    usage: float | None
    """New connections/s, the greatest of all brokers; None when no broker gave any."""
    before: float | None
    """Connections/s per broker, infinite when unlimited; None when unknown, as a rule for the name of a host makes it."""
    after: float | None
    """As ``before``."""

    @property
    def utilization_after(self) -> float | None:
        """Today's usage divided by the limit to come; None without either."""
        if self.usage is None or self.after is None:
            return None
        return self.usage / self.after if isfinite(self.after) else None


def ip_impacts(
    old: QuotaSet, new: QuotaSet, nodes: Sequence[NodeUsage]
) -> list[IpImpact]:
    """All measured addresses whose limit changes. Brokers measure only those that are under a limit already."""
    rates: dict[str, list[float]] = defaultdict(list)
    for node in nodes:
        for ip, usage in node.connections.ips.items():
            rates[ip] += [] if usage.rate is None else [usage.rate]
    before, after = IpLimits(connection_rules(old)), IpLimits(connection_rules(new))
    found = [
        IpImpact(
            ip=ip,
            usage=max(rates[ip], default=None),
            before=_limit(before, ip),
            after=_limit(after, ip),
        )
        for ip in sorted(rates)
        if _limit(before, ip) != _limit(after, ip)
    ]
    return sorted(found, key=lambda impact: -(impact.utilization_after or 0.0))


def _limit(rules: IpLimits, ip: str) -> float | None:
    limit = rules.limit(ip)
    return inf if limit is None and not rules.may_limit(ip) else limit


def connection_rules(quotas: QuotaSet) -> dict[str, float]:
    """New connections/s by address; the default reads ``<default>``."""
    return {
        entity.ip if isinstance(entity.ip, str) else DEFAULT_IP: value
        for entity, key, value in quotas.items_by_key()
        if isinstance(entity, IpEntity) and key == CONNECTION_KEY
    }
