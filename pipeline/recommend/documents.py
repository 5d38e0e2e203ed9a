"""Recommended limits for programs: CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any, Final

from quotascope.quotas import Change, Commands, described

from .advice import Advice, Hit
from .recommendation import Recommendation

COLUMNS: Final = ("user", "client_id", "quota_type", "key", "now", "limit", "lowest", "broker", "hour_of_week", "requests")  # fmt: skip


def as_csv(advice: Advice) -> str:
    """One row for each limit; names of strangers are quoted and otherwise untouched."""
    sink = io.StringIO()
    writer = csv.DictWriter(sink, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_values(each, advice) for each in advice.recommended)
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
            "policy": _policy(advice),
            "recommended": [_values(each, advice) for each in advice.recommended],
            "changes": [_change(each) for each in advice.changes],
            "hits": [_hit(each) for each in advice.hits],
            "commands": commands.lines,
            "left_out": commands.left_out,
        },
        indent=2,
        allow_nan=False,
    )


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
        "limit": made.limit,
        "lowest": made.lowest,
        "broker": made.broker,
        "hour_of_week": made.hour,
        "requests": made.requests,
    }  # fmt: skip


def _change(change: Change) -> dict[str, Any]:
    return {"entity": described(change.entity), "key": change.key, "old": change.old, "new": change.new}  # fmt: skip


def _hit(hit: Hit) -> dict[str, Any]:
    values = asdict(hit)
    return {**values, "kind": hit.kind.label}
