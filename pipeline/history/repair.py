"""
Repair of a folder that has lost files or commits.

The loss is reported, and the remaining rows can be read and appended to again.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from quotascope.pages.words import counted

from ..errors import NoHistory, NoTable
from ..names import NAMES
from ..request_log.schema import REQUESTS
from ..table import Map, Table, retried
from ..table import kept as commits
from ..table.storage import Storage
from ..table.table import Lost, can_follow, remade
from .store import MADE


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A loss in a table, or a table that is made again."""

    table: str
    """Name of the table in the folder."""
    what: str
    """Text for people."""
    rows: int | None = 0
    """
    Number of lost rows, None if it is unknown.

    Rows of requests and of the quarantine come back when their logs are read again.
    """
    first_ms: int | None = None
    """Time of the first of these rows, ms since 1970; None if it is unknown."""
    last_ms: int | None = None
    """Time of the last of these rows."""


def repair(folder: str, *, write: bool, map_items: Map = map) -> Iterator[Finding]:
    """
    Yield the losses in the tables of a folder, and make the tables readable without the lost rows.

    Lost commits are restored from their copies. Lost files are taken out of the tables that are read from logs; tables
    that are made of other tables are made again. Logs that are read again then add the lost rows once.

    Args:
        folder: folder of the history.
        write: whether to change the tables; otherwise losses are only found, and those behind a damaged log stay
            unknown.
        map_items: maps the work over files: `map`, or that of an engine.

    Raises:
        NoHistory: the folder has no table.
        TableError: a table could not be read though no damage is known, or could not be written to.

    """
    tables: dict[str, Table] = {}
    changed: set[str] = set()
    for name in NAMES:
        storage = Storage(f"{folder.rstrip('/')}/{name}")
        restored = list(commits.restore(storage, write=write))
        for commit in restored:
            if not commit.whole:
                changed.add(name)
            yield _of_commit(name, commit)
        if write or not restored:
            with suppress(NoTable):
                tables[name] = Table.open(storage.uri, _schema_of(name))
    if not tables and not changed:
        raise NoHistory(folder)
    for name, table in tables.items():
        finding: Finding | None = None
        if name not in MADE:
            finding = _take_out(name, table, map_items, write=write)
        elif source := tables.get(MADE[name].source):
            finding = _make_again(name, table, source, changed, map_items, write=write)
        if finding:
            changed.add(name)
            yield finding


def _schema_of(name: str) -> pa.Schema | None:
    """Return the columns that a table has in this release, None unless it is the table of requests or made of it."""
    if name == "requests":
        return REQUESTS
    return MADE[name].schema if name in MADE else None


def _of_commit(name: str, commit: commits.Restored) -> Finding:
    """Return the loss of a commit; a table that is made of others loses no rows, since it is made again."""
    if commit.whole:
        return Finding(table=name, what=f"{commit.path} is lost or damaged, and put back as it was")
    rows = 0 if name in MADE else None
    return Finding(table=name, what=f"{commit.path} is lost, and with it what it added", rows=rows)


def _take_out(name: str, table: Table, map_items: Map, *, write: bool) -> Finding | None:
    """Take the lost files out of a table that is read from logs."""

    def attempt() -> list[Lost]:
        """Look for lost files, and take them out; repeated if another process commits first."""
        losses = table.lost(map_items)
        if losses and write:
            table.take_out([entry.file for entry in losses])
        return losses

    losses = retried(attempt)
    return _of_files(name, table, losses, f"{_summary(losses)}; taken out") if losses else None


def _make_again(
    name: str, table: Table, source: Table, changed: AbstractSet[str], map_items: Map, *, write: bool
) -> Finding | None:
    """Make a table again that lost files, cannot follow its source any more, or whose source changed."""
    recipe = MADE[name]
    losses = table.lost(map_items)
    if not (losses or changed & {name, recipe.source} or not can_follow(source, table)):
        return None
    reason = _summary(losses) if losses else f"{recipe.source} changed"
    files = [entry.file for entry in losses]
    rows = f", {remade(source, recipe.follower(table), files, map_items):,} rows" if write else ""
    first_day = source.first_kept_day
    for_good = [entry for entry in losses if first_day is not None and entry.file.day < first_day]
    if for_good:
        rows += f"; rows of days that {recipe.source} has dropped are lost for good"
    return _of_files(name, table, for_good, f"{reason}; made again from {recipe.source}{rows}")


def _summary(lost: Sequence[Lost]) -> str:
    """Return the number of lost files in words, with the first of them as an example."""
    return f"{counted(len(lost), 'file')} lost ({lost[0].file.path}: {lost[0].why})"


def _of_files(name: str, table: Table, lost: Sequence[Lost], what: str) -> Finding:
    """Return the finding about lost files: their rows, and the first and last time in them."""
    files = [entry.file for entry in lost]
    times = [
        time for file in files for time in (file.first_ms, file.last_ms) if time is not None and table.layout.day_of
    ]
    return Finding(
        table=name,
        what=what,
        rows=sum(file.rows for file in files),
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
    )
