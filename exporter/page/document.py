"""Entities as JSON; docs/page.md describes it."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from quotascope.metrics import QuotaType

from ..exposition.rows import rule_labels
from ..snapshot import EntityUsage
from ..trails import STEP_SECONDS, Trails
from ..untrusted import LONGEST
from .query import QueryResult

_UNITS: Final = {
    QuotaType.PRODUCE: "bytes_per_second",
    QuotaType.FETCH: "bytes_per_second",
    QuotaType.REQUEST: "threads",
    QuotaType.CONTROLLER_MUTATION: "mutations_per_second",
}
"""Of usage and limit."""


def document(result: QueryResult) -> bytes:
    """The answer; all characters beyond ASCII are escaped, so that names can hold anything."""
    content = {
        "taken_at": result.snapshot.taken_at,
        "total": result.total,
        "offset": result.query.offset,
        "size": result.query.size,
        "next": result.following,
        "limits_unknown": result.limits_unknown,
        "recent_step_seconds": STEP_SECONDS,
        "entities": [_entity(usage, result.trails) for usage in result.rows],
    }
    return json.dumps(content, allow_nan=False).encode("ascii") + b"\n"


def failure(text: str) -> bytes:
    """The answer to a request that failed."""
    return json.dumps({"error": text}).encode("ascii") + b"\n"


def _entity(usage: EntityUsage, trails: Trails) -> dict[str, Any]:
    entity = usage.entity
    return {
        "broker": entity.broker,
        "quota_type": entity.quota_type.label,
        "user": _cut(entity.user),
        "client_id": _cut(entity.client_id),
        "unit": _UNITS[entity.quota_type],
        "usage": _number(usage.usage),
        "limit": _number(entity.limit),
        "limit_state": entity.limit_state.value,
        "utilization": _number(usage.utilization),
        "tokens": _number(usage.tokens),
        "burst_tokens": _number(entity.burst_tokens),
        "burst_used": _number(usage.burst_used),
        "throttle_time_seconds": _number(usage.throttle_time_seconds)
        if usage.throttle_known
        else None,
        "cause": None if usage.cause is None else usage.cause.value,
        "rule": _rule(usage),
        "recent": [_number(part) for part in trails.of(usage)],
    }


def _rule(usage: EntityUsage) -> dict[str, str] | None:
    resolution = usage.entity.resolution
    if resolution is None or resolution.entity is None:
        return None
    level, user, client_id = rule_labels(resolution.entity)
    return {"level": level, "user": _cut(user), "client_id": _cut(client_id)}


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else name[:LONGEST] + "…"


def _number(value: float | None) -> float | None:
    """JSON knows neither infinity nor what is no number."""
    return value if value is not None and math.isfinite(value) else None
