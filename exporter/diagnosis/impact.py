"""The entities and addresses that a change of the configured quotas affects, as far as they are measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from quotascope.metrics.kafka.entities import DEFAULT, NO_RULE, QuotaType, Resolution
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.quotas import IpEntity, QuotaSet, RuleChange, number_text

from ..join.limiting import IpLimits
from ..limits import CONNECTION_KEY
from ..limits.model import DEFAULT_IP
from ..snapshot import EntityUsage, NodeUsage
from ..snapshot.entity import part_used
from .units import measured as measured_text

_FAR_BELOW: Final = 100
_Tags = tuple[str, str]
"""User and client-id as a broker measures them; empty for a dimension that it does not separate."""
_Seen = tuple[QuotaType, _Tags]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """A new limit of one entity."""

    quota_type: QuotaType
    user: str
    """Empty for a sum over users."""
    client_id: str
    """Empty for a sum over client-ids."""
    usage: float | None
    """The greatest of all brokers, in bytes/s, threads or mutations/s; None when it is not measured separately."""
    old_rule: Resolution | None
    """None when brokers do not measure it separately: it is a part or a sum of entities that rules apply to."""
    new_rule: Resolution | None
    """The rule after the change, as ``old_rule``."""
    window_restarts: bool
    """
    True if brokers measure it under another name after the change, which begins with an empty window or a full bucket.
    """
    held_back: bool = False
    """
    True if the limit in force throttles it on any broker: ``usage`` is a lower bound of what it would use under another
    one.
    """

    @property
    def limit_after(self) -> float | None:
        """The new limit in the unit of ``usage``; None where it is unlimited or unknown."""
        bound = None if self.new_rule is None else self.new_rule.bound
        return None if bound is None else self.quota_type.in_base_unit(bound)

    @property
    def utilization_after(self) -> float | None:
        """Today's usage divided by the new limit, as by `part_used`."""
        return part_used(self.usage, self.limit_after)


@dataclass(frozen=True, slots=True, kw_only=True)
class IpImpact:
    """A new limit of one address."""

    ip: str
    usage: float | None
    """New connections/s, the greatest of all brokers; None when no broker reports any."""
    old_limit: float | None
    """
    Connections/s per broker, infinite when unlimited; None when unknown, as a rule for the name of a host makes it.
    """
    new_limit: float | None
    """The limit after the change, as ``old_limit``."""

    @property
    def held_back(self) -> bool:
        """
        Return whether it reaches its limit, beyond which brokers accept connections later.

        ``usage`` is a lower bound of what it would use.
        """
        return self.usage is not None and self.old_limit is not None and self.usage >= self.old_limit

    @property
    def utilization_after(self) -> float | None:
        """Today's usage divided by the new limit, as by `part_used`."""
        return part_used(self.usage, self.new_limit)


def impacts(old: QuotaSet, new: QuotaSet, measured: Sequence[EntityUsage]) -> list[Impact]:
    """
    Return all entities that get another rule, or another value of the same rule.

    The highest utilization after the change first. Only entities that are measured under some quota are known, and
    pairs with a changed rule that are measured as a part of one: a client that no quota measures is not among them.
    """
    old_tables, new_tables = old.tables(), new.tables()
    measured_tags = {(usage.entity.user, usage.entity.client_id) for usage in measured}
    greatest, held_back = _seen(measured)
    impacts_of_entities = []
    for kind in QuotaType:
        if dict(old_tables[kind]) == dict(new_tables[kind]):
            continue
        pairs = {
            (rule.user, rule.client_id)
            for rule in {*old_tables[kind], *new_tables[kind]}
            if isinstance(rule.user, str) and isinstance(rule.client_id, str)
        }
        parts = {
            pair for pair in pairs if old_tables[kind].enabled and old_tables[kind].metric_tags(*pair) in measured_tags
        }
        decided = {
            tags: (*_decided(old_tables[kind], tags), *_decided(new_tables[kind], tags))
            for tags in sorted(measured_tags | parts)
        }
        pairs_become = {decision[2] for tags, decision in decided.items() if all(tags)}
        named = {rule.user for rule in new_tables[kind]}, {rule.client_id for rule in new_tables[kind]}
        for tags, (old_tags, old_rule, new_tags, new_rule) in decided.items():
            if (old_tags, old_rule) == (new_tags, new_rule):
                continue
            if old_rule == NO_RULE and (new_rule == NO_RULE or (new_rule is None and not _reached(tags, named))):
                continue
            if old_tags == new_tags != tags and old_tags in measured_tags:
                continue  # a part of another entity, which is listed
            if old_rule is None and (new_rule is None or tags in pairs_become):
                continue  # a sum of pairs, which are listed
            impacts_of_entities.append(
                Impact(
                    quota_type=kind,
                    user=tags[0],
                    client_id=tags[1],
                    usage=greatest.get((kind, tags)) if old_tags == tags else None,
                    old_rule=old_rule,
                    new_rule=new_rule,
                    window_restarts=old_tags != new_tags,
                    held_back=old_tags == tags and (kind, tags) in held_back,
                )
            )
    return sorted(impacts_of_entities, key=lambda impact: (-(impact.utilization_after or 0.0), impact.new_rule is None))


def _seen(measured: Iterable[EntityUsage]) -> tuple[dict[_Seen, float], set[_Seen]]:
    """Return the greatest usage of each entity on any broker, and the entities throttled by their limit on any."""
    greatest: dict[_Seen, float] = {}
    held_back: set[_Seen] = set()
    for usage in measured:
        key = usage.entity.quota_type, (usage.entity.user, usage.entity.client_id)
        if usage.usage is not None:
            greatest[key] = max(usage.usage, greatest.get(key, usage.usage))
        if usage.held_back:
            held_back.add(key)
    return greatest, held_back


def ip_impacts(old: QuotaSet, new: QuotaSet, nodes: Sequence[NodeUsage]) -> list[IpImpact]:
    """
    Return all measured addresses that get another limit.

    Brokers measure only addresses that already have a limit.
    """
    rates: dict[str, list[float]] = defaultdict(list)
    for node in nodes:
        for ip, rate in node.connections_by_ip.items():
            rates[ip] += [] if rate is None else [rate]
    old_limits, new_limits = IpLimits(connection_rules(old)), IpLimits(connection_rules(new))
    impacts_of_addresses = [
        IpImpact(
            ip=ip,
            usage=max(rates[ip], default=None),
            old_limit=_ip_limit(old_limits, ip),
            new_limit=_ip_limit(new_limits, ip),
        )
        for ip in sorted(rates)
        if _ip_limit(old_limits, ip) != _ip_limit(new_limits, ip)
    ]
    return sorted(impacts_of_addresses, key=lambda impact: -(impact.utilization_after or 0.0))


def reaching(changes: Iterable[RuleChange], measured: Sequence[EntityUsage]) -> list[str]:
    """
    Return a sentence for each new limit that today's usage of clients comes near or exceeds.

    They are compared with the sum of what one broker measures: a rule may measure together what is measured separately
    now.
    """
    used: dict[tuple[QuotaType, str], float] = defaultdict(float)
    for usage in measured:
        used[usage.entity.quota_type, usage.entity.broker] += max(0.0, usage.usage or 0)
    return [
        f"{change.key} {number_text(change.new)}: broker {broker} measures {measured_text(kind, amount)} now, more "
        "than a hundredth of it"
        for change in changes
        for (kind, broker), amount in used.items()
        if kind.quota_key == change.key
        and change.new is not None
        and amount > kind.in_base_unit(change.new) / _FAR_BELOW
    ]


def connection_rules(quotas: QuotaSet) -> Mapping[str, float]:
    """Return new connections/s by address; the default reads ``<default>``."""
    return {
        entity.ip if isinstance(entity.ip, str) else DEFAULT_IP: value
        for entity, key, value in quotas.items_by_key()
        if isinstance(entity, IpEntity) and key == CONNECTION_KEY
    }


def _reached(tags: _Tags, named: Sequence[Collection[object]]) -> bool:
    """
    Return whether some rule may be for a part of the entity with these tags.

    The rules are ``named`` by the users and by the client-ids that they are for.
    """
    return all(not tag or not {tag, DEFAULT, None}.isdisjoint(names) for tag, names in zip(tags, named, strict=True))


def _decided(rules: RuleTable, measured_tags: _Tags) -> tuple[_Tags | None, Resolution | None]:
    """
    Return the tags under which a broker measures a client, and the rule that applies.

    No tags when it is not measured separately; no rule when that depends on the exact user and client-id.
    """
    if not rules.enabled:
        return None, NO_RULE
    user, client_id = measured_tags
    tags = rules.metric_tags(user, client_id) if user and client_id else measured_tags
    if not rules.would_record(*tags):
        return None, None
    return tags, rules.limit(*tags) or NO_RULE


def _ip_limit(rules: IpLimits, ip: str) -> float | None:
    limit = rules.limit(ip)
    return inf if limit is None and not rules.may_limit(ip) else limit
