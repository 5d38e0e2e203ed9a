"""The report on an application, and its figures for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from quotascope.pages.charts import key, swatch
from quotascope.pages.markup import element
from quotascope.pages.report import Block, Chart, Lines, Report, Rows, csv_of, html
from quotascope.pages.words import counted, moment, seconds, shown

from ..job import MEASURED_NONE, NOT_MEASURED, ClientKind, QuerySnapshot, QueryTotals
from .application import LIMITED_SHARE, Application
from .history import FailedAttempt, StageHistory
from .timeline import THROTTLED, drawn, legend, timeline

_MOST_IN_TERMINAL = 15
_MOST_ON_PAGE = 50
_MOST_IN_JSON = 1_000
_MOST_IN_HEADLINE = 3
_UNSEEN: Final[Mapping[ClientKind, str]] = {
    "jvm": (
        "Kafka clients of the JVM, such as Spark's connector, were not watched (documentation: Spark's Kafka connector)"
    ),
    "python": (
        "Python code in tasks did not report, or the listener missed events (documentation: Python Kafka clients in "
        "Spark tasks)"
    ),
}


_COLUMNS: Final = (
    *("query", "user", "client_id", "side"),
    *("throttled_seconds", "responses", "longest_seconds", "quota_retries"),
)
_IN_SUMMARY: Final[Mapping[ClientKind, str]] = {
    "jvm": "Throttle times of Kafka clients of the JVM, which the plugin watched, "
    "are in the listener's summary (--summary) and in Spark's own metrics, not in an event log",
    "python": "Throttle times of Python clients in tasks, which report to the listener, are in its summary (--summary)",
}


def _unseen(application: Application, kind: ClientKind) -> str:
    """Return why throttle times of these clients are unknown, and where they are if they were watched."""
    is_watched = application.plugin if kind == "jvm" else application.listener
    return (_IN_SUMMARY if is_watched and not application.with_summary else _UNSEEN)[kind]


def report(application: Application) -> Report:
    """Report throttle times, failures and retries."""
    lanes, left_out = timeline(application)
    blocks: list[Block] = []
    if lanes:
        keys = (key(name, swatch(color)) for name, color in legend(application))
        chart = element("p", *keys, class_="legend"), drawn(application, lanes)
        blocks.append(Chart(title="Timeline", elements=chart))
    if left_out:
        line = f"{left_out} more lanes, with fewer failures and less throttle time"
        blocks.append(Lines(lines=(line,), faint=True, detail=True))
    return Report(
        title=f"{shown(application.app) or 'A Spark job'}: throttle times",
        where=period(application),
        headline=(headline(application),),
        blocks=[*blocks, *_tables(application)],
        notes=notes(application),
    )


def page(application: Application) -> str:
    """Write the report as an HTML file."""
    return html(report(application))


def as_csv(application: Application) -> str:
    """Write a row for each query and client that was throttled, as in `document`."""
    return csv_of(_COLUMNS, _throttles(application))


def _tables(application: Application) -> Sequence[Rows]:
    """Return the tables of a report; a table without rows is not drawn unless it says what that means."""
    snapshot = application.snapshot
    clients = throttled_clients(application)
    max_ms = max([1, *(totals.throttled_ms for _, totals in clients)])
    return (
        Rows(
            terminal_rows=_MOST_IN_TERMINAL,
            page_rows=_MOST_ON_PAGE,
            title="Throttled time by query and client",
            heads=("query", "user", "client id", "=side", "#throttled", "#responses", "#longest", "#quota retries"),
            rows=[
                (
                    *map(shown, (query, *totals.client)),
                    seconds(totals.throttled_ms / 1_000),
                    str(totals.responses),
                    seconds(totals.longest_ms / 1_000),
                    str(totals.quota_retries),
                )
                for query, totals in clients
            ],
            empty=f"{MEASURED_NONE}."
            if application.throttles_complete
            else f"{_how_far(application)}: {_unknown_why(application)}.",
            shares=[totals.throttled_ms / max_ms for _, totals in clients],
            color=THROTTLED,
            name=1
        ),
        Rows(
            terminal_rows=_MOST_IN_TERMINAL,
            page_rows=_MOST_ON_PAGE,
            title="Failures and retries by cause",
            heads=("=cause", "#failed attempts", "#retries"),
            rows=[
                (cause.value, str(failed), str(retried))
                for cause, failed, retried in application.causes()
            ],
            empty="No attempt of a task failed." if application.counts_complete
            else "No attempt of a task failed in the part of the log that is there."
        ),
        Rows(
            terminal_rows=_MOST_IN_TERMINAL,
            page_rows=_MOST_ON_PAGE,
            title="Affected stages",
            heads=("=stage", "name", "query", "=causes", "#throttled", "#failed attempts"),
            rows=[
                (
                    f"{stage.stage}.{stage.attempt}",
                    shown(stage.name),
                    shown(stage.query),
                    ", ".join(f"{count} {cause}" for cause, count in stage.failures.items())
                    or ("canceled" if stage.canceled else "the stage itself"),
                    _at_least(stage),
                    str(stage.failed_attempts),
                )
                for stage in affected_stages(application)
            ],
            page_only=("#failed attempts",)
        ),
        Rows(
            terminal_rows=_MOST_IN_TERMINAL,
            page_rows=_MOST_ON_PAGE,
            title="Streaming queries",
            heads=("query", "#restarts", "#last batch", "#offsets behind, worst", "#average"),
            rows=[
                (
                    shown(query.name),
                    str(query.restarts),
                    "unknown" if (took := query.phases.get("triggerExecution")) is None else seconds(took),
                    _count(query.max_offsets_behind),
                    _count(query.avg_offsets_behind),
                )
                for query in snapshot.queries
            ]
        ),
        Rows(
            terminal_rows=_MOST_IN_TERMINAL,
            page_rows=_MOST_ON_PAGE,
            title="Streaming queries that failed",
            heads=("query", "=cause", "raised"),
            rows=[
                (shown(failure.query), failure.cause.value, shown(failure.raised[-1]) if failure.raised else "")
                for failure in application.failed_queries
            ]
        ),
        Rows(
            terminal_rows=_MOST_IN_TERMINAL,
            page_rows=_MOST_ON_PAGE,
            title="Streaming queries at their limit",
            heads=("query", "=throttled", "#backlog", "#read/s", "#added/s", "#catch-up", "#maxOffsetsPerTrigger"),
            rows=[
                (
                    shown(query.name),
                    *_limit_cells(
                        query, application.limited_share(query.name), application.trigger_period(query.name)
                    ),
                )
                for query in snapshot.queries
            ],
            page_only=("#added/s",)
        ),
        Rows(
            terminal_rows=_MOST_IN_TERMINAL,
            page_rows=_MOST_ON_PAGE,
            title="Longest throttle times of failed attempts",
            heads=("=stage", "partition, attempt", "=cause", "raised", "query", "#throttled", "#longest", "#took"),
            rows=[
                (
                    f"{attempt.stage}.{attempt.stage_attempt}",
                    f"{attempt.partition}, {attempt.number}",
                    attempt.cause.value,
                    shown(attempt.raised[-1]) if attempt.raised else "",
                    shown(attempt.query),
                    _duration(attempt.throttled_ms),
                    _duration(attempt.longest_ms),
                    seconds(attempt.ended - attempt.began),
                )
                for attempt in throttled_attempts(application)
            ],
            page_only=("raised", "#longest")
        ),
    )  # fmt: skip


def _limit_cells(query: QuerySnapshot, share: float | None, period: float | None) -> tuple[str, ...]:
    """Return the cells of a query: the throttled share, the backlog and its rates, and what the limit allows."""
    progress, limited = query.catch_up, _is_limited(share)
    catch_up = allowed = "unknown"
    if progress is not None:
        catch_up = seconds(progress.seconds) if math.isfinite(progress.seconds) else "cannot catch up"
    if limited is False:
        allowed = "not limited"
    elif limited and progress is not None:
        per_second = progress.read_per_second
        allowed = f"{per_second * period:,.0f} at {seconds(period)}" if period else f"{per_second:,.0f} per s"
    return (
        "unknown" if share is None else f"{share:.0%}",
        _count(None if progress is None else progress.backlog),
        _count(None if progress is None else progress.read_per_second),
        _count(None if progress is None else progress.added_per_second),
        catch_up,
        allowed,
    )


def _is_limited(share: float | None) -> bool | None:
    """
    Return whether a quota decides the speed of a query, by `limited_share`; None if it is unknown.

    A query that is slow for another reason is not limited.
    """
    return None if share is None else share >= LIMITED_SHARE


def period(application: Application) -> str:
    """Return the id of the application, and when it ran."""
    state = "" if application.finished else ", not ended"
    name = shown(application.app_id) or "(unknown application)"
    if not application.began:
        return f"{name}, at an unknown time{state}"
    return f"{name}, from {moment(1_000 * application.began)} for {_took(application)}{state}"


def _took(application: Application) -> str:
    """Return the length of the application's time as text."""
    return seconds(max(0.0, application.ended - application.began))


def headline(application: Application) -> str:
    """Return the report in one sentence."""
    snapshot = application.snapshot
    bound = "" if application.counts_complete else "at least "
    counts = (
        bound + counted(sum(snapshot.failures.values()), "failed attempt"),
        counted(sum(snapshot.retries.values()), "retry"),
        counted(snapshot.stage_retries, "stage retry"),
        counted(snapshot.executors_lost, "lost executor"),
        *_failed_queries(application),
    )
    if application.throttled_ms is None:
        throttled = f"{_how_far(application)}: {_unknown_why(application)}"
    elif not application.throttled_ms and application.throttles_complete:
        throttled = MEASURED_NONE
    else:
        least = "" if application.throttles_complete else "at least "
        throttled = f"Throttled {least}{seconds(application.throttled_ms / 1_000)}"
        critical, in_batches = application.critical_seconds(), application.batch_seconds
        if critical is not None and in_batches is not None and application.throttled_ms:
            places = []
            if critical or not in_batches:
                places.append(f"{seconds(critical)} on the critical path")
            if in_batches:
                places.append(f"{seconds(in_batches)} in micro-batches")
            throttled += f" ({', '.join(places)})"
    return f"{throttled}, {', '.join([*counts, *_catching_up(application)])}"


def _failed_queries(application: Application) -> Iterator[str]:
    """Yield the queries that failed, with their causes."""
    failures = application.failed_queries
    for failure in failures[:_MOST_IN_HEADLINE]:
        yield f"{shown(failure.query, 40)} failed ({failure.cause})"
    if len(failures) > _MOST_IN_HEADLINE:
        yield f"{len(failures) - _MOST_IN_HEADLINE} more failed"


def _catching_up(application: Application) -> Iterator[str]:
    """Yield the queries that a quota keeps behind."""
    places = _MOST_IN_HEADLINE
    for query in application.snapshot.queries:
        progress = query.catch_up
        if places and progress is not None and progress.seconds and _is_limited(application.limited_share(query.name)):
            places -= 1
            name = shown(query.name, 40)
            if math.isfinite(progress.seconds):
                yield f"{name} catches up in {seconds(progress.seconds)}"
            else:
                yield f"{name} cannot catch up"


def throttled_clients(application: Application) -> Sequence[QueryTotals]:
    """Return the clients with a throttle time or a refused request, those throttled longest first."""
    rows = [row for row in application.throttles if row[1].throttled_ms or row[1].responses or row[1].quota_retries]
    return sorted(rows, key=lambda row: row[1].throttled_ms, reverse=True)


def affected_stages(application: Application) -> Sequence[StageHistory]:
    """Return the stages with failures or throttle times, the worst first."""
    hit = [stage for stage in application.stages if stage.is_hit]
    hit.sort(key=lambda stage: (stage.throttled_ms or 0, stage.failed_attempts), reverse=True)
    return hit


def throttled_attempts(application: Application) -> Sequence[FailedAttempt]:
    """Return the failed attempts with a throttle time, those throttled longest first."""
    attempts = [attempt for attempt in application.attempts if attempt.throttled_ms]
    return sorted(attempts, key=lambda attempt: attempt.throttled_ms or 0, reverse=True)


def _how_far(application: Application) -> str:
    """Return how much was measured, where throttle times are known to be incomplete."""
    measured = application.with_summary and application.throttles
    return "Throttle times: measured in part" if measured else NOT_MEASURED


def _unknown_why(application: Application) -> str:
    """Return why no throttle time is known, and what to do."""
    if not application.with_summary:
        if application.summary_file:
            advice = f"give --summary {shown(application.summary_file)}"
        elif application.listener:
            advice = "give --summary"
        else:
            advice = "it does not show that the listener was attached: see the documentation (Spark)"
        return f"no failed attempt noted any, and the log has none of successful attempts ({advice})"
    if not application.throttles:
        return (
            "no Kafka client of the job reported to the listener (documentation: Python Kafka clients in Spark tasks)"
        )
    lacking = [_unseen(application, kind) for kind in application.unseen_clients]
    if application.unknown_attempts:
        lacking.append(f"{counted(application.unknown_attempts, 'attempt')} ended without a report")
    return f"the clients that reported were not throttled, but {' and '.join(lacking)}"


def _duration(ms: int | None) -> str:
    """Return a time in ms as text."""
    return "unknown" if ms is None else seconds(ms / 1_000)


def _at_least(stage: StageHistory) -> str:
    """Return a stage's throttle time, marked as a lower bound if attempts left no note, as successful ones never do."""
    bound = "≥ " if stage.throttled_ms is not None and stage.slots.unnoted else ""
    return f"{bound}{_duration(stage.throttled_ms)}"


def _count(value: float | None) -> str:
    """Return a number as text."""
    return "unknown" if value is None else f"{value:,.0f}"


def notes(application: Application) -> Sequence[str]:
    """Return notes on what follows from these figures and what limits them, a sentence each."""
    sentences = []
    if application.throttled_ms and application.least_seconds is not None:
        sentences.append(
            f"Without the quota the application would have taken {seconds(application.least_seconds)} or more, "
            f"not {_took(application)}."
        )
    if not application.with_summary:
        sentences.append(
            "Throttle times are those that failed attempts noted: an event log has none of successful attempts. "
            "The listener's summary (spark.quotascope.summaryFile) has all of them; give it with --summary."
        )
    sentences += [f"{_unseen(application, kind)}." for kind in application.unseen_clients]
    sentences += _losses(application)
    sentences += _corrections(application)
    if application.compacted:
        sentences.append("The History server has compacted this log: tasks of jobs that had ended are missing.")
    if application.unknown_attempts:
        sentences.append(
            f"{counted(application.unknown_attempts, 'attempt')} ended "
            "without a report of the throttle times of their Kafka clients."
        )
    if application.left_out:
        sentences.append(f"{application.left_out} stages, attempts or batches are counted but not listed one by one.")
    return sentences


def _losses(application: Application) -> Iterator[str]:
    """Yield what the log lacks, and what follows for the figures."""
    for problem in application.damage:
        yield f"{problem}. Events before the damage are counted, those after it are missing."
    if end := _ENDS[log_end(application)]:
        yield end
    if application.missing_files:
        yield (
            f"The log is incomplete: it lacks {counted(application.missing_files, 'file')} "
            "(by the numbers of those that are there)."
        )
    if application.unreadable_lines:
        yield f"{counted(application.unreadable_lines, 'line')} of the log could not be read."
    if application.missing_ends:
        yield (
            f"The ends of at least {counted(application.missing_ends, 'attempt')} of tasks are missing in the log: "
            "failures, retries and lost executors are lower bounds."
        )
    if application.open_attempts:
        yield f"{counted(application.open_attempts, 'attempt')} of tasks had not ended at the end of the log."


def _corrections(application: Application) -> Iterator[str]:
    """Yield what the log has more than once, out of order or without its reason, and how it counts."""
    if application.repeated_lines:
        yield f"{counted(application.repeated_lines, 'line')} of the log repeated an earlier one, and do not count."
    if application.is_sorted:
        yield "Lines of the log are not in the order in which Spark wrote them: they are sorted by time."
    elif application.disordered:
        yield (
            "Lines of the log are not in the order in which Spark wrote them, and too many to be sorted: "
            "retries and queries may be wrong."
        )
    if application.inferred_executors:
        yield (
            f"{counted(application.inferred_executors, 'executor')} had no task for the timeout of dynamic allocation "
            "and count as given back: Spark before 3.1 does not report why they went away."
        )


_ENDS: Final = {
    "application": "",
    "damaged": "",
    "cut": "The log is cut: its last line is a part of one, "
    "and the end of the application (SparkListenerApplicationEnd) is missing.",
    "running": "The application has not ended, or was killed: the log ends where it was last written.",
    "without_end": "The log is closed without the end of the application: "
    "the driver was killed, or the last lines are missing.",
}
"""Meaning of each value of `log_end`; empty where it needs no words."""


def log_end(application: Application) -> str:
    """Return how the log ends: with the application, running, without_end, cut or damaged."""
    states = {
        "damaged": bool(application.damage),
        "application": application.finished,
        "running": application.running,
        "cut": application.is_cut,
    }
    return next((state for state, holds in states.items() if holds), "without_end")


def document(application: Application) -> dict[str, Any]:
    """
    Return the figures for programs.

    Times are seconds since 1970, durations seconds, null where they are unknown. Names are as they are.
    """
    snapshot = application.snapshot
    return {
        "app": application.app,
        "app_id": application.app_id,
        "began": application.began or None,
        "ended": application.ended or None,
        "finished": application.finished,
        "counts_complete": application.counts_complete,
        "missing_attempt_ends": application.missing_ends,
        "open_attempts": application.open_attempts,
        "repeated_lines": application.repeated_lines,
        "unreadable_lines": application.unreadable_lines,
        "missing_files": application.missing_files,
        "damage": list(application.damage),
        "log_end": log_end(application),
        "throttled_seconds": _in_seconds(application.throttled_ms),
        "throttled_complete": application.throttles_complete,
        "critical_path_throttled_seconds": application.critical_seconds(),
        "micro_batches_throttled_seconds": application.batch_seconds,
        "least_seconds_without_quota": application.least_seconds,
        "seen_clients": application.seen_clients,
        "unseen_clients": application.unseen_clients,
        "throttles": _throttles(application),
        "causes": [
            {"cause": cause.value, "failed_attempts": failed, "retries": retried}
            for cause, failed, retried in application.causes()
        ],
        "stage_retries": snapshot.stage_retries,
        "executors_lost": snapshot.executors_lost,
        "unknown_attempts": application.unknown_attempts,
        "stages_hit": [
            {
                "stage": stage.stage,
                "attempt": stage.attempt,
                "name": stage.name,
                "query": stage.query,
                "failed": stage.failed,
                "canceled": stage.canceled,
                "failures": {cause.value: failed for cause, failed in stage.failures.items()},
                "throttled_seconds": _in_seconds(stage.throttled_ms),
            }
            for stage in affected_stages(application)[:_MOST_IN_JSON]
        ],
        "queries": [
            {
                "query": query.name,
                "restarts": query.restarts,
                "phases": dict(query.phases),
                "max_offsets_behind": query.max_offsets_behind,
                "avg_offsets_behind": query.avg_offsets_behind,
                "critical_path_throttled_seconds": application.critical_seconds(query.name),
                **_limit_values(query, application.limited_share(query.name), application.trigger_period(query.name)),
            }
            for query in snapshot.queries
        ],
        "failed_queries": [
            {"query": failure.query, "cause": failure.cause.value, "raised": list(failure.raised)}
            for failure in application.failed_queries
        ],
        "longest_waits": [
            {
                "stage": attempt.stage,
                "stage_attempt": attempt.stage_attempt,
                "partition": attempt.partition,
                "attempt": attempt.number,
                "cause": attempt.cause.value,
                "raised": list(attempt.raised),
                "query": attempt.query,
                "throttled_seconds": _in_seconds(attempt.throttled_ms),
                "longest_seconds": _in_seconds(attempt.longest_ms),
                "seconds": attempt.ended - attempt.began,
            }
            for attempt in throttled_attempts(application)[:_MOST_IN_JSON]
        ],
        "notes": list(notes(application)),
    }


def _throttles(application: Application) -> list[dict[str, Any]]:
    """Return the throttled clients for programs."""
    return [
        {
            "query": query,
            **totals.client._asdict(),
            "throttled_seconds": totals.throttled_ms / 1_000,
            "responses": totals.responses,
            "longest_seconds": totals.longest_ms / 1_000,
            "quota_retries": totals.quota_retries,
        }
        for query, totals in throttled_clients(application)
    ]


def _limit_values(query: QuerySnapshot, share: float | None, period: float | None) -> dict[str, Any]:
    """Return the values of `_limit_cells`; null where one is unknown, and where there is no such time or no limit."""
    progress, limited = query.catch_up, _is_limited(share)
    can_catch_up = None if progress is None else math.isfinite(progress.seconds)
    return {
        "throttled_share": share,
        "limited_by_quota": limited,
        "backlog_offsets": None if progress is None else progress.backlog,
        "read_offsets_per_second": None if progress is None else progress.read_per_second,
        "added_offsets_per_second": None if progress is None else progress.added_per_second,
        "can_catch_up": can_catch_up,
        "catch_up_seconds": progress.seconds if progress and can_catch_up else None,
        "max_offsets_per_trigger_second": progress.read_per_second if progress and limited else None,
        "max_offsets_per_trigger": round(progress.read_per_second * period)
        if progress and limited and period
        else None,
        "trigger_period_seconds": period,
    }  # fmt: skip


def _in_seconds(ms: int | None) -> float | None:
    """Return a time in ms in seconds; None for None."""
    return None if ms is None else ms / 1_000
