"""`quotascope history`."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.pipeline.history.requests import START_MS, requests
from tests.pipeline.table.rows import append

from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.table.storage import DAY_MS


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with two requests in two pieces, and their history."""
    tables = IngestTables.create(str(tmp_path))
    history = History.create(str(tmp_path))
    for number in range(2):
        append(tables.requests, f"{number}", requests({}))
        history.update(tables.requests)
    return str(tmp_path)


def test_a_folder_is_looked_after(folder: str, run: Run) -> None:
    """Its tables are shown, merged, shortened and cleaned, and each step says what it did."""
    steps = {
        ("status", folder): "2023-11-14 to 2023-11-14",
        ("status", folder, "--json"): '"first_day": "2023-11-14"',
        ("compact", folder, "--engine", "local"): "6 files merged",
        ("drop", folder, "--before", "2024-01-01", "--table", "seconds"): "2 rows before 2024-01-01 dropped",
        ("drop", folder, "--keep-days", "30"): "4 rows before ",
        ("clean", folder, "--older-than", "0"): "9 files deleted",
    }  # fmt: skip
    for step, output in steps.items():
        code, out, _ = run("history", *step)
        assert code == 0
        assert output in out


def test_what_a_folder_holds_is_known_from_its_logs(folder: str, run: Run) -> None:
    """Rows, files, days and what a compaction would leave, of each table that is there."""
    tables, later = IngestTables.create(folder), START_MS + DAY_MS
    append(tables.requests, "later", requests({"timestamp": later, "completed": later}))
    History.open(folder).update(tables.requests)
    _, out, _ = run("history", "status", folder, "--json")
    states = {state["table"]: state for state in json.loads(out)}
    assert list(states) == ["requests", "quarantine", "history", "seconds", "topics", "episodes"]
    history = states["history"]
    assert (history["rows"], history["files"], history["files_after_compaction"]) == (3, 3, 2)
    assert (history["first_day"], history["last_day"]) == ("2023-11-14", "2023-11-15")
    assert history["bytes"] > 0
    assert states["quarantine"]["first_day"] is None


def test_mistakes_are_reported(folder: str, run: Run) -> None:
    """An unknown table, two ways to name a day, and a folder without tables are one message each."""
    steps = {
        ("drop", folder, "--keep-days", "3", "--table", "days"): "'days' is none of requests",
        ("drop", folder, "--keep-days", "999999999"): "--keep-days",
        ("clean", folder, "--older-than", "999999999999"): "--older-than",
        ("drop", folder, "--before", "2199-01-01"): "must not be in the future",
        ("drop", folder): "give one of --before and --keep-days",
        ("status", f"{folder}/nothing"): "/nothing: there is no such folder; `quotascope ingest LOGS --into FOLDER` makes",
    }  # fmt: skip
    for step, output in steps.items():
        code, _, err = run("history", *step)
        assert code in (1, 2)
        assert output in err
