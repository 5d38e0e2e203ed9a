"""Looking after the tables of a folder."""

import datetime as dt
from pathlib import Path

import pytest
from tests.pipeline.history.requests import START_MS, requests

from quotascope.pipeline.errors import NoTable, UnreadableTable
from quotascope.pipeline.history import History
from quotascope.pipeline.history.upkeep import (
    DETAIL,
    clean,
    compact,
    drop_before,
    state_of,
    tables_of,
)
from quotascope.pipeline.ingest import Tables

DAY_MS = 86_400_000
FIRST = dt.date(2023, 11, 14)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with two days of requests and their history, the second day in two pieces."""
    tables = Tables.create(str(tmp_path))
    history = History.create(str(tmp_path))
    for number, shift in enumerate((0, DAY_MS, DAY_MS + 1_000)):
        change = {"timestamp": START_MS + shift, "completed": START_MS + shift}
        tables.requests.append(f"{number}", requests(change, change))
        history.update(tables.requests)
    return str(tmp_path)


def test_a_folder_is_told_by_its_logs(folder: str) -> None:
    """Rows, files, days and what a compaction would leave are told for each table that is there."""
    states = {name: state_of(name, table) for name, table in tables_of(folder).items()}
    assert list(states) == [
        "requests",
        "quarantine",
        "history",
        "seconds",
        "minutes",
        "hours",
    ]
    history = states["history"]
    assert (history.rows, history.files, history.smallest) == (6, 3, 2)
    assert (history.first_day, history.last_day) == (
        FIRST,
        FIRST + dt.timedelta(days=1),
    )
    assert history.size > 0
    assert states["quarantine"].first_day is None


def test_files_are_merged_dropped_and_deleted(folder: str) -> None:
    """A compaction merges every table's files, retention drops a day of the named ones, and a cleaning deletes what is left of them."""
    tables = tables_of(folder)
    assert compact(tables.values()) == 5 * 2
    detail = [tables[name] for name in DETAIL]
    assert drop_before(detail, FIRST + dt.timedelta(days=1)) == 2 + 2 + 1
    assert state_of("history", tables["history"]).rows == 4
    assert state_of("seconds", tables["seconds"]).first_day != FIRST
    assert state_of("hours", tables["hours"]).first_day == FIRST
    assert clean(tables.values(), 24) == 0
    assert clean(tables.values(), 0) == 5 * 2 + 3
    assert state_of("history", tables["history"]).files == 1


def test_a_folder_without_tables(tmp_path: Path) -> None:
    """A folder that nothing was ingested into is an error that says so; a damaged table is not passed over."""
    with pytest.raises(NoTable, match="ingest a request log"):
        tables_of(str(tmp_path))
    Tables.create(str(tmp_path))
    for commit in (tmp_path / "requests" / "_delta_log").glob("*.json"):
        commit.write_bytes(b"{")
    with pytest.raises(UnreadableTable):
        tables_of(str(tmp_path))
