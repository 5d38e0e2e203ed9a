"""How much of a broker is promised: the limits of the entities that are on it, against what it can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Layout, Snapshot
from ..snapshot.layout import node_order
from ..snapshot.teams import CapacityOrigin, Sold, SoldBy

_TYPES: Final = (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST)
"""Quota types for which each broker has a capacity of its own."""


class _Promised:
    """
    The limits of one quota type on each node of a layout.

    Args:
        layout: The layout.
        kind: The quota type.

    """

    def __init__(self, layout: Layout, kind: QuotaType) -> None:
        self.rows = layout.of_type(kind)
        self.places = layout.node_numbers[self.rows]
        """The place of the node of each row."""
        limits, count = layout.limits[self.rows], len(layout.nodes)
        self.limits = np.bincount(self.places, np.nan_to_num(limits, posinf=0.0), count).astype(np.float64)
        """Sum of the limits of each node; NaN without a limit, and where one is unknown."""
        has_limit = np.bincount(self.places[~np.isnan(limits)], minlength=count) > 0
        is_unknown = np.bincount(self.places[layout.limits_unknown[self.rows]], minlength=count) > 0
        self.limits[~has_limit | is_unknown] = np.nan
        self.brokers = sorted(zip(layout.nodes, range(count), strict=True), key=lambda pair: node_order(pair[0]))
        """Nodes by their id, with their places."""


class SoldKeeper:
    """
    Compares limits with capacities, and remembers the highest usage of each broker while it had reserves.

    Args:
        configured: The capacity of each broker by quota type, as far as it is configured, in the units of limits.

    """

    def __init__(self, configured: Mapping[QuotaType, float] | None = None) -> None:
        self.configured = dict(configured or {})
        """Configured capacities, which may be replaced."""
        self._highest: dict[tuple[QuotaType, str], float] = {}
        self._layout: Layout | None = None
        self._promised: dict[QuotaType, _Promised] = {}
        """Limits by quota type, of the last layout."""

    def of(self, joined: Snapshot) -> SoldBy:
        """Return the sold part of each broker in a snapshot with all entities; call it for each snapshot, in order."""
        columns, layout = joined.columns, joined.columns.layout
        nodes = {node.broker: node for node in joined.nodes}
        sold: dict[tuple[QuotaType, str], Sold] = {}
        if layout is not self._layout:
            self._layout, self._promised = layout, {kind: _Promised(layout, kind) for kind in _TYPES}
        for kind, promised in self._promised.items():
            usage = columns.usage[promised.rows]
            used = np.bincount(promised.places, np.nan_to_num(usage, posinf=0.0, neginf=0.0), len(layout.nodes))
            for broker, place in promised.brokers:
                node = nodes.get(broker)
                if node is None or node.overruled:
                    continue
                idle = node.handlers_idle
                if idle is not None and idle > joined.thresholds.handlers_idle and used[place] > 0:
                    self._highest[kind, broker] = max(float(used[place]), self._highest.get((kind, broker), 0.0))
                capacity = self._capacity(joined, kind, broker)
                if capacity is not None and not np.isnan(promised.limits[place]):
                    limits = float(promised.limits[place])
                    sold[kind, broker] = Sold(limits=limits, capacity=capacity[0], origin=capacity[1])
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
