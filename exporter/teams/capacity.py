"""How much of a broker is promised: the limits of the entities that are on it, against what it can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Snapshot
from ..snapshot.layout import node_order
from ..snapshot.teams import CapacityOrigin, Sold, SoldBy

_TYPES: Final = (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST)
"""Quotas of which each broker has a capacity of its own."""


class SoldKeeper:
    """
    Compares limits with capacities, and remembers the highest usage of each broker while it had reserves.

    Args:
        configured: The capacity of each broker by quota type, as far as it is configured, in the units of limits.

    """

    def __init__(self, configured: Mapping[QuotaType, float] | None = None) -> None:
        self.configured = dict(configured or {})
        """May be replaced."""
        self._highest: dict[tuple[QuotaType, str], float] = {}

    def of(self, joined: Snapshot) -> SoldBy:
        """Return what is sold on each broker of a snapshot with all entities; to be called for each, in their order."""
        columns, layout = joined.columns, joined.columns.layout
        nodes = {node.broker: node for node in joined.nodes}
        sold: dict[tuple[QuotaType, str], Sold] = {}
        for kind in _TYPES:
            rows = layout.of_type(kind)
            places, limits, usage = layout.node_numbers[rows], layout.limits[rows], columns.usage[rows]
            count = len(layout.nodes)
            used = np.bincount(places, np.nan_to_num(usage, posinf=0.0, neginf=0.0), count)
            limited = np.bincount(places, np.nan_to_num(limits, posinf=0.0), count)
            has_limit = np.bincount(places[~np.isnan(limits)], minlength=count) > 0
            is_unknown = np.bincount(places[layout.limits_unknown[rows]], minlength=count) > 0
            for broker, place in sorted(
                zip(layout.nodes, range(count), strict=True), key=lambda pair: node_order(pair[0])
            ):
                node = nodes.get(broker)
                if node is None or node.overruled:
                    continue
                idle = node.handlers_idle
                if idle is not None and idle > joined.thresholds.handlers_idle and used[place] > 0:
                    self._highest[kind, broker] = max(float(used[place]), self._highest.get((kind, broker), 0.0))
                capacity = self._capacity(joined, kind, broker)
                if capacity is not None and has_limit[place] and not is_unknown[place]:
                    sold[kind, broker] = Sold(limits=float(limited[place]), capacity=capacity[0], origin=capacity[1])
        for key in self._highest.keys() - {(kind, broker) for kind in _TYPES for broker in nodes}:
            del self._highest[key]  # nodes come and go
        return sold

    def _capacity(self, joined: Snapshot, kind: QuotaType, broker: str) -> tuple[float, CapacityOrigin] | None:
        """Return the capacity of a broker, for request time as Kafka's settings have it; None while it is unknown."""
        configured = self.configured.get(kind)
        settings = joined.limits.nodes.get(broker) if joined.limits is not None else None
        if configured is None and kind is QuotaType.REQUEST and settings is not None:
            configured = settings.request_capacity_threads
        if configured:
            return configured, CapacityOrigin.CONFIGURED
        observed = self._highest.get((kind, broker))
        return None if observed is None else (observed, CapacityOrigin.OBSERVED)
