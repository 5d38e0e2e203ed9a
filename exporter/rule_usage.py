"""The configured rules, each with those that it decides for now, and how full they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TypeAlias

import numpy as np

from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType, host_address, is_address
from quotascope.quotas import Entity, IpEntity, overruling_rules

from .join.limiting import NO_RULES
from .limits import CONNECTION_KEY, Limits
from .limits.model import DEFAULT_IP
from .snapshot import EntityUsage, NodeUsage, Snapshot, Usages
from .trails import used_part


@dataclass(frozen=True, slots=True, kw_only=True)
class IpUsage:
    """New connections of one address to one broker."""

    broker: str
    ip: str
    rate: float | None
    """Connections/s; None when the node gave none."""
    limit: float

    @property
    def utilization(self) -> float | None:
        """Usage divided by limit; None without usage."""
        return None if self.rate is None else self.rate / self.limit


Hit: TypeAlias = EntityUsage | IpUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUsage:
    """One configured quota, and whom it limits now."""

    entity: Entity
    key: str
    """Such as ``producer_byte_rate``."""
    value: float
    """In Kafka's unit, per broker."""
    hits: Sequence[Hit] | None = ()
    """
    Who is measured under it, by broker; the fullest first.

    None when that is unknown: nothing was measured, a custom quota callback decides, or the rule is for the name of a host.
    """
    overruled_by: QuotaEntity | None = None
    """The rule that decides in its place for every client that sends a client-id; None when it decides for some."""

    @property
    def fullest(self) -> float | None:
        """The greatest known use of the limit, or of the burst, among the hits; None when there is none, or it is unknown."""
        hits = self.hits or ()
        if isinstance(hits, Usages):
            greatest = float(np.fmax.reduce(hits.columns.used[hits.rows]))
            return None if isnan(greatest) else greatest
        used = (_used(hit) for hit in hits)
        return max((part for part in used if part is not None), default=None)


def rule_usage(limits: Limits, snapshot: Snapshot | None) -> list[RuleUsage]:
    """Every rule, in the order of people; without a snapshot, hits are unknown."""
    hits = None
    if snapshot is not None and not any(n.quota_callback for n in snapshot.nodes):
        hits = _client_hits(snapshot.measured)
    rules = []
    for kind in QuotaType:
        table = limits.rules.get(kind, NO_RULES)
        overruling = overruling_rules(table)
        rules += [
            RuleUsage(
                entity=entity,
                key=kind.quota_key,
                value=bound,
                hits=None if hits is None else hits.get((kind, entity), ()),
                overruled_by=overruling.get(entity),
            )
            for entity, bound in table.items()
        ]
    return rules + _connection_rules(
        limits, None if snapshot is None else snapshot.nodes
    )


def _client_hits(usages: Usages) -> Mapping[tuple[QuotaType, QuotaEntity], Usages]:
    """Who is measured under each rule, the fullest first."""
    columns, entities = usages.columns, usages.columns.layout.entities
    rows_of: dict[tuple[QuotaType, QuotaEntity], list[int]] = defaultdict(list)
    for row in usages.rows:
        rule = entities[row].resolution
        if rule is not None and rule.entity is not None:
            rows_of[entities[row].quota_type, rule.entity].append(row)
    used = np.nan_to_num(columns.used, nan=0.0)
    hits: dict[tuple[QuotaType, QuotaEntity], Usages] = {}
    for key, rows in rows_of.items():
        fullest_first = np.argsort(-used[rows], kind="stable")
        hits[key] = Usages(columns, np.array(rows)[fullest_first])
    return hits


def _connection_rules(
    limits: Limits, nodes: Sequence[NodeUsage] | None
) -> list[RuleUsage]:
    owners = {
        host_address(name): name
        for name in limits.connection_limits
        if is_address(name)
    }
    hits: dict[str, list[Hit]] = defaultdict(list)
    for usage in _ip_usages(limits.connection_limits, owners, nodes or ()):
        hits[owners.get(usage.ip, DEFAULT_IP)].append(usage)
    return [
        RuleUsage(
            entity=IpEntity(DEFAULT if name == DEFAULT_IP else name),
            key=CONNECTION_KEY,
            value=rate,
            hits=None
            if nodes is None or not (name == DEFAULT_IP or is_address(name))
            else _fullest_first(hits[name]),
        )
        for name, rate in limits.connection_limits.items()
    ]


def _ip_usages(
    rules: Mapping[str, float], owners: Mapping[str, str], nodes: Sequence[NodeUsage]
) -> Iterator[IpUsage]:
    """Those that are under a rule; a rule for the name of a host cannot be told from here."""
    for node in nodes:
        for ip, usage in node.connections.ips.items():
            limit = rules.get(owners.get(ip, DEFAULT_IP))
            if limit is not None:
                yield IpUsage(broker=node.broker, ip=ip, rate=usage.rate, limit=limit)


def _fullest_first(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(sorted(hits, key=lambda hit: _used(hit) or 0.0, reverse=True))


def _used(hit: Hit) -> float | None:
    return hit.utilization if isinstance(hit, IpUsage) else used_part(hit)
