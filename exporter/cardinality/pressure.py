"""How much an identity matters to somebody who looks at quotas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..snapshot import EntityUsage

Pressure = tuple[int, float]
"""A rank, and a weight that orders within the rank."""

QUIET: Final = 0
"""Weight: the largest usage of one node."""
NEAR: Final = 1
"""Close to the limit. Weight: utilisation, or the part of the burst that is used."""
THROTTLED: Final = 2
"""Throttled or in token debt. Weight: the longest throttle, in seconds."""

_NEAR_RATIO: Final = 0.5


def pressure(rows: Sequence[EntityUsage]) -> Pressure:
    """That of the node where it is highest."""
    return max(map(_pressure, rows))


def callback_pressure(rows: Sequence[EntityUsage]) -> Pressure:
    """The same for what a custom callback tells apart, whose limits nobody knows."""
    return max(map(_callback_pressure, rows))


def throttled(usage: EntityUsage) -> bool:
    """Whether it was throttled lately, or mutations are refused now."""
    return usage.throttle_time_seconds > 0 or (
        usage.tokens is not None and usage.tokens < 0
    )


def used(usage: EntityUsage) -> float:
    """The part of the limit or of the burst that is used, the larger one; 0 where there is none."""
    return max(usage.utilization or 0.0, usage.burst_used or 0.0)


def _pressure(usage: EntityUsage) -> Pressure:
    if throttled(usage):
        return THROTTLED, usage.throttle_time_seconds
    ratio = used(usage)
    if ratio >= _NEAR_RATIO:
        return NEAR, ratio
    return QUIET, max(usage.usage or 0.0, 0.0)


def _callback_pressure(usage: EntityUsage) -> Pressure:
    throttled = usage.throttle_time_seconds
    if throttled > 0:
        return THROTTLED, throttled
    return QUIET, max(usage.usage or 0.0, 0.0)
