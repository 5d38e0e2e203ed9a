"""
Counters of what is folded, which never go back.

The sum of the members' counters falls whenever a member leaves, which would look like a restart. What is shown
is how much the members' counters grew while they were folded, so that the growth of all series together, folded
or not, is that of all entities. The last step of a member that leaves counts here, too: its own series begins after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from quotascope.metrics import QuotaType

from ..snapshot import EntityUsage
from .lasting import Lasting

Totals = dict[str, float]
"""Counters by the name of the field in ``EntityUsage``."""

_FIELDS: Final = (
    "throttled_seconds_total",
    "throttled_requests_total",
    "rejected_mutations_total",
)
_NODE_SECONDS: Final = 3600.0


@dataclass(slots=True)
class _Member:
    """One entity at the last snapshot."""

    totals: Totals
    folded: bool


_Key = tuple[QuotaType, str, str]


@dataclass(slots=True)
class _Node:
    """One node: its entities at the last snapshot, and what its folds have added up."""

    members: dict[_Key, _Member] = field(default_factory=dict)
    totals: dict[QuotaType, Totals] = field(default_factory=dict)


class Counters:
    """Adds up counters by node; one that is away is remembered for an hour."""

    def __init__(self) -> None:
        self._nodes: Lasting[str, _Node] = Lasting(_NODE_SECONDS)

    def forget(self, at: float) -> None:
        """Drop nodes that are gone."""
        self._nodes.forget(at)

    def update(
        self, others: Iterable[EntityUsage], folded: Iterable[EntityUsage]
    ) -> dict[tuple[str, QuotaType], Totals]:
        """What the folds of each node and quota type have added up, with these usages; ``others`` are not folded."""
        now: dict[str, dict[_Key, _Member]] = {}
        for usages, is_folded in ((others, False), (folded, True)):
            for usage in _counting(usages):
                _note(now, usage, folded=is_folded)
        return {
            (broker, kind): totals
            for broker, members in now.items()
            for kind, totals in self._advanced(broker, members).items()
        }

    def _advanced(
        self, broker: str, members: dict[_Key, _Member]
    ) -> dict[QuotaType, Totals]:
        node = self._nodes.get(broker)
        if node is None:
            node = _Node()
            self._nodes.set(broker, node)
        for key, member in members.items():
            before = node.members.get(key)
            if member.folded or (before is not None and before.folded):
                _add(node.totals.setdefault(key[0], {}), member, before)
        node.members = members
        return node.totals


def _counting(usages: Iterable[EntityUsage]) -> list[EntityUsage]:
    """Those that have counters, which are those of embedded engines only."""
    return [
        usage
        for usage in usages
        if usage.throttled_requests_total is not None
        or usage.throttled_seconds_total is not None
        or usage.rejected_mutations_total is not None
    ]


def _note(
    now: dict[str, dict[_Key, _Member]], usage: EntityUsage, *, folded: bool
) -> None:
    entity = usage.entity
    totals = {
        name: value for name in _FIELDS if (value := getattr(usage, name)) is not None
    }
    key = (entity.quota_type, entity.user, entity.client_id)
    now.setdefault(entity.broker, {})[key] = _Member(totals, folded)


def _add(totals: Totals, member: _Member, before: _Member | None) -> None:
    for name, value in member.totals.items():
        start = before.totals.get(name, 0.0) if before else 0.0
        # less than before: the node was started anew
        growth = value - start if value >= start else value
        totals[name] = totals.get(name, 0.0) + growth
