"""What the account says about clients, stages and waits, in the order in which it matters."""

from __future__ import annotations

from collections.abc import Sequence

from quotascope.pages.words import counted, seconds

from ..events import Cause
from ..job import QuerySnapshot, QueryTotals
from .account import Account, FailedAttempt, StageAccount


def waits(account: Account) -> Sequence[QueryTotals]:
    """Clients that were told throttle times or refused, those that waited longest first."""
    told = [
        row
        for row in account.throttles
        if row[1].throttled_ms or row[1].responses or row[1].quota_retries
    ]
    return sorted(told, key=lambda row: row[1].throttled_ms, reverse=True)


def causes(account: Account) -> Sequence[tuple[Cause, int, int]]:
    """Causes with how many attempts failed and how many were repeated, those that occurred only."""
    told = account.snapshot
    rows = [(cause, told.failures[cause], told.retries[cause]) for cause in Cause]
    return [row for row in rows if row[1] or row[2]]


def stages_hit(account: Account, most: int) -> Sequence[StageAccount]:
    """Stages in which attempts failed or waited, the worst first."""
    hit = [stage for stage in account.stages if stage.is_hit]
    hit.sort(
        key=lambda stage: (stage.throttled_ms or 0, stage.failed_attempts), reverse=True
    )
    return hit[:most]


def longest_waits(account: Account, most: int) -> Sequence[FailedAttempt]:
    """Failed attempts that were told to wait longest."""
    told = [attempt for attempt in account.attempts if attempt.throttled_ms]
    told.sort(key=lambda attempt: attempt.throttled_ms or 0, reverse=True)
    return told[:most]


def throttled(account: Account) -> str:
    """How long the job was throttled, for the headline."""
    if account.throttled_ms is None:
        return f"Throttle time unknown: {unknown_why(account)}"
    least = "" if account.throttles_complete else "at least "
    return f"Throttled {least}{seconds(account.throttled_ms / 1_000)}"


def unknown_why(account: Account) -> str:
    """Why nothing is known of throttle times, and what to do."""
    if not account.with_summary:
        return "no failed attempt noted any, and the log has none of successful attempts (give --summary)"
    if not account.throttles:
        return (
            "no Kafka client of the job reported to the listener (docs/spark-tasks.md)"
        )
    lacking = counted(account.unknown_attempts, "attempt")
    return (
        f"the clients that reported did not wait, but {lacking} ended without a report"
    )


def no_waits(account: Account) -> str:
    """What stands in place of the clients that waited, when there is none."""
    if account.throttles_complete:
        return "No throttle time was reported."
    return f"Which clients waited is unknown: {unknown_why(account)}."


def last_batch(query: QuerySnapshot) -> str:
    """How long the last micro-batch of a query took, or that none has ended."""
    took = query.phases.get("triggerExecution")
    return "unknown" if took is None else seconds(took)


def duration(ms: int | None) -> str:
    """A duration, or that it is not known."""
    return "unknown" if ms is None else seconds(ms / 1_000)


def missing(account: Account) -> Sequence[str]:
    """What a reader must know about these numbers, one sentence each."""
    snapshot, told = account.snapshot, []
    if not account.with_summary:
        told.append(
            "Throttle times are those that failed attempts noted: successful ones leave none in an event log. "
            "The listener's summary (spark.quotascope.summaryFile) has them all; give it with --summary."
        )
    if not account.finished:
        told.append(
            "The application has not ended, or was killed: the log ends where it was last written."
        )
    if account.compacted:
        told.append(
            "The History server has compacted this log: tasks of jobs that had ended are gone."
        )
    if account.unknown_attempts:
        told.append(
            f"{counted(account.unknown_attempts, 'attempt')} ended without a report of what their Kafka clients waited."
        )
    if snapshot.lost_events:
        told.append(
            f"{counted(snapshot.lost_events, 'line')} of the log could not be read."
        )
    if account.left_out:
        told.append(
            f"{account.left_out} stages, attempts or batches are counted but not listed one by one."
        )
    return told
