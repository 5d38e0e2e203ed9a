"""The configured rules, each with the entities that it applies to now, and how close they are to the limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.host_address import host_address
from quotascope.metrics.kafka.validation import is_address
from quotascope.quotas import Entity, IpEntity, overruling_rules

from ..join.limiting import NO_RULES
from ..limits import CONNECTION_KEY, Limits
from ..limits.model import DEFAULT_IP
from ..snapshot import CAUSES, EntityUsage, Floats, NodeUsage, Snapshot, ThrottleCause, Usages
from ..snapshot.entity import part_used
from ..snapshot.visibility import Visibility
from .misnamed import Misnamed, measured_names, misnamed

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
        """Usage divided by limit, as by `part_used`."""
        return part_used(self.rate, self.limit)


Hit: TypeAlias = EntityUsage | IpUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUsage:
    """One configured quota, and the entities that it applies to now."""

    entity: Entity
    key: str
    """Such as ``producer_byte_rate``."""
    value: float
    """Configured value in Kafka's unit, per broker."""
    hits: Sequence[Hit] | None = ()
    """
    What is measured under it, by broker; the highest utilization first.

    None when that is unknown: no node was read, nothing is known of it while a source cannot be read or an agent may
    not show its clients, a custom quota callback decides, or the rule is for the name of a host.
    """
    hidden_on: tuple[str, ...] = ()
    """
    The nodes on which clients may be measured under it that their agents do not show: ``hits`` are of the other nodes.
    """
    overruled_by: QuotaEntity | None = None
    """The rule that applies in its place to every client that sends a client-id; None when it applies to some."""
    misnamed: Misnamed | None = None
    """
    Why its name may be another than was meant; None for a rule that applies to a client, and for one whose name gives
    no reason to doubt it.
    """

    @property
    def fullest(self) -> float | None:
        """The greatest known utilization of the limit among the hits; None when there is none, or it is unknown."""
        hits = self.hits or ()
        if isinstance(hits, Usages):
            return _greatest(hits.columns.used[hits.rows])
        return max((hit.used for hit in hits if hit.used is not None), default=None)

    @property
    def burst_used(self) -> float | None:
        """The greatest known used part of a burst among the hits; None where they have no bucket."""
        hits = self.hits
        return _greatest(hits.columns.burst_used[hits.rows]) if isinstance(hits, Usages) else None

    @property
    def pressure(self) -> float | None:
        """The greatest used part of a limit as in ``fullest``, or of a burst where that is more."""
        hits = self.hits
        return _greatest(hits.columns.pressure[hits.rows]) if isinstance(hits, Usages) else self.fullest

    @property
    def throttled(self) -> int | None:
        """
        The number of hits that were throttled lately, by it and not by a controller mutation quota.

        None when that is unknown, as it is for addresses.
        """
        if isinstance(self.hits, Usages):
            columns, rows = self.hits.columns, self.hits.rows
            throttles = columns.throttle_time[rows]
            is_known = not np.isnan(throttles).all()
            by_others = columns.causes[rows] == _NOT_ITS_OWN
            return int(((throttles > 0) & ~by_others).sum()) if is_known else None
        return 0 if self.hits == () else None


def _greatest(values: Floats) -> float | None:
    greatest = float(np.fmax.reduce(values))
    return None if isnan(greatest) else greatest


def rule_usage(limits: Limits, snapshot: Snapshot | None) -> list[RuleUsage]:
    """Return every rule, by quota type; without a snapshot of a node, hits are unknown."""
    nodes = () if snapshot is None else snapshot.nodes
    # while a source could not be read, no hits prove nothing
    none = None if snapshot is None or snapshot.incomplete else ()
    hits = None
    visibility = None if snapshot is None else Visibility.of(snapshot)
    if snapshot is not None and nodes and not all(node.overruled for node in nodes):
        hits = _client_hits(snapshot.measured)
    rules = []
    for kind in QuotaType:
        table = limits.rules.get(kind, NO_RULES)
        overruling = overruling_rules(table)
        for entity, bound in table.items():
            hidden = () if visibility is None else visibility.hidden_under(kind, entity)
            absent = () if entity in overruling else None if hidden else none
            rules.append(
                RuleUsage(
                    entity=entity,
                    key=kind.quota_key,
                    value=bound,
                    hits=None if hits is None else hits.get((kind, entity), absent),
                    hidden_on=hidden,
                    overruled_by=overruling.get(entity),
                )
            )
    hidden = () if visibility is None else visibility.connections_hidden_on
    connections = _connection_rules(limits.connection_limits, nodes, None if hidden else none, hidden)
    return [*_with_misnamed(rules, limits, snapshot), *connections]


def _with_misnamed(rules: Sequence[RuleUsage], limits: Limits, snapshot: Snapshot | None) -> Sequence[RuleUsage]:
    idle: dict[Entity, dict[str, float]] = defaultdict(dict)
    for rule in rules:
        if rule.hits == () and rule.overruled_by is None:
            idle[rule.entity][rule.key] = rule.value
    misnamed_rules = misnamed(idle, measured_names(snapshot), limits.quotas()) if idle else {}
    if not misnamed_rules:
        return rules
    return [
        replace(rule, misnamed=misnamed_rules.get(rule.entity)) if rule.key in idle.get(rule.entity, ()) else rule
        for rule in rules
    ]


def _client_hits(usages: Usages) -> Mapping[tuple[QuotaType, QuotaEntity], Usages]:
    """Return the entities that are measured under each rule, the highest utilization first."""
    columns, entities = usages.columns, usages.columns.layout.entities
    rows_of: dict[tuple[QuotaType, QuotaEntity], list[int]] = defaultdict(list)
    for row in usages.rows:
        rule = entities[row].resolution
        if rule is not None and rule.entity is not None:
            rows_of[entities[row].quota_type, rule.entity].append(row)
    used = np.nan_to_num(columns.pressure, nan=0.0)
    hits: dict[tuple[QuotaType, QuotaEntity], Usages] = {}
    for key, rows in rows_of.items():
        fullest_first = np.argsort(-used[rows], kind="stable")
        hits[key] = Usages(columns, np.array(rows)[fullest_first])
    return hits


def _connection_rules(
    rules: Mapping[str, float], nodes: Sequence[NodeUsage], none: tuple[()] | None, hidden_on: tuple[str, ...]
) -> list[RuleUsage]:
    """
    Return the rules for addresses, with `none` where nothing is measured.

    A broker looks up a rule for the name of a host itself, so its hits are unknown.
    """
    owners = {host_address(name): name for name in rules if is_address(name)}
    hits: dict[str, list[IpUsage]] = defaultdict(list)
    for node in nodes:
        for ip, rate in node.connections_by_ip.items():
            name = owners.get(ip, DEFAULT_IP)
            if name in rules:
                hits[name].append(IpUsage(broker=node.broker, ip=ip, rate=rate, limit=rules[name]))
    return [
        RuleUsage(
            entity=IpEntity(DEFAULT if name == DEFAULT_IP else name),
            key=CONNECTION_KEY,
            value=rate,
            hits=(tuple(sorted(hits[name], key=lambda hit: -(hit.used or 0.0))) or none)
            if name == DEFAULT_IP or is_address(name)
            else None,
            hidden_on=hidden_on,
        )
        for name, rate in rules.items()
    ]
