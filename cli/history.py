"""`quotascope history`: maintenance of the tables of usage history."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quotascope.pipeline.names import DETAIL, NAMES

from . import outputs
from .app import App
from .options import Apply, EngineName, Folder, Json, check_extra

if TYPE_CHECKING:
    from quotascope.pipeline.history.repair import Finding
    from quotascope.pipeline.table import Table

history = App("history", "Usage history on disk: what there is, merging small files, dropping old days, repair.")
_MOST_DAYS = 100_000
EXAMPLES = """
Examples:

quotascope history status usage --json

quotascope history compact usage

quotascope history drop usage --keep-days 90

quotascope history drop usage --before 2026-09-01 --table seconds

quotascope history clean usage --older-than 48

quotascope history repair usage --apply
"""

Names = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help=f"One of {', '.join(NAMES)}; may be repeated.",
        show_default=", ".join(DETAIL),
    ),
]


@history.command(epilog=EXAMPLES)
def status(folder: Folder, *, json: Json = False) -> None:
    """Show rows, size, files and days of each table, from the tables' logs alone."""
    check_extra()
    from quotascope.pipeline.history import store

    states = [_state_of(name, table) for name, table in store.tables_of(folder).items()]
    if json:
        outputs.put_json(states)
        return
    typer.echo(f"{'table':12}{'rows':>15}{'MB':>10}{'files':>8}{'merged':>8}  days")
    for state in states:
        days = f"{state['first_day']} to {state['last_day']}" if state["first_day"] else "-"
        sizes = f"{state['rows']:>15,}{state['bytes'] / 1e6:>10,.1f}"
        files = f"{state['files']:>8,}{state['files_after_compaction']:>8,}"
        typer.echo(f"{state['table']:12}{sizes}{files}  {days}")


@history.command(epilog=EXAMPLES)
def compact(folder: Folder, *, engine: EngineName = "auto") -> None:
    """Merge the files of each day and shard into one, so that there are fewer to open."""
    check_extra()
    from quotascope.pipeline.history import store
    from quotascope.pipeline.runs.engine import MOST_LOCAL_ROWS, EngineChoice, chosen, engine_of

    tables = store.tables_of(folder)
    rows = sum(file.rows for table in tables.values() for file in table.files())
    workers = engine_of(chosen(EngineChoice(engine), rows, MOST_LOCAL_ROWS))
    with outputs.bar("merging files"):
        merged = sum(table.compact(map_items=workers.map) for table in tables.values())
    typer.echo(f"{merged:,} files merged")


@history.command(epilog=EXAMPLES)
def drop(
    folder: Folder,
    *,
    before: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="First day (UTC) to keep.")] = None,
    keep_days: Annotated[
        int | None, typer.Option(min=1, max=_MOST_DAYS, metavar="DAYS", help="Number of days to keep, today included.")
    ] = None,
    table: Names = None,
) -> None:
    """Drop old days of tables. What was dropped is not read again from the same logs."""
    check_extra()
    from quotascope.pipeline.history import store

    if (before is None) == (keep_days is None):
        raise typer.BadParameter("give one of --before and --keep-days")
    today = datetime.now(UTC).date()
    first_day = before.date() if before else today - timedelta(days=(keep_days or 1) - 1)
    if first_day > today:
        raise typer.BadParameter("must not be in the future: logs would not be read until then", param_hint="--before")
    names = table or DETAIL
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(NAMES)}", param_hint="--table")
    tables = store.tables_of(folder)
    chosen = [tables[name] for name in names if name in tables]
    dropped = sum(history_table.drop_before(first_day) for history_table in chosen)
    typer.echo(f"{dropped:,} rows before {first_day} dropped; `quotascope history clean` frees their space")


@history.command(epilog=EXAMPLES)
def clean(
    folder: Folder,
    *,
    older_than: Annotated[
        int,
        typer.Option(
            min=0,
            max=_MOST_DAYS * 24,
            metavar="HOURS",
            help="Delete only files older than this, which must be longer than any command reads the history.",
        ),
    ] = 24,
    force: Annotated[
        bool, typer.Option("--force", help="Allow 0 hours: commands that read the history now may fail.")
    ] = False,
) -> None:
    """
    Delete files that no table lists: merged and dropped ones, and what killed runs left.

    What a running command writes stays.
    """
    check_extra()
    from quotascope.pages.words import counted
    from quotascope.pipeline.history import store

    if older_than < 1 and not force:
        raise typer.BadParameter(
            "commands that read the history now would lose their files: give at least 1 hour, or --force if there "
            "are none",
            param_hint="--older-than",
        )
    with outputs.bar("looking for files"):
        cleaned = store.clean(folder, older_than).values()
    typer.echo(f"{sum(len(cleaning.deleted) for cleaning in cleaned):,} files deleted")
    if remaining := sum(len(cleaning.of_writers) for cleaning in cleaned):
        writers = {
            f"{writer.about} since {_time_of(writer.began_ns)}" for cleaning in cleaned for writer in cleaning.writers
        }
        typer.echo(f"{counted(remaining, 'file')} left, as commands are writing: {', '.join(sorted(writers))}")


@history.command(epilog=EXAMPLES)
def repair(
    folder: Folder,
    *,
    apply: Apply = False,
    engine: EngineName = "auto",
    json: Json = False,
) -> None:
    """Read all of a history, show what is lost or damaged, and make the tables whole without it."""
    check_extra()
    from quotascope.pipeline.history import store
    from quotascope.pipeline.history.repair import repair as repaired
    from quotascope.pipeline.runs.engine import EngineChoice, engine_of

    workers = engine_of(EngineChoice.LOCAL if engine == "auto" else EngineChoice(engine), "verification of files")
    with outputs.bar("reading all files"):
        findings = list(repaired(folder, write=apply, map_items=workers.map))
    if json:
        outputs.put_json([{**asdict(finding), "applied": apply} for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{finding.table}: {finding.what}{_lost_rows(finding)}")
        if not findings:
            files = sum(len(table.files()) for table in store.tables_of(folder).values())
            typer.echo(f"nothing is lost in {files:,} files")
        elif apply and any(finding.rows != 0 for finding in findings):
            typer.echo("Ingest the logs of that time again: what is still there is not added twice.")
        elif not apply:
            typer.echo("Nothing was changed: --apply does it.")
    if findings and not apply:
        raise typer.Exit(1)


def _lost_rows(finding: Finding) -> str:
    """Return the number of lost rows, and their times."""
    if finding.rows == 0:
        return ""
    if finding.rows is None or finding.first_ms is None or finding.last_ms is None:
        rows = "an unknown number of rows" if finding.rows is None else f"{finding.rows:,} rows"
        return f"; {rows} lost"
    times = " to ".join(_time_of(time * 10**6) for time in (finding.first_ms, finding.last_ms))
    return f"; {finding.rows:,} rows lost, from {times}"


def _time_of(time_ns: int) -> str:
    """Return a time in UTC, to the second."""
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _state_of(name: str, table: Table) -> dict[str, Any]:
    """
    Return the rows, size, files and days of a table as a document, from its log alone.

    The UTC days of its oldest and newest rows are None for a table without days or rows.
    """
    from quotascope.pipeline.table.storage import EPOCH

    files = table.files()
    days = {file.day for file in files} if table.layout.day_of else set[int]()
    first_day = EPOCH + timedelta(days=min(days)) if days else None
    last_day = EPOCH + timedelta(days=max(days)) if days else None
    return {
        "table": name,
        "rows": sum(file.rows for file in files),
        "bytes": sum(file.size for file in files),
        "files": len(files),
        "files_after_compaction": len({(file.day, file.shard) for file in files}),
        "first_day": first_day,
        "last_day": last_day,
    }
