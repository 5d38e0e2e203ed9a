"""The sentences and tables of a report, which the terminal and the page share, and JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.pages.words import counted, moment, seconds, shown

from ..events import FailureCause
from ..job import ClientKind, QuerySnapshot, QueryTotals
from .application import LIMITED_SHARE, Application, FailedAttempt, StageHistory

_MOST_IN_TERMINAL = 15
_MOST_IN_JSON = 1_000
_MOST_IN_HEADLINE = 3
_UNSEEN: Final[Mapping[ClientKind, str]] = {
    "jvm": "Kafka clients of the JVM, such as Spark's connector, were not watched (docs/spark-connector.md)",
    "python": "Python code in tasks did not report, or the listener missed events (docs/spark-tasks.md)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A table with its title. Cells are safe to show."""

    title: str
    heads: tuple[str, ...]
    """As `quotascope.pages.markup.table` takes them: numbers begin with #, words of ours with =."""
    rows: Sequence[tuple[str, ...]]
    empty: str = ""
    """A sentence in place of a table without rows; without it, the section is left out."""
    page_only: tuple[str, ...] = ()
    """Heads of columns for which a terminal has no room."""
    shares: Sequence[float] = ()
    """By row, 0 to 1; the page draws them as bars."""


def sections(application: Application) -> Iterator[ReportSection]:
    """The tables of a report, in order; those without rows and sentence are left out."""
    snapshot = application.snapshot
    clients = throttled_clients(application)
    most = max([1, *(totals.throttled_ms for _, totals in clients)])
    found = (
        ReportSection(
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
            empty="No throttle time was reported."
            if application.throttles_complete
            else f"Which clients were throttled is unknown: {_unknown_why(application)}.",
            shares=[totals.throttled_ms / most for _, totals in clients]
        ),
        ReportSection(
            title="Failures and retries by cause",
            heads=("=cause", "#failed attempts", "#retries"),
            rows=[
                (cause.value, str(failed), str(retried))
                for cause, failed, retried in causes(application)
            ],
            empty="No attempt of a task failed."
        ),
        ReportSection(
            title="Affected stages",
            heads=("=stage", "name", "query", "=causes", "#throttled", "#failed attempts"),
            rows=[
                (
                    f"{stage.stage}.{stage.attempt}",
                    shown(stage.name),
                    shown(stage.query),
                    ", ".join(f"{count} {cause}" for cause, count in stage.failures.items()) or "the stage itself",
                    _at_least(stage),
                    str(stage.failed_attempts),
                )
                for stage in affected_stages(application)
            ],
            page_only=("#failed attempts",)
        ),
        ReportSection(
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
        ReportSection(
            title="Streaming queries at their limit",
            heads=("query", "=throttled", "#backlog", "#read/s", "#added/s", "#catch-up", "#maxOffsetsPerTrigger"),
            rows=[
                (shown(query.name), *_limit_cells(query, application.limited_share(query.name)))
                for query in snapshot.queries
            ],
            page_only=("#added/s",)
        ),
        ReportSection(
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
    return (section for section in found if section.rows or section.empty)


def _limit_cells(query: QuerySnapshot, share: float | None) -> tuple[str, ...]:
    """Whether a quota slows it, how long it needs for its backlog, and what its limit allows."""
    found, limited = query.catch_up, _is_limited(share)
    if found is None:
        catch_up, allowed = "unknown", "unknown"
    else:
        catch_up = seconds(found.seconds) if math.isfinite(found.seconds) else "cannot catch up"
        allowed = f"{found.read_per_second:,.0f} per s" if limited else "unknown"
    return (
        "unknown" if share is None else f"{share:.0%}",
        _count(None if found is None else found.backlog),
        _count(None if found is None else found.read_per_second),
        _count(None if found is None else found.added_per_second),
        catch_up,
        allowed if limited is not False else "not limited",
    )


def _is_limited(share: float | None) -> bool | None:
    """Whether a quota decides how fast a query is, by `limited_share`; one that is slow for another reason is not blamed on it."""
    return None if share is None else share >= LIMITED_SHARE


def tables(application: Application) -> RenderableType:
    """The report for a terminal."""
    parts: list[RenderableType] = [
        Text(shown(application.app) or "(without a name)", style="bold"),
        Text(period(application)),
        Text(headline(application)),
    ]
    for section in sections(application):
        if not section.rows:
            parts.append(Text(f"\n{section.empty}"))
            continue
        drawn = Table(title=f"\n{section.title}", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
        kept = [n for n, each in enumerate(section.heads) if each not in section.page_only]
        for head in (section.heads[n] for n in kept):
            drawn.add_column(
                head.lstrip("#="),
                justify="right" if head.startswith("#") else "left",
                overflow="fold",
                no_wrap=head.startswith(("#", "=")) and " " not in head,
            )
        for row in section.rows[:_MOST_IN_TERMINAL]:
            drawn.add_row(*(_cell(section.heads[n], row[n]) for n in kept))
        if len(section.rows) > _MOST_IN_TERMINAL:
            drawn.caption = f"and {len(section.rows) - _MOST_IN_TERMINAL} more"
        parts.append(drawn)
    parts.extend(Text(f"• {note}", style="dim") for note in notes(application))
    return Group(*parts)


def _cell(head: str, text: str) -> Text:
    """Never markup; the causes of a stage are below each other."""
    return Text(text.replace(", ", "\n") if head.startswith("=") else text)


def period(application: Application) -> str:
    """The id of the application, and when it ran."""
    state = "" if application.finished else ", not ended"
    return f"{shown(application.app_id)}, from {moment(1_000 * application.began)} for {_took(application)}{state}"


def _took(application: Application) -> str:
    return seconds(max(0.0, application.ended - application.began))


def headline(application: Application) -> str:
    """The report in one sentence."""
    snapshot = application.snapshot
    counts = (
        counted(sum(snapshot.failures.values()), "failed attempt"),
        counted(sum(snapshot.retries.values()), "retry"),
        counted(snapshot.stage_retries, "stage retry"),
        counted(snapshot.executors_lost, "lost executor"),
    )
    if application.throttled_ms is None:
        throttled = f"Throttle time unknown: {_unknown_why(application)}"
    else:
        bound = "" if application.throttles_complete else "at least "
        throttled = f"Throttled {bound}{seconds(application.throttled_ms / 1_000)}"
        critical = application.critical_seconds()
        if critical is not None and application.throttled_ms:
            throttled += f" ({seconds(critical)} on the critical path)"
    return f"{throttled}, {', '.join([*counts, *_catching_up(application)])}"


def _catching_up(application: Application) -> Iterator[str]:
    """The queries that a quota keeps behind."""
    left = _MOST_IN_HEADLINE
    for query in application.snapshot.queries:
        found = query.catch_up
        if left and found is not None and found.seconds and _is_limited(application.limited_share(query.name)):
            left -= 1
            name = shown(query.name, 40)
            if math.isfinite(found.seconds):
                yield f"{name} catches up in {seconds(found.seconds)}"
            else:
                yield f"{name} cannot catch up"


def throttled_clients(application: Application) -> Sequence[QueryTotals]:
    """Clients with a throttle time or a refused request, those throttled longest first."""
    found = [row for row in application.throttles if row[1].throttled_ms or row[1].responses or row[1].quota_retries]
    return sorted(found, key=lambda row: row[1].throttled_ms, reverse=True)


def causes(application: Application) -> Sequence[tuple[FailureCause, int, int]]:
    """The causes that occurred, with failed attempts and retries."""
    snapshot = application.snapshot
    rows = [(each, snapshot.failures[each], snapshot.retries[each]) for each in FailureCause]
    return [row for row in rows if row[1] or row[2]]


def affected_stages(application: Application) -> Sequence[StageHistory]:
    """Stages with failures or throttle times, the worst first."""
    hit = [stage for stage in application.stages if stage.is_hit]
    hit.sort(key=lambda stage: (stage.throttled_ms or 0, stage.failed_attempts), reverse=True)
    return hit


def throttled_attempts(application: Application) -> Sequence[FailedAttempt]:
    """Failed attempts with a throttle time, those throttled longest first."""
    found = [each for each in application.attempts if each.throttled_ms]
    found.sort(key=lambda attempt: attempt.throttled_ms or 0, reverse=True)
    return found


def _unknown_why(application: Application) -> str:
    """Why no throttle time is known, and what to do."""
    if not application.with_summary:
        if application.summary_file:
            advice = f"give --summary {shown(application.summary_file)}"
        elif application.listener:
            advice = "give --summary"
        else:
            advice = "it does not show that the listener was attached: see docs/spark.md"
        return f"no failed attempt noted any, and the log has none of successful attempts ({advice})"
    if not application.throttles:
        return "no Kafka client of the job reported to the listener (docs/spark-tasks.md)"
    lacking = [_UNSEEN[kind] for kind in application.unseen_clients]
    if application.unknown_attempts:
        lacking.append(f"{counted(application.unknown_attempts, 'attempt')} ended without a report")
    return f"the clients that reported were not throttled, but {' and '.join(lacking)}"


def _duration(ms: int | None) -> str:
    return "unknown" if ms is None else seconds(ms / 1_000)


def _at_least(stage: StageHistory) -> str:
    """Its throttle time, marked as a lower bound if it had attempts without a note, as successful ones are."""
    bound = "≥ " if stage.throttled_ms is not None and stage.slots.other else ""
    return f"{bound}{_duration(stage.throttled_ms)}"


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def notes(application: Application) -> Sequence[str]:
    """What follows from these figures and what limits them, a sentence each."""
    snapshot, found = application.snapshot, []
    if application.throttled_ms and application.least_seconds is not None:
        found.append(
            f"Without the quota the application would have taken {seconds(application.least_seconds)} or more, not {_took(application)}."
        )
    if not application.with_summary:
        found.append(
            "Throttle times are those that failed attempts noted: an event log has none of successful attempts. "
            "The listener's summary (spark.quotascope.summaryFile) has all of them; give it with --summary."
        )
    found += [f"{_UNSEEN[kind]}." for kind in application.unseen_clients]
    if not application.finished:
        found.append("The application has not ended, or was killed: the log ends where it was last written.")
    if application.compacted:
        found.append("The History server has compacted this log: tasks of jobs that had ended are missing.")
    if application.unknown_attempts:
        found.append(
            f"{counted(application.unknown_attempts, 'attempt')} ended without a report of the throttle times of their Kafka clients."
        )
    if application.missing_files:
        found.append(
            f"The log is incomplete: its folder lacks {counted(application.missing_files, 'file')} (events_N_…)."
        )
    if lines := snapshot.lost_events - application.missing_files:
        found.append(f"{counted(lines, 'line')} of the log could not be read.")
    if application.left_out:
        found.append(f"{application.left_out} stages, attempts or batches are counted but not listed one by one.")
    return found


def document(application: Application) -> str:
    """JSON; times are seconds since 1970, durations seconds, null where they are unknown. Names are as they are."""
    snapshot = application.snapshot
    values: dict[str, Any] = {
        "app": application.app,
        "app_id": application.app_id,
        "began": application.began,
        "ended": application.ended,
        "finished": application.finished,
        "throttled_seconds": _in_seconds(application.throttled_ms),
        "throttled_complete": application.throttles_complete,
        "critical_path_throttled_seconds": application.critical_seconds(),
        "least_seconds_without_quota": application.least_seconds,
        "seen_clients": application.seen_clients,
        "unseen_clients": application.unseen_clients,
        "throttles": [
            {
                "query": query,
                **totals.client._asdict(),
                "throttled_seconds": totals.throttled_ms / 1_000,
                "responses": totals.responses,
                "longest_seconds": totals.longest_ms / 1_000,
                "quota_retries": totals.quota_retries,
            }
            for query, totals in throttled_clients(application)
        ],
        "causes": [
            {"cause": cause.value, "failed_attempts": failed, "retries": retried}
            for cause, failed, retried in causes(application)
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
                "failures": {each.value: n for each, n in stage.failures.items()},
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
                **_limit_values(query, application.limited_share(query.name)),
            }
            for query in snapshot.queries
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
    return json.dumps(values, indent=2)


def _limit_values(query: QuerySnapshot, share: float | None) -> dict[str, Any]:
    """As `_limit_cells`; null where it is unknown, and where there is no such time or no limit."""
    found, limited = query.catch_up, _is_limited(share)
    can_catch_up = None if found is None else math.isfinite(found.seconds)
    return {
        "throttled_share": share,
        "limited_by_quota": limited,
        "backlog_offsets": None if found is None else found.backlog,
        "read_offsets_per_second": None if found is None else found.read_per_second,
        "added_offsets_per_second": None if found is None else found.added_per_second,
        "can_catch_up": can_catch_up,
        "catch_up_seconds": found.seconds if found and can_catch_up else None,
        "max_offsets_per_trigger_second": found.read_per_second if found and limited else None,
    }  # fmt: skip


def _in_seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000
