"""Which entities to look at first."""

from __future__ import annotations

from collections.abc import Sequence

from .snapshot import EntityUsage


def most_pressing(entities: Sequence[EntityUsage], most: int) -> list[EntityUsage]:
    """Up to ``most`` entities: the longest throttled first, then those closest to their limit."""
    pressing = [usage for usage in entities if any(_pressure(usage))]
    return sorted(pressing, key=_pressure, reverse=True)[:most]


def _pressure(usage: EntityUsage) -> tuple[float, float]:
    used = max(usage.utilization or 0.0, usage.burst_used or 0.0, 0.0)
    return usage.throttle_time_seconds, used
