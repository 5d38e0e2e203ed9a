"""Looks after the tables in a folder: what there is, small files, old days, what killed writers left."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import NoTable
from ..table import Run, Table, run_here
from .rollup import WIDTHS

NAMES: Final = ("requests", "quarantine", "history", *WIDTHS)
"""The tables of a folder, in the order in which they are made of each other."""
DETAIL: Final = ("requests", "history", "seconds")
"""Those that a replay reads and draws, and that go together when days are dropped: about one row a request each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a table holds."""

    name: str
    """Which of the folder's tables."""
    rows: int
    """Its rows."""
    size: int
    """Bytes of its files."""
    files: int
    """How many there are."""
    smallest: int
    """How many there would be after a compaction."""
    first_day: dt.date | None
    """UTC day of its oldest rows; None for a table without days or rows."""
    last_day: dt.date | None
    """UTC day of its newest rows."""


def tables_of(
    folder: str, options: Mapping[str, str] | None = None
) -> dict[str, Table]:
    """
    Return the tables that a folder has, by name.

    Raises:
        NoTable: it has none.
        UnreadableTable: the log of one is damaged.

    """
    found: dict[str, Table] = {}
    for name in NAMES:
        try:
            found[name] = Table.open(f"{folder.rstrip('/')}/{name}", options)
        except NoTable:
            continue
    if not found:
        raise NoTable(folder)
    return found


def state_of(name: str, table: Table) -> State:
    """Return what a table holds, from its log alone."""
    files = table.files()
    days = {file.day for file in files} if table.layout.day_of else set[int]()
    return State(
        name=name,
        rows=sum(file.rows for file in files),
        size=sum(file.size for file in files),
        files=len(files),
        smallest=len({(file.day, file.bucket) for file in files}),
        first_day=_date(min(days, default=None)),
        last_day=_date(max(days, default=None)),
    )


def compact(tables: Iterable[Table], run: Run = run_here) -> int:
    """Merge the small files of tables; return how many were replaced. Raises what `Table.compact` raises."""
    return sum(table.compact(run=run) for table in tables)


def drop_before(tables: Iterable[Table], day: dt.date) -> int:
    """Take the days before this one (UTC) out of tables; return how many rows went. Raises what `Table.drop_before` raises."""
    return sum(table.drop_before(day) for table in tables)


def clean(tables: Iterable[Table], older_than_hours: int) -> int:
    """Delete files that no table lists any more, or never did; return how many went."""
    return sum(len(table.clean(older_than_hours)) for table in tables)


def _date(day: int | None) -> dt.date | None:
    return None if day is None else dt.date(1970, 1, 1) + dt.timedelta(days=day)
