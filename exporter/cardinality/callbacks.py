"""The same bounds for what a custom quota callback tells apart by tags of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import fsum

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

from ..snapshot import Callbacks, Entity, EntityUsage
from .overflow import Key, reserved
from .pressure import callback_pressure
from .slots import Slots

Tags = tuple[str, ...]


class CallbackCap:
    """
    Keeps the callbacks' series of successive snapshots in bounds.

    Each quota type has its own count of distinct tag values. What is beyond it becomes one entity for each node, whose tags
    are all ``OVERFLOW``: its usage is the sum, its throttle the longest.

    Args:
        most: How many are shown of each quota type.

    """

    def __init__(self, most: int) -> None:
        self._slots: dict[QuotaType, Slots[Tags, EntityUsage]] = {
            kind: Slots(most, callback_pressure, _node) for kind in QuotaType
        }

    def apply(
        self,
        usages: Iterable[EntityUsage],
        measured: Callbacks,
        nodes: frozenset[str],
        at: float,
    ) -> tuple[list[EntityUsage], Callbacks]:
        """What is shown at ``at`` (Unix time in seconds), when these nodes have answered."""
        shown: list[EntityUsage] = []
        folded: list[EntityUsage] = []
        crowded: dict[QuotaType, int] = {}
        for kind, names in _identities(usages).items():
            candidates = {tags: names[tags] for tags in names if not reserved(tags)}
            chosen = self._slots[kind].shown(candidates, nodes, at)
            if len(chosen) < len(candidates):
                crowded[kind] = len(candidates)
            for tags, rows in names.items():
                (shown if tags in chosen else folded).extend(rows)
        whole = replace(
            measured,
            folded=len(folded),
            series_dropped=sum(map(_series, folded)),
            crowded=crowded,
        )
        return [*shown, *_fold(folded)], whole


def _identities(
    usages: Iterable[EntityUsage],
) -> dict[QuotaType, dict[Tags, list[EntityUsage]]]:
    found: dict[QuotaType, dict[Tags, list[EntityUsage]]] = {
        kind: {} for kind in QuotaType
    }
    for usage in usages:
        entity = usage.entity
        found[entity.quota_type].setdefault(entity.tags or (), []).append(usage)
    return found


def _fold(usages: Iterable[EntityUsage]) -> Iterator[EntityUsage]:
    groups: dict[Key, list[EntityUsage]] = {}
    for usage in usages:
        groups.setdefault((usage.entity.broker, usage.entity.quota_type), []).append(
            usage
        )
    for (broker, kind), members in groups.items():
        amounts = [usage.usage for usage in members if usage.usage is not None]
        yield EntityUsage(
            entity=Entity(
                broker=broker,
                quota_type=kind,
                user="",
                client_id="",
                tags=(OVERFLOW,) * len(members[0].entity.tags or ()),
                stands_in=True,
            ),
            usage=fsum(amounts) if amounts else None,
            throttle_time_seconds=max(each.throttle_time_seconds for each in members),
            throttle_known=any(each.throttle_known for each in members),
        )


def _series(usage: EntityUsage) -> int:
    return usage.throttle_known + (usage.usage is not None)


def _node(usage: EntityUsage) -> str:
    return usage.entity.broker
