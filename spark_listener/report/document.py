"""The report for programs."""

from __future__ import annotations

import json
from typing import Any

from ..job import QuerySnapshot, QueryTotals
from .account import Account, FailedAttempt, StageAccount
from .totals import causes, longest_waits, missing, stages_hit, waits

_MOST = 1_000


def document(account: Account) -> str:
    """JSON; times are seconds since 1970, durations seconds, null where they are unknown. Names are as they are."""
    return json.dumps(_values(account), indent=2)


def _values(account: Account) -> dict[str, Any]:
    snapshot = account.snapshot
    return {
        "app": account.app,
        "app_id": account.app_id,
        "began": account.began,
        "ended": account.ended,
        "finished": account.finished,
        "throttled_seconds": _seconds(account.throttled_ms),
        "throttled_complete": account.throttles_complete,
        "throttles": [_throttles(row) for row in waits(account)],
        "causes": [
            {"cause": cause.value, "failed_attempts": failed, "retries": again}
            for cause, failed, again in causes(account)
        ],
        "stage_retries": snapshot.stage_retries,
        "executors_lost": snapshot.executors_lost,
        "unknown_attempts": account.unknown_attempts,
        "stages_hit": [_stage(each) for each in stages_hit(account, _MOST)],
        "queries": [_query(each) for each in snapshot.queries],
        "longest_waits": [_attempt(each) for each in longest_waits(account, _MOST)],
        "notes": list(missing(account)),
    }


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000


def _throttles(row: QueryTotals) -> dict[str, Any]:
    query, totals = row
    return {
        "query": query,
        **totals.client._asdict(),
        "throttled_seconds": totals.throttled_ms / 1_000,
        "responses": totals.responses,
        "longest_seconds": totals.longest_ms / 1_000,
        "quota_retries": totals.quota_retries,
    }


def _stage(stage: StageAccount) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "attempt": stage.attempt,
        "name": stage.name,
        "query": stage.query,
        "failed": stage.failed,
        "failures": {cause.value: count for cause, count in stage.failures.items()},
        "throttled_seconds": _seconds(stage.throttled_ms),
    }


def _query(query: QuerySnapshot) -> dict[str, Any]:
    return {
        "query": query.name,
        "restarts": query.restarts,
        "phases": dict(query.phases),
        "max_offsets_behind": query.max_offsets_behind,
        "avg_offsets_behind": query.avg_offsets_behind,
    }


def _attempt(attempt: FailedAttempt) -> dict[str, Any]:
    return {
        "stage": attempt.stage,
        "stage_attempt": attempt.stage_attempt,
        "partition": attempt.partition,
        "attempt": attempt.number,
        "cause": attempt.cause.value,
        "raised": list(attempt.raised),
        "query": attempt.query,
        "throttled_seconds": _seconds(attempt.throttled_ms),
        "longest_seconds": _seconds(attempt.longest_ms),
        "seconds": attempt.ended - attempt.began,
    }
