"""The configured rules, each with the entities that it applies to now, and how close they are to the limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics import DEFAULT, QuotaEntity, QuotaType, host_address, is_address
from quotascope.quotas import Entity, IpEntity, overruling_rules

from ..join.limiting import NO_RULES
from ..limits import CONNECTION_KEY, Limits
from ..limits.model import DEFAULT_IP
from ..snapshot import CAUSES, EntityUsage, NodeUsage, Snapshot, ThrottleCause, Usages
from ..snapshot.entity import part_used

_NOT_ITS_OWN: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class IpUsage:
    """New connections of one address to one broker."""

    broker: str
    ip: str
    rate: float | None
    """Connections/s; None when the node reports none."""
    limit: float

    @property
    def used(self) -> float | None:
        """Usage divided by limit, as `part_used`."""
        return part_used(self.rate, self.limit)


Hit: TypeAlias = EntityUsage | IpUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUsage:
    """One configured quota, and the entities that it applies to now."""

    entity: Entity
    key: str
    """Such as ``producer_byte_rate``."""
    value: float
    """In Kafka's unit, per broker."""
    hits: Sequence[Hit] | None = ()
    """
    What is measured under it, by broker; the highest utilization first.

    None when that is unknown: no node was read, nothing is known of it while a source cannot be read, a custom quota callback
    decides, or the rule is for the name of a host.
    """
    overruled_by: QuotaEntity | None = None
    """The rule that applies in its place to every client that sends a client-id; None when it applies to some."""

    @property
    def fullest(self) -> float | None:
        """The greatest known utilization of the limit, or of the burst, among the hits; None when there is none, or it is unknown."""
        hits = self.hits or ()
        if isinstance(hits, Usages):
            greatest = float(np.fmax.reduce(hits.columns.used[hits.rows]))
            return None if isnan(greatest) else greatest
        return max((hit.used for hit in hits if hit.used is not None), default=None)

    @property
    def throttled(self) -> int | None:
        """How many of the hits were throttled lately, by it and not by a controller mutation quota; None when that is unknown, as it is for addresses."""
        if isinstance(self.hits, Usages):
            columns, rows = self.hits.columns, self.hits.rows
            throttles = columns.throttle_time[rows]
            known = not np.isnan(throttles).all()
            by_others = columns.causes[rows] == _NOT_ITS_OWN
            return int(((throttles > 0) & ~by_others).sum()) if known else None
        return 0 if self.hits == () else None


def rule_usage(limits: Limits, snapshot: Snapshot | None) -> list[RuleUsage]:
    """Every rule, by quota type; without a snapshot of a node, hits are unknown."""
    nodes = () if snapshot is None else snapshot.nodes
    # while something could not be read, none is no proof
    none = None if snapshot is None or snapshot.incomplete else ()
    hits = None
    if snapshot is not None and nodes and not any(n.quota_callback for n in nodes):
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
                hits=None if hits is None else hits.get((kind, entity), () if entity in overruling else none),
                overruled_by=overruling.get(entity),
            )
            for entity, bound in table.items()
        ]
    return rules + _connection_rules(limits.connection_limits, nodes, none)


def _client_hits(usages: Usages) -> Mapping[tuple[QuotaType, QuotaEntity], Usages]:
    """What is measured under each rule, the highest utilization first."""
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
    rules: Mapping[str, float], nodes: Sequence[NodeUsage], none: tuple[()] | None
) -> list[RuleUsage]:
    """Rules for addresses, with `none` where nothing is measured. A broker looks up a rule for the name of a host itself, so its hits are unknown."""
    owners = {host_address(name): name for name in rules if is_address(name)}
    hits: dict[str, list[IpUsage]] = defaultdict(list)
    for node in nodes:
        for ip, usage in node.connections.ips.items():
            name = owners.get(ip, DEFAULT_IP)
            if name in rules:
                hits[name].append(IpUsage(broker=node.broker, ip=ip, rate=usage.rate, limit=rules[name]))
    return [
        RuleUsage(
            entity=IpEntity(DEFAULT if name == DEFAULT_IP else name),
            key=CONNECTION_KEY,
            value=rate,
            hits=(tuple(sorted(hits[name], key=lambda hit: -(hit.used or 0.0))) or none)
            if name == DEFAULT_IP or is_address(name)
            else None,
        )
        for name, rate in rules.items()
    ]
