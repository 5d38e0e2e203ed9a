"""Compares the limits of the entities on a broker with the capacity of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Final

import numpy as np

from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Layout, NodeUsage, Snapshot
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
        self.node_numbers = layout.node_numbers[self.rows]
        """The number of the node of each row, its place in the nodes of the layout."""
        limits, count = layout.limits[self.rows], len(layout.nodes)
        finite_limits = np.nan_to_num(limits, posinf=0.0)  # 0 without a limit
        self.limits = np.bincount(self.node_numbers, finite_limits, count).astype(np.float64)
        """Sum of the limits on each node by its number; NaN without a limit, and where a limit is unknown."""
        has_limit = np.bincount(self.node_numbers[~np.isnan(limits)], minlength=count) > 0
        has_unknown = np.bincount(self.node_numbers[layout.limits_unknown[self.rows]], minlength=count) > 0
        self.limits[~has_limit | has_unknown] = np.nan
        self.brokers = sorted(zip(layout.nodes, range(count), strict=True), key=lambda pair: node_order(pair[0]))
        """Ids and numbers of the nodes, in the order of the ids."""


class SoldKeeper:
    """
    Compares limits with capacities.

    Without a configured capacity, the highest usage of a broker counts, as long as its request handlers had reserves.

    Args:
        configured: The capacity of each broker by quota type, as far as it is configured, in the units of limits.

    """

    def __init__(self, configured: Mapping[QuotaType, float] | None = None) -> None:
        self.configured = dict(configured or {})
        """Configured capacities, which may be replaced."""
        self._highest_usage: dict[tuple[QuotaType, str], float] = {}
        """The highest usage by quota type and broker while the request handlers of the broker were idle enough."""
        self._layout: Layout | None = None
        self._promised: dict[QuotaType, _Promised] = {}
        """Limits by quota type, of the last layout."""

    def update(self, joined: Snapshot) -> SoldBy:
        """
        Return the limits and the capacity of each broker where both are known. Call it for each snapshot, in order.

        Args:
            joined: The snapshot with all measured entities, before any is folded.

        """
        columns, layout = joined.columns, joined.columns.layout
        nodes = {node.broker: node for node in joined.nodes}
        sold: dict[tuple[QuotaType, str], Sold] = {}
        if layout is not self._layout:
            self._layout, self._promised = layout, {kind: _Promised(layout, kind) for kind in _TYPES}
        for kind, promised in self._promised.items():
            usage = np.nan_to_num(columns.usage[promised.rows], posinf=0.0, neginf=0.0)
            usage_of_nodes = np.bincount(promised.node_numbers, usage, len(layout.nodes))
            for broker, node_number in promised.brokers:
                node = nodes.get(broker)
                if node is None or node.overruled:
                    continue
                self._note_usage(joined, kind, node, float(usage_of_nodes[node_number]))
                capacity_and_origin = self._capacity(joined, kind, broker)
                limits = float(promised.limits[node_number])
                if capacity_and_origin is not None and not isnan(limits):
                    capacity, origin = capacity_and_origin
                    sold[kind, broker] = Sold(limits=limits, capacity=capacity, origin=origin)
        for key in self._highest_usage.keys() - {(kind, broker) for kind in _TYPES for broker in nodes}:
            del self._highest_usage[key]  # nodes come and go
        return sold

    def _note_usage(self, joined: Snapshot, kind: QuotaType, node: NodeUsage, usage: float) -> None:
        """Remember the usage of a node if it is the highest so far, and the node has reserves."""
        idle = node.handlers_idle
        if idle is not None and idle > joined.thresholds.handlers_idle and usage > 0:
            key = kind, node.broker
            self._highest_usage[key] = max(usage, self._highest_usage.get(key, 0.0))

    def _capacity(self, joined: Snapshot, kind: QuotaType, broker: str) -> tuple[float, CapacityOrigin] | None:
        """
        Return the capacity of a broker and its origin; None while it is unknown.

        A capacity for request time that is not configured here follows from the broker's own settings.
        """
        configured = self.configured.get(kind)
        settings = joined.limits.nodes.get(broker) if joined.limits is not None else None
        if configured is None and kind is QuotaType.REQUEST and settings is not None:
            configured = settings.request_capacity_threads
        if configured:
            return configured, CapacityOrigin.CONFIGURED
        observed = self._highest_usage.get((kind, broker))
        return None if observed is None else (observed, CapacityOrigin.OBSERVED)
