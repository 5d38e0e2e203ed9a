"""`quotascope history`: looks after the tables of usage history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import outputs
from .options import EngineName, Folder, Json, check_extra

if TYPE_CHECKING:
    from quotascope.pipeline.table import Table

history = typer.Typer(
    name="history",
    help="Usage history on disk: what there is, merging small files, dropping old days.",
    no_args_is_help=True,
)
_MOST_DAYS = 100_000
EXAMPLES = """
Examples:

quotascope history status usage --json

quotascope history compact usage

quotascope history drop usage --keep-days 90

quotascope history drop usage --before 2026-09-01 --table seconds

quotascope history clean usage --older-than 48
"""

Names = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="One of requests, quarantine, history, seconds, topics, episodes; may be repeated; else requests, history, seconds and topics.",
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
        counts = f"{state['rows']:>15,}{state['bytes'] / 1e6:>10,.1f}{state['files']:>8,}{state['files_after_compaction']:>8,}"
        typer.echo(f"{state['table']:12}{counts}  {days}")


@history.command(epilog=EXAMPLES)
def compact(folder: Folder, *, engine: EngineName = "auto") -> None:
    """Merge the files of each day and bucket into one, so that there are fewer to open."""
    check_extra()
    from quotascope.pipeline.history import store
    from quotascope.pipeline.runs.engine import MOST_LOCAL_ROWS, Engine, chosen, run_of

    tables = store.tables_of(folder)
    rows = sum(file.rows for table in tables.values() for file in table.files())
    run = run_of(chosen(Engine(engine), rows, MOST_LOCAL_ROWS))
    with outputs.bar("merging files"):
        merged = sum(table.compact(run=run) for table in tables.values())
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
    first = before.date() if before else today - timedelta(days=(keep_days or 1) - 1)
    if first > today:
        raise typer.BadParameter("must not be in the future: logs would not be read until then", param_hint="--before")
    names = table or store.DETAIL
    unknown = [name for name in names if name not in store.NAMES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(store.NAMES)}", param_hint="--table")
    tables = store.tables_of(folder)
    chosen = [tables[name] for name in names if name in tables]
    gone = sum(each.drop_before(first) for each in chosen)
    typer.echo(f"{gone:,} rows before {first} dropped; `quotascope history clean` frees their space")


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
            help="Delete only files older than this, which must be longer than any run takes.",
        ),
    ] = 24,
) -> None:
    """Delete files that no table lists: merged and dropped ones, and what killed runs left."""
    check_extra()
    from quotascope.pipeline.history import store

    tables = store.tables_of(folder).values()
    with outputs.bar("looking for files"):
        gone = sum(len(table.clean(older_than)) for table in tables)
    typer.echo(f"{gone:,} files deleted")


def _state_of(name: str, table: Table) -> dict[str, Any]:
    """What a table holds as a document, from its log alone; the UTC days of its oldest and newest rows are None for a table without days or rows."""
    from quotascope.pipeline.table.storage import EPOCH

    files = table.files()
    days = {file.day for file in files} if table.layout.day_of else set[int]()
    first, last = [EPOCH + timedelta(days=day) for day in (min(days), max(days))] if days else (None, None)
    return {
        "table": name,
        "rows": sum(file.rows for file in files),
        "bytes": sum(file.size for file in files),
        "files": len(files),
        "files_after_compaction": len({(file.day, file.bucket) for file in files}),
        "first_day": first,
        "last_day": last,
    }
