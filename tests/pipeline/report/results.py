"""Results of replays and roll-ups, made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa

from quotascope.pages.report import html
from quotascope.pipeline.history.schema import ROLLUP
from quotascope.pipeline.losses import Losses
from quotascope.pipeline.rates import GroupUsage, LimitGroup, usages_of
from quotascope.pipeline.releases import Followed
from quotascope.pipeline.replay import RESULTS, Mode
from quotascope.pipeline.runs.whatif import WhatIf, as_csv, document, report
from quotascope.pipeline.summary import ReplaySummary, summary_of

HOSTILE = "<script>alert('hit')</script>\n\u202e\"&amp;<img src=x onerror=alert(1)>\x1b[2J"
"""A name that tries to be markup, and to move the cursor."""
MONDAY = 1_795_392_000_000
"""2026-11-23 00:00:00 UTC"""
_ZERO = dict.fromkeys(RESULTS.names, 0)


def result(**values: Any) -> dict[str, Any]:
    """Return a row of results about a client that is not throttled unless values say so."""
    names = {"candidate": "now", "broker": None, "user": "alice", "client_id": "app1", "quota_type": "produce"}
    usual = {**names, "limit": 1_000.0, "level": "user_client", "requests": 10, "amount": 100.0, "throttled_share": 0.0}
    return {**_ZERO, **usual, **values}


def throttled(muted_ms: int, **values: Any) -> dict[str, Any]:
    """Return a row of results about a client that is throttled for a tenth of its time."""
    values_ = {
        "throttled_requests": 3,
        "throttled_ms": muted_ms,
        "muted_ms": muted_ms,
        "active_ms": 10 * muted_ms,
        "throttled_share": 0.1,
        "longest_throttle_ms": muted_ms // 2,
        "recovery_ms": muted_ms,
    }
    return result(**{**values_, **values})


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=RESULTS)


def replayed(
    *rows: dict[str, Any],
    names: Sequence[str] = ("now", "tight"),
    mode: Mode = Mode.OPEN_LOOP,
    source: str = "usage",
    kafka: Followed | None = None,
) -> ReplaySummary:
    span = (MONDAY, MONDAY + 3_600_000)
    return summary_of(table(*rows), names, source, span, mode, kafka or Followed())


def seconds(amounts: Iterable[tuple[int, int]], **names: str) -> list[dict[str, Any]]:
    usual = {"user": "alice", "client_id": "app1", "broker": "1", "quota_type": "produce"}
    counts = {"requests": 1, "throttled": 0, "throttle_ms": 0}
    return [
        {**usual, **counts, **names, "start": MONDAY + 1_000 * second, "amount": amount} for second, amount in amounts
    ]


def usages(
    rows: Sequence[dict[str, Any]], groups: Sequence[LimitGroup], length_ms: int = 3_600_000
) -> dict[LimitGroup, GroupUsage]:
    batches = pa.Table.from_pylist(list(rows), schema=ROLLUP).to_batches()
    return usages_of(batches, groups, (MONDAY, MONDAY + length_ms), UTC)


def whatif_page(summary: ReplaySummary, drawn: Mapping[LimitGroup, GroupUsage]) -> str:
    """The page of the report."""
    return html(report(WhatIf(results=table(), summary=summary, usages=drawn)))


def whatif_json(summary: ReplaySummary) -> dict[str, Any]:
    """The document of the report."""
    return document(WhatIf(results=table(), summary=summary, usages={}))


def whatif_csv(*rows: dict[str, Any], losses: Losses | None = None) -> str:
    """The rows of an open loop as CSV."""
    names = list(dict.fromkeys(row["candidate"] for row in rows))
    summary = summary_of(table(*rows), names, "usage", (MONDAY, MONDAY + 1), Mode.OPEN_LOOP, Followed(), losses=losses)
    return as_csv(WhatIf(results=table(*rows), summary=summary, usages={}))


def hostile_replay() -> ReplaySummary:
    """Candidates, users, clients and places that try to be more than text."""
    return replayed(
        throttled(5_000, candidate=HOSTILE, user=HOSTILE, client_id=HOSTILE),
        throttled(4_000, candidate=HOSTILE, user="x" * 10_000, client_id=""),
        result(candidate="now", user=HOSTILE, client_id=HOSTILE),
        names=("now", HOSTILE),
        source=HOSTILE,
    )
