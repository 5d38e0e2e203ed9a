"""One entity for each node and quota type in place of all that are folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from typing import Final

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

from ..snapshot import Entity, EntityUsage
from .counters import Totals
from .lasting import Lasting

Key = tuple[str, QuotaType]
"""Node and quota type."""

_NODE_SECONDS: Final = 3600.0


class Overflow:
    """Folds usages; the entities that stand for them stay the same objects."""

    def __init__(self) -> None:
        self._entities: Lasting[Key, Entity] = Lasting(_NODE_SECONDS)

    def forget(self, at: float) -> None:
        """Drop nodes that are gone."""
        self._entities.forget(at)

    def fold(
        self, usages: Iterable[EntityUsage], totals: dict[Key, Totals]
    ) -> Iterator[EntityUsage]:
        """
        What stands for these usages.

        Usage is their sum. The throttle time is the longest of them, for a sum of averages means
        nothing. There is no limit, so no utilisation, rule or tokens, and no cause. Counters
        are the given totals; a node that has some is shown even when it has nothing to fold now.
        """
        groups: dict[Key, list[EntityUsage]] = {key: [] for key in totals}
        for usage in usages:
            entity = usage.entity
            groups.setdefault((entity.broker, entity.quota_type), []).append(usage)
        for key in sorted(groups, key=_order):
            yield self._folded(key, groups[key], totals.get(key, {}))

    def _folded(
        self, key: Key, usages: list[EntityUsage], totals: Totals
    ) -> EntityUsage:
        amounts = [usage.usage for usage in usages if usage.usage is not None]
        throttles = (usage.throttle_time_seconds for usage in usages)
        return EntityUsage(
            entity=self._entity(key),
            usage=fsum(amounts) if amounts else None,
            throttle_time_seconds=max(throttles, default=0.0),
            throttle_known=not usages or any(usage.throttle_known for usage in usages),
            throttled_seconds_total=totals.get("throttled_seconds_total"),
            throttled_requests_total=totals.get("throttled_requests_total"),
            rejected_mutations_total=totals.get("rejected_mutations_total"),
        )

    def _entity(self, key: Key) -> Entity:
        entity = self._entities.get(key)
        if entity is None:
            entity = Entity(
                broker=key[0],
                quota_type=key[1],
                user=OVERFLOW,
                client_id=OVERFLOW,
                stands_in=True,
            )
            self._entities.set(key, entity)
        return entity


def reserved(name: tuple[str, ...]) -> bool:
    """Whether a real entity is called as those that stand for others."""
    return OVERFLOW in name


def _order(key: Key) -> tuple[str, str]:
    return key[0], key[1].value
