"""The report in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.pages.words import counted, moment, seconds, shown

from .account import Account
from .totals import (
    causes,
    duration,
    last_batch,
    longest_waits,
    missing,
    no_waits,
    stages_hit,
    throttled,
    waits,
)

_MOST = 15


def tables(account: Account) -> RenderableType:
    """All of it; names of strangers are shown as text, never as markup."""
    return Group(*_sections(account))


def _sections(account: Account) -> Iterator[RenderableType]:
    yield from _head(account)
    yield _waits(account)
    yield _causes(account)
    if any(stage.is_hit for stage in account.stages):
        yield _stages(account)
    if account.snapshot.queries:
        yield _queries(account)
    if any(attempt.throttled_ms for attempt in account.attempts):
        yield _longest(account)
    for sentence in missing(account):
        yield Text(f"• {sentence}", style="dim")


def _head(account: Account) -> Iterator[Text]:
    state = "" if account.finished else ", not ended"
    took = seconds(max(0.0, account.ended - account.began))
    yield Text(shown(account.app) or "(without a name)", style="bold")
    yield Text(
        f"{shown(account.app_id)}, from {moment(1_000 * account.began)} for {took}{state}"
    )
    yield Text(headline(account))


def headline(account: Account) -> str:
    """The report in one sentence."""
    snapshot = account.snapshot
    counts = (
        counted(sum(snapshot.failures.values()), "failed attempt"),
        counted(sum(snapshot.retries.values()), "retry"),
        counted(snapshot.stage_retries, "stage retry"),
        counted(snapshot.executors_lost, "lost executor"),
    )
    return f"{throttled(account)}, {', '.join(counts)}"


def _waits(account: Account) -> RenderableType:
    rows = waits(account)
    if not rows:
        return Text(f"\n{no_waits(account)}")
    table = _table("Throttled time by query and client")
    for name in ("query", "user", "client id", "side"):
        table.add_column(name, overflow="fold")
    for name in ("throttled", "responses", "longest", "quota retries"):
        table.add_column(name, justify="right", no_wrap=name != "quota retries")
    for query, totals in rows[:_MOST]:
        table.add_row(
            *map(_plain, (query, *totals.client)),
            seconds(totals.throttled_ms / 1_000),
            str(totals.responses),
            seconds(totals.longest_ms / 1_000),
            str(totals.quota_retries),
        )
    return _with_rest(table, len(rows))


def _causes(account: Account) -> RenderableType:
    rows = causes(account)
    if not rows:
        return Text("\nNo attempt of a task failed.")
    table = _table("Failures and retries by cause")
    table.add_column("cause")
    for name in ("failed attempts", "retries"):
        table.add_column(name, justify="right")
    for cause, failures, retries in rows:
        table.add_row(cause.value, str(failures), str(retries))
    return table


def _stages(account: Account) -> RenderableType:
    table = _table("Stages hit")
    for name in ("stage", "name", "query"):
        table.add_column(name, overflow="fold")
    table.add_column("failed attempts", no_wrap=True)
    table.add_column("throttled", justify="right", no_wrap=True)
    for stage in stages_hit(account, _MOST):
        told = "\n".join(f"{count} {cause}" for cause, count in stage.failures.items())
        table.add_row(
            f"{stage.stage}.{stage.attempt}",
            _plain(stage.name),
            _plain(stage.query),
            told or "the stage itself",
            duration(stage.throttled_ms),
        )
    return _with_rest(table, sum(stage.is_hit for stage in account.stages))


def _queries(account: Account) -> RenderableType:
    table = _table("Streaming queries")
    table.add_column("query", overflow="fold")
    for name in ("restarts", "last batch", "offsets behind, worst", "average"):
        table.add_column(name, justify="right")
    for query in account.snapshot.queries[:_MOST]:
        table.add_row(
            _plain(query.name),
            str(query.restarts),
            last_batch(query),
            _count(query.max_offsets_behind),
            _count(query.avg_offsets_behind),
        )
    return _with_rest(table, len(account.snapshot.queries))


def _longest(account: Account) -> RenderableType:
    table = _table("Longest waits of failed attempts")
    table.add_column("stage", no_wrap=True)
    table.add_column("partition, attempt")
    table.add_column("cause", no_wrap=True)
    table.add_column("query", overflow="fold")
    for name in ("told to wait", "took"):
        table.add_column(name, justify="right")
    for attempt in longest_waits(account, _MOST):
        table.add_row(
            f"{attempt.stage}.{attempt.stage_attempt}",
            f"{attempt.partition}, {attempt.number}",
            attempt.cause.value,
            _plain(attempt.query),
            duration(attempt.throttled_ms),
            seconds(attempt.ended - attempt.began),
        )
    return table


def _table(title: str) -> Table:
    return Table(
        title=f"\n{title}", title_justify="left", title_style="bold", box=SIMPLE_HEAD
    )


def _plain(text: str) -> Text:
    return Text(shown(text))


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _with_rest(table: Table, rows: int) -> Table:
    if rows > _MOST:
        table.caption = f"and {rows - _MOST} more"
    return table
