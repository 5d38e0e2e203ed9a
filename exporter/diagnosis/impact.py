"""Which entities and addresses are affected when the configured quotas change, as far as they are measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from quotascope.metrics import DEFAULT, NO_RULE, QuotaType, Resolution, RuleTable
from quotascope.quotas import IpEntity, QuotaSet, RuleChange, number_text

from ..join.limiting import IpLimits
from ..limits import CONNECTION_KEY
from ..limits.model import DEFAULT_IP
from ..mapping import in_base_unit
from ..snapshot import EntityUsage, NodeUsage
from ..snapshot.entity import part_used
from .units import measured as measured_text

_FAR_BELOW: Final = 100
_Tags = tuple[str, str]
"""User and client-id as a broker measures them; empty for a dimension that it does not separate."""


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
    before: Resolution | None
    """None when brokers do not measure it separately: it is a part or a sum of entities that rules apply to."""
    after: Resolution | None
    """As ``before``."""
    window_restarts: bool
    """Whether brokers measure it under another name after the change, which begins with an empty window or a full bucket."""

    @property
    def limit_after(self) -> float | None:
        """The new limit in the unit of ``usage``; None where it is unlimited or unknown."""
        bound = None if self.after is None else self.after.bound
        return None if bound is None else in_base_unit(self.quota_type, bound)

    @property
    def utilization_after(self) -> float | None:
        """Today's usage divided by the new limit, as `part_used`."""
        return part_used(self.usage, self.limit_after)


@dataclass(frozen=True, slots=True, kw_only=True)
class IpImpact:
    """A new limit of one address."""

    ip: str
    usage: float | None
    """New connections/s, the greatest of all brokers; None when no broker reports any."""
    before: float | None
    """Connections/s per broker, infinite when unlimited; None when unknown, as a rule for the name of a host makes it."""
    after: float | None
    """As ``before``."""

    @property
    def utilization_after(self) -> float | None:
        """Today's usage divided by the new limit, as `part_used`."""
        return part_used(self.usage, self.after)


def impacts(old: QuotaSet, new: QuotaSet, measured: Sequence[EntityUsage]) -> list[Impact]:
    """
    All entities that get another rule, or another value of the same rule; the highest utilization after the change first.

    Only entities that are measured under some quota are known, and pairs with a changed rule that are measured as a part of one: a
    client that no quota measures is not among them.
    """
    before, after = old.tables(), new.tables()
    known = {(usage.entity.user, usage.entity.client_id) for usage in measured}
    greatest: dict[tuple[QuotaType, _Tags], float] = {}
    for each in measured:
        if each.usage is not None:
            key = each.entity.quota_type, (each.entity.user, each.entity.client_id)
            greatest[key] = max(each.usage, greatest.get(key, each.usage))
    found = []
    for kind in QuotaType:
        if dict(before[kind]) == dict(after[kind]):
            continue
        pairs = {
            (rule.user, rule.client_id)
            for rule in {*before[kind], *after[kind]}
            if isinstance(rule.user, str) and isinstance(rule.client_id, str)
        }
        parts = {pair for pair in pairs if before[kind].enabled and before[kind].metric_tags(*pair) in known}
        decided = {
            tags: (*_decided(before[kind], tags), *_decided(after[kind], tags)) for tags in sorted(known | parts)
        }
        pairs_become = {each[2] for tags, each in decided.items() if all(tags)}
        named = {rule.user for rule in after[kind]}, {rule.client_id for rule in after[kind]}
        for tags, (old_tags, old_rule, new_tags, new_rule) in decided.items():
            if (old_tags, old_rule) == (new_tags, new_rule):
                continue
            if old_rule == NO_RULE and (new_rule == NO_RULE or (new_rule is None and not _reached(tags, named))):
                continue
            if old_tags == new_tags != tags and old_tags in known:
                continue  # a part of another entity, which is listed
            if old_rule is None and (new_rule is None or tags in pairs_become):
                continue  # a sum of pairs, which are listed
            found.append(
                Impact(
                    quota_type=kind,
                    user=tags[0],
                    client_id=tags[1],
                    usage=greatest.get((kind, tags)) if old_tags == tags else None,
                    before=old_rule,
                    after=new_rule,
                    window_restarts=old_tags != new_tags,
                )
            )
    return sorted(found, key=lambda each: (-(each.utilization_after or 0.0), each.after is None))


def ip_impacts(old: QuotaSet, new: QuotaSet, nodes: Sequence[NodeUsage]) -> list[IpImpact]:
    """All measured addresses that get another limit. Brokers measure only addresses that already have a limit."""
    rates: dict[str, list[float]] = defaultdict(list)
    for node in nodes:
        for ip, usage in node.connections.ips.items():
            rates[ip] += [] if usage.rate is None else [usage.rate]
    before, after = IpLimits(connection_rules(old)), IpLimits(connection_rules(new))
    found = [
        IpImpact(ip=ip, usage=max(rates[ip], default=None), before=_ip_limit(before, ip), after=_ip_limit(after, ip))
        for ip in sorted(rates)
        if _ip_limit(before, ip) != _ip_limit(after, ip)
    ]
    return sorted(found, key=lambda impact: -(impact.utilization_after or 0.0))


def reaching(changes: Iterable[RuleChange], measured: Sequence[EntityUsage]) -> list[str]:
    """
    New limits of clients that today's usage is not far below, a sentence for each.

    They are compared with the sum of what one broker measures: a rule may measure together what is measured separately now.
    """
    used: dict[tuple[QuotaType, str], float] = defaultdict(float)
    for usage in measured:
        used[usage.entity.quota_type, usage.entity.broker] += max(0.0, usage.usage or 0)
    return [
        f"{change.key} {number_text(change.new)}: broker {broker} measures {measured_text(kind, amount)} now, more than a hundredth of it"
        for change in changes
        for (kind, broker), amount in used.items()
        if kind.quota_key == change.key
        and change.new is not None
        and amount > in_base_unit(kind, change.new) / _FAR_BELOW
    ]


def connection_rules(quotas: QuotaSet) -> Mapping[str, float]:
    """New connections/s by address; the default reads ``<default>``."""
    return {
        entity.ip if isinstance(entity.ip, str) else DEFAULT_IP: value
        for entity, key, value in quotas.items_by_key()
        if isinstance(entity, IpEntity) and key == CONNECTION_KEY
    }


def _reached(tags: _Tags, named: Sequence[Collection[object]]) -> bool:
    """Whether some rule may be for a part of what is measured under these tags, by the users and the client-ids that rules are for."""
    return all(not tag or not {tag, DEFAULT, None}.isdisjoint(names) for tag, names in zip(tags, named, strict=True))


def _decided(rules: RuleTable, known: _Tags) -> tuple[_Tags | None, Resolution | None]:
    """
    The tags under which a broker measures this, and the rule that applies.

    No tags when it is not measured separately; no rule when that depends on the exact user and client-id.
    """
    if not rules.enabled:
        return None, NO_RULE
    user, client_id = known
    tags = rules.metric_tags(user, client_id) if user and client_id else known
    if not rules.would_record(*tags):
        return None, None
    return tags, rules.limit(*tags) or NO_RULE


def _ip_limit(rules: IpLimits, ip: str) -> float | None:
    limit = rules.limit(ip)
    return inf if limit is None and not rules.may_limit(ip) else limit
