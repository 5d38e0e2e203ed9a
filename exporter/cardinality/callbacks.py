"""The same bounds for what a custom quota callback tells apart by tags of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import fsum

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

from ..snapshot import Callbacks, CallbackUsage
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
        self._slots: dict[QuotaType, Slots[Tags, CallbackUsage]] = {
            kind: Slots(most, callback_pressure, _node) for kind in QuotaType
        }

    def apply(self, measured: Callbacks, nodes: frozenset[str], at: float) -> Callbacks:
        """What is shown at ``at`` (Unix time in seconds), when these nodes have answered."""
        shown: list[CallbackUsage] = []
        folded: list[CallbackUsage] = []
        crowded: dict[QuotaType, int] = {}
        for kind, names in _identities(measured.usages).items():
            candidates = {tags: names[tags] for tags in names if not reserved(tags)}
            chosen = self._slots[kind].shown(candidates, nodes, at)
            if len(chosen) < len(candidates):
                crowded[kind] = len(candidates)
            for tags, usages in names.items():
                (shown if tags in chosen else folded).extend(usages)
        stand_ins = tuple(_fold(folded))
        return replace(
            measured,
            usages=(*shown, *stand_ins),
            stand_ins=len(stand_ins),
            folded=len(folded),
            series_dropped=sum(map(_series, folded)),
            crowded=crowded,
        )


def _identities(
    usages: Iterable[CallbackUsage],
) -> dict[QuotaType, dict[Tags, list[CallbackUsage]]]:
    found: dict[QuotaType, dict[Tags, list[CallbackUsage]]] = {
        kind: {} for kind in QuotaType
    }
    for usage in usages:
        found[usage.quota_type].setdefault(usage.tags, []).append(usage)
    return found


def _fold(usages: Iterable[CallbackUsage]) -> Iterator[CallbackUsage]:
    groups: dict[Key, list[CallbackUsage]] = {}
    for usage in usages:
        groups.setdefault((usage.broker, usage.quota_type), []).append(usage)
    for (broker, kind), members in groups.items():
        amounts = [usage.usage for usage in members if usage.usage is not None]
        yield CallbackUsage(
            broker=broker,
            quota_type=kind,
            tags=(OVERFLOW,) * len(members[0].tags),
            usage=fsum(amounts) if amounts else None,
            throttle_time_seconds=max(
                (
                    seconds
                    for each in members
                    if (seconds := each.throttle_time_seconds) is not None
                ),
                default=None,
            ),
        )


def _series(usage: CallbackUsage) -> int:
    return (usage.throttle_time_seconds is not None) + (usage.usage is not None)


def _node(usage: CallbackUsage) -> str:
    return usage.broker
