"""Finds the entities that each configured rule applies to now, and their utilization."""

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

_MUTATION_CAUSE: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)


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
    Entities and addresses that are measured under it, by broker; the highest utilization first.

    None if they are unknown: no node was read, a custom quota callback decides, or the rule is for the name of a host.
    They are also unknown if there are none while a source cannot be read or an agent may not show its clients.
    """
    hidden_on: tuple[str, ...] = ()
    """The nodes whose agents may not show clients that are measured under it. The hits are of the other nodes."""
    overruled_by: QuotaEntity | None = None
    """The rule that applies instead to every client that sends a client-id; None if it applies to some of them."""
    misnamed: Misnamed | None = None
    """Doubts about its name; None without doubts, and for a rule that applies to a client."""

    @property
    def fullest(self) -> float | None:
        """The greatest known utilization of the limit among the hits; None without a known one."""
        hits = self.hits or ()
        if isinstance(hits, Usages):
            return _greatest(hits.columns.used[hits.rows])
        return max((hit.used for hit in hits if hit.used is not None), default=None)

    @property
    def burst_used(self) -> float | None:
        """The greatest known used part of a burst among the hits; None if they have no token bucket."""
        hits = self.hits
        return _greatest(hits.columns.burst_used[hits.rows]) if isinstance(hits, Usages) else None

    @property
    def pressure(self) -> float | None:
        """The larger of ``fullest`` and ``burst_used``; None without either."""
        hits = self.hits
        return _greatest(hits.columns.pressure[hits.rows]) if isinstance(hits, Usages) else self.fullest

    @property
    def throttled(self) -> int | None:
        """
        The number of hits that were throttled lately by this rule, and not by a controller mutation quota.

        None if it is unknown, as it is for addresses.
        """
        if isinstance(self.hits, Usages):
            columns, rows = self.hits.columns, self.hits.rows
            throttle_times = columns.throttle_time[rows]
            if np.isnan(throttle_times).all():
                return None
            by_others = columns.causes[rows] == _MUTATION_CAUSE
            return int(((throttle_times > 0) & ~by_others).sum())
        return 0 if self.hits == () else None  # hits that are addresses have no throttle times


def _greatest(values: Floats) -> float | None:
    """Return the greatest known value; None without one."""
    greatest = float(np.fmax.reduce(values))
    return None if isnan(greatest) else greatest


def rule_usage(limits: Limits, snapshot: Snapshot | None) -> list[RuleUsage]:
    """
    Return the usage of every rule, by quota type, and then of the rules for addresses.

    Args:
        limits: The configured rules.
        snapshot: The measured entities. Without it, or without a node in it, the hits are unknown.

    """
    nodes = () if snapshot is None else snapshot.nodes
    # while a source cannot be read, it is unknown whether there are hits
    no_hits = None if snapshot is None or snapshot.incomplete else ()
    visibility = None if snapshot is None else Visibility.of(snapshot)
    hits = None  # unknown, without a node or where custom quota callbacks decide on all nodes
    if snapshot is not None and nodes and not all(node.overruled for node in nodes):
        hits = _client_hits(snapshot.measured)
    rules = []
    for kind in QuotaType:
        table = limits.rules.get(kind, NO_RULES)
        overruling = overruling_rules(table)
        for entity, bound in table.items():
            hidden = () if visibility is None else visibility.hidden_under(kind, entity)
            hits_of_rule: Sequence[Hit] | None
            if hits is None:
                hits_of_rule = None
            elif (kind, entity) in hits:
                hits_of_rule = hits[kind, entity]
            elif entity in overruling:
                hits_of_rule = ()  # another rule applies instead, also on nodes that are not read
            else:
                hits_of_rule = None if hidden else no_hits
            rules.append(
                RuleUsage(
                    entity=entity,
                    key=kind.quota_key,
                    value=bound,
                    hits=hits_of_rule,
                    hidden_on=hidden,
                    overruled_by=overruling.get(entity),
                )
            )
    hidden = () if visibility is None else visibility.connections_hidden_on
    connections = _connection_rules(limits.connection_limits, nodes, None if hidden else no_hits, hidden)
    return [*_with_misnamed(rules, limits, snapshot), *connections]


def _with_misnamed(rules: Sequence[RuleUsage], limits: Limits, snapshot: Snapshot | None) -> Sequence[RuleUsage]:
    """Return the rules with the doubts about the names of rules that apply to no client."""
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
    rules: Mapping[str, float], nodes: Sequence[NodeUsage], no_hits: tuple[()] | None, hidden_on: tuple[str, ...]
) -> list[RuleUsage]:
    """
    Return the usage of the rules for addresses.

    A broker resolves the name of a host itself, so the hits of a rule for a host are unknown.

    Args:
        rules: Limits by address, host or `DEFAULT_IP`.
        nodes: The nodes, which report new connections by address.
        no_hits: The hits of a rule for an address of which nothing is measured.
        hidden_on: The nodes whose agents may not show new connections.

    """
    # by the one spelling of an address, in which brokers report it
    owners = {host_address(name): name for name in rules if is_address(name)}
    hits: dict[str, list[IpUsage]] = defaultdict(list)
    for node in nodes:
        for ip, rate in node.connections_by_ip.items():
            name = owners.get(ip, DEFAULT_IP)
            if name in rules:
                hits[name].append(IpUsage(broker=node.broker, ip=ip, rate=rate, limit=rules[name]))
    usages = []
    for name, limit in rules.items():
        hits_of_rule = None
        if name == DEFAULT_IP or is_address(name):
            hits_of_rule = tuple(sorted(hits[name], key=lambda hit: -(hit.used or 0.0))) or no_hits
        entity = IpEntity(DEFAULT if name == DEFAULT_IP else name)
        usages.append(RuleUsage(entity=entity, key=CONNECTION_KEY, value=limit, hits=hits_of_rule, hidden_on=hidden_on))
    return usages
