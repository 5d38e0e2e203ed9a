"""How many series entities would have if they were shown."""

from __future__ import annotations

from math import isfinite

from ..snapshot import EntityUsage
from .identity import Rows


class SeriesCount:
    """
    Counts as the exposition writes.

    Args:
        maxima: Whether scrapers are shown the maxima since their last scrape as well: of what has a value now.

    """

    def __init__(self, *, maxima: bool = False) -> None:
        self._ratios = 2 if maxima else 1

    def all(self, rows: Rows) -> int:
        """Those of one identity on all of its nodes, in full."""
        return sum(map(_of_usage, rows)) + _of_limit(rows) + self.details(rows)

    def details(self, rows: Rows) -> int:
        """Those of them that only identities in detail have."""
        ruled = any(
            usage.entity.resolution and usage.entity.resolution.entity for usage in rows
        )
        return ruled + sum(map(self._details, rows))

    def _details(self, usage: EntityUsage) -> int:
        ratios = (usage.utilization is not None) + (usage.burst_used is not None)
        told = usage.told_utilization
        is_told = told is not None and isfinite(told)
        return self._ratios * ratios + (usage.cause is not None) + is_told


def _of_usage(usage: EntityUsage) -> int:
    optional = (
        usage.usage,
        usage.tokens,
        usage.throttled_seconds_total,
        usage.throttled_requests_total,
        usage.rejected_mutations_total,
    )
    return usage.throttle_known + sum(value is not None for value in optional)


def _of_limit(rows: Rows) -> int:
    limited = any(usage.entity.limit is not None for usage in rows)
    burst = any(usage.entity.burst_tokens is not None for usage in rows)
    return limited + burst
