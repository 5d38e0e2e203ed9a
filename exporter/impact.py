"""Who is affected when the configured quotas change, as far as their traffic is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quotascope.metrics import NO_RULE, QuotaType, Resolution, RuleTable
from quotascope.quotas import QuotaSet, RuleChange, number_text

from .exposition.rows import in_base_unit
from .snapshot import EntityUsage
from .units import measured as measured_text

_FAR_BELOW: Final = 100
_Tags = tuple[str, str]
"""User and client id as a broker counts them; empty where it does not tell them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """One user, client or pair for whom something changes."""

    quota_type: QuotaType
    user: str
    """Empty when not told apart."""
    client_id: str
    """Empty when not told apart."""
    usage: float | None
    """The greatest of all brokers, in bytes/s, threads or mutations/s; None when this is not measured by itself."""
    before: Resolution | None
    """None when it is decided for others, of whom this is a part or a sum: brokers do not count it by itself."""
    after: Resolution | None
    """As ``before``."""
    counted_anew: bool
    """Whether brokers count it under another name from then on, beginning with an empty window or a full bucket."""

    @property
    def utilization_after(self) -> float | None:
        """Today's usage divided by the limit to come; None without either."""
        if self.usage is None or self.after is None or self.after.bound is None:
            return None
        return self.usage / in_base_unit(self.quota_type, self.after.bound)


def impacts(
    old: QuotaSet, new: QuotaSet, measured: Sequence[EntityUsage]
) -> list[Impact]:
    """
    All whose deciding rule, or its value, changes; those that will be fullest first.

    Only those are known that are measured under some quota; a client whose traffic nobody measures is not in it.
    """
    before, after = old.tables(), new.tables()
    known = {(usage.entity.user, usage.entity.client_id) for usage in measured}
    found = [
        impact
        for kind in QuotaType
        if dict(before[kind]) != dict(after[kind])
        for impact in _of_type(
            kind, before[kind], after[kind], known, _greatest(kind, measured)
        )
    ]
    return sorted(found, key=_rank)


def reaching(
    changes: Iterable[RuleChange], measured: Sequence[EntityUsage]
) -> list[str]:
    """
    Limits of clients to come that what is used now is not far below, a sentence for each.

    Compared with all that one broker measures, added up: a rule may count many together that are counted one by one now.
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


def _rank(impact: Impact) -> tuple[float, bool]:
    return -(impact.utilization_after or 0.0), impact.after is None


def _greatest(
    kind: QuotaType, measured: Sequence[EntityUsage]
) -> Mapping[_Tags, float]:
    """The greatest usage of each that is measured under a type of quota, over all brokers."""
    usages: dict[_Tags, list[float]] = defaultdict(list)
    for usage in measured:
        entity = usage.entity
        if entity.quota_type is kind and usage.usage is not None:
            usages[entity.user, entity.client_id].append(usage.usage)
    return {tags: max(values) for tags, values in usages.items()}


def _of_type(
    kind: QuotaType,
    before: RuleTable,
    after: RuleTable,
    known: set[_Tags],
    usages: Mapping[_Tags, float],
) -> Iterator[Impact]:
    decisions = {
        tags: (_decided(before, tags), _decided(after, tags)) for tags in sorted(known)
    }
    pairs_come_as = {new.tags for tags, (_, new) in decisions.items() if all(tags)}
    for tags, (old, new) in decisions.items():
        if old == new or old.rule == new.rule == NO_RULE:
            continue
        if old.tags == new.tags != tags and old.tags in known:
            continue  # counted together with others, and told there
        if old.rule is None and (new.rule is None or tags in pairs_come_as):
            continue  # told for those whom it is made of
        yield Impact(
            quota_type=kind,
            user=tags[0],
            client_id=tags[1],
            usage=usages.get(tags) if old.tags == tags else None,
            before=old.rule,
            after=new.rule,
            counted_anew=old.tags != new.tags,
        )


@dataclass(frozen=True, slots=True)
class _Decision:
    """How a broker counts something, and what decides."""

    tags: _Tags | None
    """None when it is not counted, or not by itself."""
    rule: Resolution | None
    """None when it depends on who exactly it is."""


def _decided(rules: RuleTable, known: _Tags) -> _Decision:
    if not rules.enabled:
        return _Decision(None, NO_RULE)
    user, client_id = known
    tags = rules.metric_tags(user, client_id) if user and client_id else known
    if not rules.would_record(*tags):
        return _Decision(None, None)
    return _Decision(tags, rules.limit(*tags) or NO_RULE)
