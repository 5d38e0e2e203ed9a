"""The utilisation that brokers tell themselves (KIP-1373), compared with ours."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from typing import Final

from ..snapshot import EntityUsage

_TOLERANCE: Final = 0.02
"""Of the limit, or of what was told if that is more: the rate moves between the readings of two attributes."""


def disagreements(usages: Iterable[EntityUsage]) -> int | None:
    """
    How many entities of one node are nearer to or farther from their limit than the node says; None when it says nothing.

    The node computes with the limit that it enforces, so that a difference is one between that
    limit and the one that was read from the Admin API.
    """
    told = [usage for usage in usages if usage.told_utilization is not None]
    return sum(map(_disagrees, told)) if told else None


def _disagrees(usage: EntityUsage) -> bool:
    told, ours = usage.told_utilization, usage.utilization
    if told is None or usage.usage is None:
        return False
    if isnan(told) or ours is None:
        return isnan(told) is not (ours is None)
    return abs(told - ours) > _TOLERANCE * max(1.0, abs(told))
