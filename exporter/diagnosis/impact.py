"""Finds the measured entities and addresses that a change of the configured quotas affects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

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
"""Divisor of a limit: usage up to the quotient is far below the limit."""
_Tags = tuple[str, str]
"""User and client-id as a broker measures them; empty for a dimension that it does not separate."""
_EntityKey = tuple[QuotaType, _Tags]


class _Measurement(NamedTuple):
    """The way in which brokers with a table of rules measure a client."""

    tags: _Tags | None
    """The entity that its requests are counted under; None if the client is not measured separately."""
    rule: Resolution | None
    """The rule that applies; None if it depends on the exact user and client-id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """A new limit of one entity."""

    quota_type: QuotaType
    user: str
    """Empty for a sum over users."""
    client_id: str
    """Empty for a sum over client-ids."""
    usage: float | None
    """The greatest usage on a broker, in bytes/s, threads or mutations/s; None if it is not measured separately."""
    old_rule: Resolution | None
    """The rule before the change; None if brokers do not measure the entity separately."""
    new_rule: Resolution | None
    """The rule after the change; None as for ``old_rule``."""
    window_restarts: bool
    """
    True if brokers measure it under another name after the change, which begins with an empty window or a full bucket.
    """
    held_back: bool = False
    """True if the limit in force throttles it on a broker, so that ``usage`` is a lower bound of its demand."""

    @property
    def limit_after(self) -> float | None:
        """The new limit in the unit of ``usage``; None if it is unlimited or unknown."""
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
    """New connections/s, the greatest of all brokers; None if no broker reports any."""
    old_limit: float | None
    """
    Connections/s per broker, infinite if unlimited; None if unknown, as with a rule for the name of a host.
    """
    new_limit: float | None
    """The limit after the change, in the form of ``old_limit``."""

    @property
    def held_back(self) -> bool:
        """
        Return whether the address is at its limit, so that ``usage`` is a lower bound of its demand.

        Beyond the limit, brokers delay new connections.
        """
        return self.usage is not None and self.old_limit is not None and self.usage >= self.old_limit

    @property
    def utilization_after(self) -> float | None:
        """Today's usage divided by the new limit, as by `part_used`."""
        return part_used(self.usage, self.new_limit)


def impacts(old: QuotaSet, new: QuotaSet, measured: Sequence[EntityUsage]) -> list[Impact]:
    """
    Return the entities that get another rule or another value, with the highest utilization after the change first.

    Args:
        old: The quotas before the change.
        new: The quotas after the change.
        measured: The measured entities. A client that no quota measures is unknown, so it is not in the result. A pair
            with a changed rule is in the result also if it is measured as a part of an entity.

    """
    old_tables, new_tables = old.tables(), new.tables()
    measured_tags = {(usage.entity.user, usage.entity.client_id) for usage in measured}
    greatest, held_back = _usage_and_held_back(measured)
    impacts_of_entities = []
    for kind in QuotaType:
        old_table, new_table = old_tables[kind], new_tables[kind]
        if dict(old_table) == dict(new_table):
            continue
        for tags, before, after in _affected(old_table, new_table, measured_tags):
            user, client_id = tags
            is_measured = before.tags == tags  # a part of an entity has no usage of its own
            impacts_of_entities.append(
                Impact(
                    quota_type=kind,
                    user=user,
                    client_id=client_id,
                    usage=greatest.get((kind, tags)) if is_measured else None,
                    old_rule=before.rule,
                    new_rule=after.rule,
                    window_restarts=before.tags != after.tags,
                    held_back=is_measured and (kind, tags) in held_back,
                )
            )
    return sorted(impacts_of_entities, key=lambda impact: (-(impact.utilization_after or 0.0), impact.new_rule is None))


def _affected(
    old_table: RuleTable, new_table: RuleTable, measured_tags: set[_Tags]
) -> Iterator[tuple[_Tags, _Measurement, _Measurement]]:
    """
    Yield the tags of each entity that a change of rules affects, and how brokers measure it before and after.

    Args:
        old_table: The rules of one quota type before the change.
        new_table: The rules after it.
        measured_tags: The tags of the entities that brokers measure now.

    """
    all_tags = measured_tags | _pairs_in_measured(old_table, new_table, measured_tags)
    measured_before = {tags: _measured_as(old_table, tags) for tags in sorted(all_tags)}
    measured_after = {tags: _measured_as(new_table, tags) for tags in measured_before}
    # the entities that the requests of pairs (of a user and a client-id) are counted under after the change
    entities_of_pairs = {after.tags for tags, after in measured_after.items() if all(tags)}
    names_with_rules = {rule.user for rule in new_table}, {rule.client_id for rule in new_table}
    for tags, before in measured_before.items():
        after = measured_after[tags]
        if before == after:
            continue
        if after.rule is None:
            may_have_rule = _may_have_rule(tags, names_with_rules)
        else:
            may_have_rule = after.rule != NO_RULE
        if before.rule == NO_RULE and not may_have_rule:
            continue  # no rule applies, before and after
        is_part = before.tags != tags and before.tags in measured_tags
        if is_part and after.tags == before.tags:
            continue  # a part of another entity, which is listed
        if before.rule is None and (after.rule is None or tags in entities_of_pairs):
            continue  # a sum of pairs, which are listed
        yield tags, before, after


def _pairs_in_measured(old_table: RuleTable, new_table: RuleTable, measured_tags: Collection[_Tags]) -> set[_Tags]:
    """Return the pairs with a rule in one of the tables that are measured now, as a part of an entity or as such."""
    if not old_table.enabled:
        return set()
    pairs = {
        (rule.user, rule.client_id)
        for rule in {*old_table, *new_table}
        if isinstance(rule.user, str) and isinstance(rule.client_id, str)
    }
    return {pair for pair in pairs if old_table.metric_tags(*pair) in measured_tags}


def _usage_and_held_back(measured: Iterable[EntityUsage]) -> tuple[dict[_EntityKey, float], set[_EntityKey]]:
    """Return the greatest usage of each entity on a broker, and the entities that their limit throttles on a broker."""
    greatest: dict[_EntityKey, float] = {}
    held_back: set[_EntityKey] = set()
    for usage in measured:
        key = usage.entity.quota_type, (usage.entity.user, usage.entity.client_id)
        if usage.usage is not None:
            greatest[key] = max(usage.usage, greatest.get(key, usage.usage))
        if usage.held_back:
            held_back.add(key)
    return greatest, held_back


def ip_impacts(old: QuotaSet, new: QuotaSet, nodes: Sequence[NodeUsage]) -> list[IpImpact]:
    """
    Return the measured addresses that get another limit, with the highest utilization after the change first.

    Brokers measure only addresses that already have a limit.
    """
    rates: dict[str, list[float]] = defaultdict(list)
    for node in nodes:
        for ip, rate in node.connections_by_ip.items():
            rates_of_ip = rates[ip]  # empty, but present, for an address whose rate no broker reports
            if rate is not None:
                rates_of_ip.append(rate)
    old_limits, new_limits = IpLimits(connection_rules(old)), IpLimits(connection_rules(new))
    impacts_of_addresses = []
    for ip in sorted(rates):
        old_limit, new_limit = _ip_limit(old_limits, ip), _ip_limit(new_limits, ip)
        if old_limit != new_limit:
            usage = max(rates[ip], default=None)
            impacts_of_addresses.append(IpImpact(ip=ip, usage=usage, old_limit=old_limit, new_limit=new_limit))
    return sorted(impacts_of_addresses, key=lambda impact: -(impact.utilization_after or 0.0))


def reaching(changes: Iterable[RuleChange], measured: Sequence[EntityUsage]) -> list[str]:
    """
    Return a sentence for each new limit and broker whose clients use more than a hundredth of the limit now.

    A limit is compared with the sum of all usage on a broker, since a rule may measure clients together that are
    measured separately now.
    """
    used: dict[tuple[QuotaType, str], float] = defaultdict(float)
    for usage in measured:
        used[usage.entity.quota_type, usage.entity.broker] += max(0.0, usage.usage or 0)
    sentences = []
    for change in changes:
        if change.new is None:
            continue
        for (kind, broker), amount in used.items():
            if kind.quota_key == change.key and amount > kind.in_base_unit(change.new) / _FAR_BELOW:
                sentences.append(
                    f"{change.key} {number_text(change.new)}: broker {broker} measures {measured_text(kind, amount)} "
                    "now, more than a hundredth of it"
                )
    return sentences


def connection_rules(quotas: QuotaSet) -> Mapping[str, float]:
    """Return the limits of new connections/s by address; the address of the default is `DEFAULT_IP`."""
    return {
        entity.ip if isinstance(entity.ip, str) else DEFAULT_IP: value
        for entity, key, value in quotas.items_by_key()
        if isinstance(entity, IpEntity) and key == CONNECTION_KEY
    }


def _may_have_rule(tags: _Tags, names_with_rules: Sequence[Collection[object]]) -> bool:
    """
    Return whether a rule may apply to a part of the entity with these tags.

    Each name of the entity must then be in a rule, fall under a default, or be of a dimension that a rule leaves out.

    Args:
        tags: User and client-id of the entity.
        names_with_rules: The users in rules, and the client-ids in rules.

    """
    for tag, names in zip(tags, names_with_rules, strict=True):
        if tag and {tag, DEFAULT, None}.isdisjoint(names):
            return False
    return True


def _measured_as(rules: RuleTable, measured_tags: _Tags) -> _Measurement:
    """Return the way in which a broker with these rules measures an entity that is measured now."""
    if not rules.enabled:
        return _Measurement(tags=None, rule=NO_RULE)
    user, client_id = measured_tags
    # of a pair, the rules decide which of the two names brokers tell apart; any other entity is a sum already
    tags = rules.metric_tags(user, client_id) if user and client_id else measured_tags
    if not rules.would_record(*tags):
        return _Measurement(tags=None, rule=None)
    return _Measurement(tags=tags, rule=rules.limit(*tags) or NO_RULE)


def _ip_limit(rules: IpLimits, ip: str) -> float | None:
    """Return the limit of an address; infinity if it is unlimited, None if it is unknown."""
    limit = rules.limit(ip)
    return inf if limit is None and not rules.may_limit(ip) else limit
