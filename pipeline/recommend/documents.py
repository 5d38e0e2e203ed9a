"""Recommended limits for programs: CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any, Final

from quotascope.pages.words import text_cell
from quotascope.quotas import Commands, RuleChange, described

from ..week import HOURS
from .advice import Advice, Hit
from .recommendation import Recommendation

COLUMNS: Final = ("user", "client_id", "quota_type", "key", "now", "now_state", "limit", "lowest", "broker", "hour_of_week", "requests", "logged_requests", "logged_throttled", "logged_unknown", "demand_held_back")  # fmt: skip


def as_csv(advice: Advice) -> str:
    """One row for each limit; texts are `text_cell`s, so that a name is no formula in a spreadsheet."""
    sink = io.StringIO()
    writer = csv.DictWriter(sink, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in advice.recommended:
        cells = _values(each, advice).items()
        writer.writerow({name: text_cell(cell) if isinstance(cell, str) else cell for name, cell in cells})  # fmt: skip
    return sink.getvalue()


def as_json(advice: Advice, commands: Commands) -> str:
    """All of it; durations are ms, shares ratios, hours of the week counted from Monday 00h. Names are as they are."""
    begin, end = advice.span_ms
    return json.dumps(
        {
            "history": advice.source,
            "begin_ms": begin,
            "end_ms": end,
            "kafka": advice.kafka.values(),
            "coverage": _coverage(advice),
            "policy": _policy(advice),
            "recommended": [_values(each, advice) for each in advice.recommended],
            "changes": [_change(each, advice) for each in advice.changes],
            "hits": [_hit(each) for each in advice.hits],
            "commands": commands.lines,
            "left_out": commands.left_out,
        },
        indent=2,
        allow_nan=False,
    )


def _coverage(advice: Advice) -> dict[str, Any]:
    coverage = advice.coverage
    return {
        "period_ms": coverage.period_ms,
        "hours_of_week_seen": coverage.hours_of_week,
        "hours_of_week": HOURS,
        "hours_seen": coverage.clock_hours,
        "less_than_a_day": coverage.short,
        "requests": coverage.logged.requests,
        "throttled_requests": coverage.logged.throttled,
        "requests_without_throttle_time": coverage.logged.unknown,
        "throttled_share": coverage.logged.share,
        "limits_with_demand_held_back": advice.held_back,
    }


def _policy(advice: Advice) -> dict[str, Any]:
    policy = advice.policy
    return {
        "share": policy.share,
        "headroom": policy.headroom,
        "shape": policy.shape.value,
        "by_hour": policy.by_hour,
        "zone": str(policy.zone),
        "floors": {kind.label: floor for kind, floor in policy.floors.items()},
    }


def _values(made: Recommendation, advice: Advice) -> dict[str, Any]:
    return {
        "user": made.entity.user,
        "client_id": made.entity.client_id,
        "quota_type": made.kind.label,
        "key": made.key,
        "now": advice.now_of(made),
        "now_state": advice.now_state(made),
        "limit": made.limit,
        "lowest": made.lowest,
        "broker": made.broker,
        "hour_of_week": made.hour,
        "requests": made.requests,
        "logged_requests": advice.logged(made).requests,
        "logged_throttled": advice.logged(made).throttled,
        "logged_unknown": advice.logged(made).unknown,
        "demand_held_back": advice.logged(made).throttled > 0,
    }  # fmt: skip


def _change(change: RuleChange, advice: Advice) -> dict[str, Any]:
    old = "unknown" if advice.now is None else "no rule" if change.old is None else "set"  # fmt: skip
    return {"entity": described(change.entity), "key": change.key, "old": change.old, "old_state": old, "new": change.new}  # fmt: skip


def _hit(hit: Hit) -> dict[str, Any]:
    values = asdict(hit)
    return {**values, "kind": hit.kind.label}
