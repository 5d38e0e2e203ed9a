"""How many series entities would have if they were shown."""

from __future__ import annotations

from math import isfinite

from ..snapshot import EntityUsage
from .identity import Rows


def series(rows: Rows) -> int:
    """Those of one identity on all of its nodes, in full."""
    return sum(map(_of_usage, rows)) + _of_limit(rows) + details(rows)


def details(rows: Rows) -> int:
    """Those of them that only identities in detail have."""
    ruled = any(
        usage.entity.resolution and usage.entity.resolution.entity for usage in rows
    )
    return ruled + sum(map(_details, rows))


def _of_usage(usage: EntityUsage) -> int:
    optional = (
        usage.usage,
        usage.tokens,
        usage.throttled_seconds_total,
        usage.throttled_requests_total,
        usage.rejected_mutations_total,
    )
    return 1 + sum(value is not None for value in optional)


def _of_limit(rows: Rows) -> int:
    limited = any(usage.entity.limit is not None for usage in rows)
    burst = any(usage.entity.burst_tokens is not None for usage in rows)
    return limited + burst


def _details(usage: EntityUsage) -> int:
    optional = (usage.utilization, usage.burst_used, usage.cause)
    told = usage.told_utilization
    is_told = told is not None and isfinite(told)
    return is_told + sum(value is not None for value in optional)
