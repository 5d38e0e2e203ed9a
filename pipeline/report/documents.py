"""Replays and recommendations for programs: CSV, JSON, a script for bash, and Strimzi's manifests."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv as arrow_csv

from quotascope.metrics import QuotaType
from quotascope.pages.words import text_cell
from quotascope.quotas import Commands, Manifests, QuotaSet, kafka_users

from ..rates import HOURS
from ..recommend.advice import Advice, Recommendation
from ..replay.plan import Mode
from ..replay.results import CLOSED_LOOP_ONLY
from .whatif import COMPARED, ReplaySummary

_COLUMNS: Final = (
    "user",
    "client_id",
    "quota_type",
    "key",
    "now",
    "now_state",
    "limit",
    "lowest",
    "broker",
    "hour_of_week",
    "requests",
    "requests_of_unknown_size",
    "logged_requests",
    "logged_throttled",
    "logged_unknown",
    "demand_held_back",
)
_HEAD: Final = """\
#!/usr/bin/env bash
# Written by `quotascope recommend`, which has run none of it: read it first. kafka-configs.sh must be on the PATH.
set -euo pipefail
export LC_ALL=C.UTF-8 # for names that are not ASCII: bash and Java read them by the locale
"""


def whatif_csv(results: pa.Table, mode: Mode) -> str:
    """
    The rows, with a head: a name is a `text_cell`; what a mode does not measure is empty.

    Args:
        results: `quotascope.pipeline.replay.RESULTS`.
        mode: of their replay.

    """
    sink = io.BytesIO()
    columns: dict[str, Any] = dict(zip(results.column_names, results.columns, strict=True))
    for name, column in columns.items():
        if name in CLOSED_LOOP_ONLY and mode is Mode.OPEN_LOOP:
            columns[name] = pa.nulls(len(column), column.type)
        elif pa.types.is_string(column.type):
            cells = [None if text is None else text_cell(text) for text in column.to_pylist()]
            columns[name] = pa.array(cells, pa.string())
    arrow_csv.write_csv(pa.table(columns), sink)
    return sink.getvalue().decode()


def whatif_json(summary: ReplaySummary) -> dict[str, Any]:
    """Candidates added up, with their difference to the first, and the rows; times are ms, and what the mode does not measure is null. Names are as they are."""
    unknown = () if summary.closed else CLOSED_LOOP_ONLY

    def measured(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: None if name in unknown else value for name, value in row.items()}

    begin, end = summary.span_ms
    base = summary.candidates[0]
    differences = {
        each.candidate.name: {
            **{figure.key: figure.difference(each.candidate, base) for figure in COMPARED},
            "clients_worse": each.worse,
            "clients_better": each.better,
        }
        for each in summary.comparisons
    }  # fmt: skip
    return {
        "history": summary.source,
        "begin_ms": begin,
        "end_ms": end,
        "mode": summary.mode.value,
        "kafka": summary.kafka.values(),
        "candidates": [
            measured(
                {
                    **asdict(each),
                    "request_share": each.request_share,
                    "difference": differences.get(each.name),
                }
            )
            for each in summary.candidates
        ],
        "results": list(map(measured, summary.rows)),
        "brokers": summary.benefit.values() if summary.benefit else None,
        "notes": list(summary.notes),
    }


def recommend_csv(advice: Advice) -> str:
    """One row for each limit; texts are `text_cell`s."""
    sink = io.StringIO()
    writer = csv.DictWriter(sink, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in advice.recommended:
        cells = _limit(each, advice).items()
        writer.writerow({name: text_cell(cell) if isinstance(cell, str) else cell for name, cell in cells})
    return sink.getvalue()


def recommend_json(advice: Advice, commands: Commands) -> dict[str, Any]:
    """The whole recommendation; durations are ms, shares ratios, hours of the week counted from Monday 00h; a quota may be infinite. Names are as they are."""
    begin, end = advice.span_ms
    coverage, policy = advice.coverage, advice.policy
    return {
        "history": advice.source,
        "begin_ms": begin,
        "end_ms": end,
        "kafka": advice.kafka.values(),
        "coverage": {
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
        },
        "policy": {
            "share": policy.share,
            "headroom": policy.headroom,
            "shape": policy.shape.value,
            "by_hour": policy.by_hour,
            "zone": str(policy.zone),
            "floors": {kind.label: floor for kind, floor in policy.floors.items()},
        },
        "protection": advice.protection.values() if advice.protection else None,
        "recommended": [_limit(each, advice) for each in advice.recommended],
        "changes": [
            {
                "entity": str(change.entity),
                "key": change.key,
                "old": change.old,
                "old_state": advice.state(change.old),
                "new": change.new,
            }
            for change in advice.changes
        ],
        "hits": [{**asdict(hit), "kind": hit.kind.label} for hit in advice.hits],
        "commands": commands.lines,
        "left_out": commands.left_out,
    }


def _limit(made: Recommendation, advice: Advice) -> dict[str, Any]:
    logged, now = advice.logged(made), advice.now_of(made)
    return {
        "user": made.entity.user,
        "client_id": made.entity.client_id,
        "quota_type": made.kind.label,
        "key": made.key,
        "now": now,
        "now_state": advice.state(now),
        "limit": made.limit,
        "lowest": made.lowest,
        "broker": made.broker,
        "hour_of_week": made.hour,
        "requests": made.requests,
        "requests_of_unknown_size": made.unsized,
        "logged_requests": logged.requests,
        "logged_throttled": logged.throttled,
        "logged_unknown": logged.unknown,
        "demand_held_back": logged.throttled > 0,
    }


def script_of(commands: Commands, caveats: Sequence[str] = ()) -> str:
    """A script for bash with one command for each entity; its comments hold the caveats, and what no command line can express."""
    made_of = (f"# {sentence}" for sentence in caveats)
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    return "\n".join((_HEAD, *made_of, *left_out, *commands.lines, ""))


def manifests(advice: Advice, cluster: str) -> Manifests:
    """
    Strimzi's `KafkaUser` for each user with a changed quota, with all of its quotas.

    Percentages of request time are rounded up: there they are whole numbers.
    """
    whole = {
        entity: {
            key: float(math.ceil(value)) if key == QuotaType.REQUEST.quota_key and math.isfinite(value) else value
            for key, value in values.items()
        }
        for entity, values in advice.target.items()
    }  # fmt: skip
    changed = {change.entity for change in advice.changes}
    return kafka_users(QuotaSet(whole), cluster=cluster, only=changed)
