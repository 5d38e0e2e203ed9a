"""Effect of quotas that are not set: the replay of a history on disk, and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, tzinfo
from functools import partial
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics.kafka.entities import LEVELS_LEGEND, spelled
from quotascope.pages.baseline import ThrottleChange
from quotascope.pages.charts import ChartBar, bar_chart
from quotascope.pages.report import Block, Cell, Chart, Lines, Mark, Report, Rows, csv_of
from quotascope.pages.words import counted, period, shown, spaced
from quotascope.quotas.candidates import Candidate

from ..blame.benefit import benefit_of
from ..engine import Engine, Local
from ..engine.base import Answer
from ..errors import TableError
from ..history import History
from ..losses import losses_of, may_lack
from ..rates import GroupUsage, LimitGroup, LoggedThrottle, rate, span_ms, usages
from ..releases import Followed, followed_by
from ..replay import RESULTS, Mode, ReplaySettings, replay
from ..replay.delays import DelayedRequests
from ..replay.frame import NEEDED
from ..replay.plan import CandidateRules
from ..replay.results import CLOSED_LOOP_ONLY, replay_with_delays
from ..request_log.schema import REQUESTS
from ..summary import (
    COMPARED,
    FIGURES,
    OF_CLIENT,
    THROTTLED_FOR,
    CandidateSummary,
    Change,
    Comparison,
    Figure,
    ReplaySummary,
    Row,
    at_least,
    count_text,
    group_of,
    largest,
    rule_of,
    summary_of,
    totals_of,
)
from ..table import File, Progress, Table, following
from ..table.users import whole_users
from ..usage_charts import CHART_NOTES, CHARTS, same_for_all, usage_chart
from .engine import EngineChoice, engine_for
from .shadow import decided_by

PAGE_NOTES: Final = (
    "Each broker enforces limits separately; a chart shows the broker with the highest peak.",
    *CHART_NOTES,
    (
        "A client's share is the time in which it was throttled, as a part of the time in which it "
        "was active or throttled."
    ),
)
"""Explanation of charts and of the tables that only a page shows."""
_COLUMNS: Final = 4
"""Number of candidates with a column each, which 80 characters have room for."""
_COLUMNS_ON_PAGE: Final = 8
_LISTED: Final = 20
"""Number of candidates that are listed by name."""
_ROW_HEADS: Final = (
    *("entity", "=quota", "candidate", "#limit", "rule", "#requests", "#throttled", "#throttled for", "#share"),
    *("#longest", "#delayed", "#refused", "#recovery"),
)
_CHANGE_HEADS: Final = ("entity", "=quota")
_RULE_HEADS: Final = ("rule", "=quota", "candidate", "#limit")
_NOT_OF_RULES: Final = ("worst_share", "wait_saved")
"""Keys of figures that rules do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Answer of a replay, and the usage that its page draws."""

    results: pa.Table
    """Rows of `quotascope.pipeline.replay.RESULTS`."""
    summary: ReplaySummary
    usages: Mapping[LimitGroup, GroupUsage]
    """Usage of the groups that the page draws."""


def what_if(  # noqa: PLR0913 - most by name
    folder: str,
    candidates: Sequence[Candidate],
    mode: Mode,
    *,
    engine: EngineChoice = EngineChoice.AUTO,
    zone: tzinfo = UTC,
    progress: Progress | None = None,
    kafka: Followed | None = None,
    wait_saved: bool = False,
    threads: int | None = None,
) -> WhatIf:
    """
    Replay a history under candidates.

    Args:
        folder: folder of the history, as `quotascope ingest` has made it.
        candidates: quotas to try, with different names.
        mode: whether throttled clients send later.
        engine: engine that does the work.
        zone: time zone of the charts.
        progress: called with the amount of done work, and of all.
        kafka: release that throttle times follow; by default the one that the logs name, else the newest.
        wait_saved: whether to simulate the queues of the brokers' handler threads, too, and so the time that candidates
            save other clients. It takes longer than the replay.
        threads: handler threads of each broker (`num.io.threads`) for that; by default estimated from the log.

    Raises:
        NoHistory: the folder has no history.
        EmptyHistory: the history is empty.

    """
    history = History.open(folder)
    kafka = followed_by(folder, history.detail, kafka or Followed())
    workers = engine_for(engine, history.detail, "replay of shards")
    settings = ReplaySettings(release=kafka.release, releases=kafka.by_broker)
    benefit, delayed = None, None
    if wait_saved and isinstance(workers, Local) and _is_of_one_day(folder, history):
        work = partial(replay_with_delays, candidates=tuple(candidates), mode=mode, settings=settings)
        parts = list(_by_users(history.detail, candidates, workers, work, progress))
        results = pa.concat_tables([RESULTS.empty_table(), *(part for part, _ in parts)])
        delayed = _all_delayed(part for _, part in parts)
    else:
        results = replayed(history.detail, candidates, mode, workers, progress, settings)
    if wait_saved:
        benefit = benefit_of(folder, candidates, mode, workers.map, threads=threads, settings=settings, delayed=delayed)
    names = [candidate.name for candidate in candidates]
    summary = summary_of(
        results,
        names,
        folder,
        span_ms(history),
        mode,
        kafka,
        benefit=benefit,
        losses=losses_of(folder),
        logged=LoggedThrottle.of(history),
    )
    return _drawn(history, results, summary, zone)


def what_was_decided(folder: str, candidates: Sequence[Candidate], *, zone: tzinfo = UTC) -> WhatIf:
    """
    Return the decisions of `shadow stream` under candidates, in the form of a replay in open loop, without waits.

    Raises:
        NoHistory: the folder has no history.
        EmptyHistory: the history is empty.
        PipelineError: the stream has decided nothing under these candidates, or its table cannot be read.

    """
    decided, history = decided_by(folder, candidates), History.open(folder)
    names = [candidate.name for candidate in candidates]
    summary = summary_of(
        decided.results,
        names,
        folder,
        span_ms(history),
        Mode.OPEN_LOOP,
        decided.kafka,
        losses=losses_of(folder),
        logged=LoggedThrottle.of(history),
    )
    return _drawn(history, decided.results, summary, zone)


def _drawn(history: History, results: pa.Table, summary: ReplaySummary, zone: tzinfo) -> WhatIf:
    """Return results with the usage of the groups that a page draws."""
    groups = [entry.group for entry in summary.groups[:CHARTS]]
    return WhatIf(results=results, summary=summary, usages=usages(history, groups, summary.span_ms, zone))


def replayed(
    history: Table,
    candidates: Sequence[Candidate],
    mode: Mode,
    engine: Engine,
    progress: Progress | None = None,
    settings: ReplaySettings | None = None,
) -> pa.Table:
    """
    Return the results (`quotascope.pipeline.replay.RESULTS`) of a replay.

    Shards are replayed one by one, because their users share no limit, unless a candidate has rules for client-ids
    alone.
    """
    work = partial(replay, candidates=tuple(candidates), mode=mode, settings=settings)
    return pa.concat_tables([RESULTS.empty_table(), *_by_users(history, candidates, engine, work, progress)])


def _by_users(
    history: Table,
    candidates: Sequence[Candidate],
    engine: Engine,
    work: Callable[[pa.Table], Answer],
    progress: Progress | None,
) -> Iterable[Answer]:
    """Return the answers of the work on the rows of users that share no limit with others."""
    rules = CandidateRules(candidates)
    if rules.across_users:
        return engine.grouped(history, NEEDED, rules.key, work, "replay of users that share limits", progress)
    of_shards = partial(_of_shard, history, work)
    return chain.from_iterable(engine.map(of_shards, list(history.shards().values()), progress))


def _all_delayed(parts: Iterable[Sequence[DelayedRequests] | None]) -> list[DelayedRequests] | None:
    """Return the delayed requests of all parts of a history, or None if those of a part are unknown."""
    delayed: list[DelayedRequests] = []
    for part in parts:
        if part is None:
            return None
        delayed += part
    return delayed


def _of_shard(history: Table, work: Callable[[pa.Table], Answer], files: Sequence[File]) -> list[Answer]:
    """Return the answers of the work on the files of a shard."""
    return [work(rows) for rows in whole_users(history, files, NEEDED)]


def _is_of_one_day(folder: str, history: History) -> bool:
    """
    Return whether all requests are in the history, and of one UTC day.

    Then the replay of the history is also that of the day, which begins with unused quotas.
    """
    with suppress(TableError):
        requests = Table.open(f"{folder}/requests", schema=REQUESTS)
        _, new_files = requests.added_since(history.detail.last_epoch(following(requests)))
        days = {file.day for file in (*requests.files(), *history.detail.files())}
        return not new_files and len(days) == 1
    return False


def report(answer: WhatIf, zone: tzinfo = UTC) -> Report:
    """
    Report the differences of the candidates to the first one, their effect, and the throttled clients.

    Args:
        answer: the answer of the replay.
        zone: time zone of all times.

    """
    summary = answer.summary
    return Report(
        title="What if",
        where=f"{period(summary.source, *summary.span_ms, zone)}, {summary.mode_name}",
        headline=(headline(summary),),
        blocks=list(_blocks(summary, answer.usages, zone)),
        notes=summary.notes,
        chart_notes=PAGE_NOTES,
    )


def _blocks(summary: ReplaySummary, usages: Mapping[LimitGroup, GroupUsage], zone: tzinfo) -> Iterator[Block]:
    """Yield the names of the candidates, their differences, their effect, and the details behind it."""
    names = [
        f"{number} {shown(candidate.name)}"
        for number, candidate in zip(_numbers(summary), summary.candidates, strict=True)
    ]
    omitted_names = len(names) - _LISTED
    yield Lines(
        lines=(*names[:_LISTED], *([f"and {omitted_names:,} more: --json has all"] if omitted_names > 0 else ()))
    )
    yield from _differences(summary, names)
    worst = "; ".join(
        f"{number} {candidate.worst}"
        for number, candidate in zip(_numbers(summary), summary.candidates[:_COLUMNS_ON_PAGE], strict=False)
        if candidate.worst
    )
    yield Rows(
        title=f"Candidates, {summary.mode_name}",
        heads=("candidate", *(f"#{figure.head}" for figure in summary.figures)),
        rows=[
            (name, *(figure.cell(candidate) for figure in summary.figures))
            for name, candidate in zip(names, summary.candidates, strict=True)
        ],
        short=_numbers(summary),
        legend=f"worst share: {worst}" if worst else "",
    )
    bars = [
        ChartBar(name=candidate.name, value=candidate.muted_ms, text=THROTTLED_FOR.cell(candidate), color=n)
        for n, candidate in enumerate(summary.candidates)
    ]
    yield Chart(title="Throttled time by candidate", elements=(bar_chart(bars, "Throttled time by candidate"),))
    yield _throttled(summary)
    yield _by_rule(summary)
    yield Rows(
        title="Throttled clients",
        heads=_ROW_HEADS,
        rows=list(_by_client(summary)),
        empty=headline(summary),
        legend=LEVELS_LEGEND,
        detail=True,
        folded=True,
    )
    groups = [entry for entry in summary.groups[:CHARTS] if entry.group in usages]
    if groups:
        yield Chart(title="Usage against limits", elements=())
    colors = {candidate.name: n for n, candidate in enumerate(summary.candidates)}
    for entry in sorted(groups, key=lambda entry: same_for_all(entry.limits, colors)):
        yield usage_chart(entry.group, entry.limits, usages[entry.group], colors, zone)
    if groups and (omitted_groups := len(summary.groups) - len(groups)):
        line = f"{counted(omitted_groups, 'more group')} with less throttled time or usage: no chart."
        yield Lines(lines=(line,), faint=True, detail=True)


def _numbers(summary: ReplaySummary) -> list[str]:
    """Return the number of each candidate as text, from `#1` on."""
    return [f"#{number}" for number in range(1, len(summary.candidates) + 1)]


def headline(summary: ReplaySummary) -> str:
    """Return a sentence or two about the candidates with the smallest and largest effect, or about a single one."""
    base = summary.candidates[0]
    if not any(candidate.limited for candidate in summary.candidates):
        return "No candidate limits any client of this history."
    if not any(candidate.hit for candidate in summary.candidates):
        unsized = any(candidate.requests_of_unknown_size for candidate in summary.candidates)
        may_lack = any(candidate.incomplete or candidate.held_back_requests for candidate in summary.candidates)
        suffix = " for requests of known size" if unsized else ""
        return (
            "No candidate would have throttled any "
            f"client{suffix}{' by the requests that the log has' if may_lack else ''}."
        )
    if not summary.comparisons:
        return f"{_did(base)}."
    differing = [comparison.candidate for comparison in summary.comparisons if comparison.users]
    if not differing:
        return f"{_did(base)}. No other candidate would have throttled any client differently."
    ends = {
        "Least": min(differing, key=lambda candidate: candidate.muted_ms),
        "Most": max(differing, key=lambda candidate: candidate.muted_ms),
    }
    if ends["Least"] is ends["Most"]:
        ends = {"Then": ends["Least"]}
    sentences = [
        (
            f"{word}: “{shown(candidate.name)}”, {THROTTLED_FOR.cell(candidate)} "
            f"({THROTTLED_FOR.difference_cell(candidate, base)})"
        )
        for word, candidate in ends.items()
    ]
    if same_count := len(summary.comparisons) - len(differing):
        sentences.append(f"As the base: {counted(same_count, 'candidate')}")
    return f"Base: {'. '.join((_did(base), *sentences))}."


def _did(candidate: CandidateSummary) -> str:
    """Return a clause about the clients that a candidate would have throttled, and for how long."""
    at_least_text = "at least " if candidate.requests_of_unknown_size or candidate.held_back_requests else ""
    pairs = f"{at_least_text}{candidate.hit:,} of {candidate.limited:,} limited quotas of clients"
    return (
        f"“{shown(candidate.name)}” would have throttled {pairs} for "
        f"{at_least_text}{THROTTLED_FOR.text(candidate.muted_ms)}"
    )


def _differences(summary: ReplaySummary, names: Sequence[str]) -> Iterator[Block]:
    """Yield each candidate against the base, and the clients that it throttles more or less, by user."""
    if not summary.comparisons:
        return
    base = summary.candidates[0]
    yield Rows(
        title=f"Difference to “{shown(base.name)}”",
        heads=(
            "candidate",
            *(f"#{change.words}" for change in ThrottleChange),
            "#unknown",
            *(f"#{figure.head}" for figure in COMPARED),
        ),
        rows=[
            (
                name,
                *map(count_text, comparison.changes.values()),
                count_text(comparison.unknown),
                *(difference(figure, comparison.candidate, base) for figure in COMPARED),
            )
            for name, comparison in zip(names[1:], summary.comparisons, strict=True)
        ],
        short=_numbers(summary)[1:],
    )
    changed = sorted(
        (comparison for comparison in summary.comparisons if comparison.users),
        key=lambda comparison: largest(comparison.users[0][0]),
    )
    none = () if changed else ("No client is throttled for longer or shorter than under the base.",)
    yield Lines(title="Clients that are throttled more, or less", lines=none, detail=True)
    for comparison in changed[:CHARTS]:
        yield _changes(comparison)
    if (omitted := len(changed) - CHARTS) > 0:
        line = f"{counted(omitted, 'more candidate')} with smaller differences: see CSV or JSON."
        yield Lines(lines=(line,), faint=True, detail=True)


def _changes(comparison: Comparison) -> Rows:
    """
    Return a row for a user with all of its clients, then one for each.

    A user with one client has no row of its own.
    """
    changes = [change for _, clients in comparison.users for change in clients]
    figures = [
        figure for figure in COMPARED if any(figure.difference(change.candidate, change.base) for change in changes)
    ]
    return Rows(
        title=shown(comparison.candidate.name),
        level=3,
        heads=(
            *_CHANGE_HEADS,
            *(head for figure in figures for head in (f"#{figure.head}", "#difference")),
            *("#limit", "rule"),
        ),
        rows=[
            _change(change, figures, is_total=change is user)
            for user, clients in comparison.users
            for change in ((user, *clients) if len(clients) > 1 else clients)
        ],
        detail=True,
    )


def _change(change: Change, figures: Sequence[Figure], *, is_total: bool) -> list[str | Cell]:
    """Return the cells of a change: names, each figure with its difference, limit and rule."""
    cells: list[str | Cell] = [change.name, change.quota or "all"]
    for figure in figures:
        cells += [figure.cell(change.candidate), difference(figure, change.candidate, change.base)]
    cells += change.limit
    return [Cell(cell, Mark.TOTAL) if is_total and isinstance(cell, str) else cell for cell in cells]


def difference(figure: Figure, totals: CandidateSummary, base: CandidateSummary) -> Cell:
    """Return a difference, marked as better or worse; a better bound is not certain, and has no mark."""
    value = figure.difference(totals, base)
    mark = Mark.SAME
    if value > 0:
        mark = Mark.WORSE
    elif value < 0 and not figure.is_bound(totals):
        mark = Mark.BETTER
    return Cell(figure.difference_cell(totals, base), mark)


def _throttled(summary: ReplaySummary) -> Rows:
    """
    Return a row for each throttled client and quota type, with a column for each candidate.

    The rows of a user are below one for all of its clients.
    """
    names = [candidate.name for candidate in summary.candidates[:_COLUMNS_ON_PAGE]]
    by_user: dict[str, list[list[str | Cell]]] = {}
    rows_of: dict[str, dict[str, list[Row]]] = {}
    unlimited = False
    for (user, client_id, quota_type), results in summary.by_client.items():
        if not any(
            row["throttled_requests"] or row["requests_of_unknown_size"] or row["held_back_requests"]
            for row in results.values()
        ):
            continue
        unlimited |= len(results) < len(summary.candidates)
        cells = (THROTTLED_FOR.cell(totals_of([results[name]])) if name in results else "-" for name in names)
        by_user.setdefault(user, []).append([spelled(user, client_id), spaced(quota_type), *cells])
        for name, row in results.items():
            rows_of.setdefault(user, {}).setdefault(name, []).append(row)
    count = sum(map(len, by_user.values()))
    for user, rows in by_user.items():
        if len(rows) > 1:
            totals = (THROTTLED_FOR.cell(totals_of(rows_of[user].get(name, ()))) for name in names)
            rows.insert(0, [Cell(cell, Mark.TOTAL) for cell in (spelled(user, None), "all", *totals)])
    legend = ["-: unlimited under this candidate"] if unlimited else []
    if len(summary.candidates) > _COLUMNS:
        legend.append(f"{counted(count, 'client')}, {counted(len(summary.candidates), 'candidate')}: --json has all")
    columns = [f"#{number}" for number in _numbers(summary)[: len(names)]]
    return Rows(
        title="Throttled for, by user and candidate",
        heads=("entity", "=quota", *columns),
        rows=[row for rows in by_user.values() for row in rows],
        page_only=columns[_COLUMNS:],
        legend="; ".join(legend),
    )


def _by_rule(summary: ReplaySummary) -> Rows:
    """
    Return the effect of each rule on its clients together under each candidate.

    Rules that throttle under no candidate are left out.
    """
    by_rule: dict[tuple[str, str], dict[tuple[str, str], CandidateSummary]] = {}
    for row in summary.rows:
        rule = (rule_of(row), spaced(row["quota_type"]))
        candidate = (row["candidate"], rate(group_of(row).kind, row["limit"]))
        by_rule.setdefault(rule, {}).setdefault(candidate, CandidateSummary(name="")).add(row)
    figures = [figure for figure in summary.figures if figure.key not in _NOT_OF_RULES]
    order = [candidate.name for candidate in summary.candidates]
    rows = [
        (*rule, shown(name), limit, *(figure.cell(totals) for figure in figures))
        for rule, by_candidate in by_rule.items()
        if any(totals.hit for totals in by_candidate.values())
        for (name, limit), totals in sorted(by_candidate.items(), key=lambda item: order.index(item[0][0]))
    ]  # fmt: skip
    heads = (*_RULE_HEADS, *(f"#{figure.head}" for figure in figures))
    return Rows(title="Rules", heads=heads, rows=rows, detail=True, folded=True)


def _by_client(summary: ReplaySummary) -> Iterator[Sequence[str]]:
    """Yield the effect of each candidate on a client, one below the other."""
    for (user, client_id, quota_type), results in summary.by_client.items():
        for row in results.values():
            # requests that may be throttled, too; above 0 if the log may lack some
            may_add = row["requests_of_unknown_size"] + may_lack(row["missing_share"])
            may_add += row["held_back_requests"]
            if not (row["throttled_requests"] or may_add):
                continue
            totals = totals_of([row])
            yield (
                spelled(user, client_id),
                spaced(quota_type),
                shown(row["candidate"]),
                rate(group_of(row).kind, row["limit"]),
                rule_of(row),
                f"{row['requests']:,}",
                at_least(count_text, row["throttled_requests"], may_add),
                *(figure.cell(totals) for figure in FIGURES if figure.key in OF_CLIENT),
            )


def document(answer: WhatIf) -> dict[str, Any]:
    """
    Return the candidates added up, with their difference to the first, and the rows, for programs.

    Times are ms, and figures that the mode does not measure are null. Names are as they are.
    """
    summary = answer.summary
    unknown = () if summary.closed else CLOSED_LOOP_ONLY

    def measured(row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with null for figures that the mode does not measure."""
        return {name: None if name in unknown else value for name, value in row.items()}

    begin, end = summary.span_ms
    base = summary.candidates[0]
    differences = {
        comparison.candidate.name: {
            **{figure.key: figure.difference(comparison.candidate, base) for figure in COMPARED},
            "changes": {
                **{change.value: count for change, count in comparison.changes.items()},
                "unknown": comparison.unknown,
            },
        }
        for comparison in summary.comparisons
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
                    **asdict(candidate),
                    "request_share": candidate.request_share,
                    "difference": differences.get(candidate.name),
                }
            )
            for candidate in summary.candidates
        ],
        "results": list(map(measured, summary.rows)),
        "brokers": summary.benefit.values() if summary.benefit else None,
        "calibration": summary.logged.values(summary.replayed_ms, summary.replayed_request_ms),
        "losses": summary.losses.values(),
        "notes": [*summary.notes, *PAGE_NOTES],
    }


def as_csv(answer: WhatIf) -> str:
    """
    Write the rows of the results, with the share of a client's requests that is missing.

    A figure that the mode does not measure is empty.
    """
    losses, unknown = answer.summary.losses, () if answer.summary.closed else CLOSED_LOOP_ONLY
    records = (
        {
            **{name: _whole(value) for name, value in row.items() if name not in unknown},
            "missing_share": losses.share(row["user"], row["client_id"]),
        }
        for row in answer.results.to_pylist()
    )
    return csv_of((*answer.results.column_names, "missing_share"), records)


def _whole(value: object) -> object:
    """Return a limit without decimals as a whole number, which is shorter by two characters in each row."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
