"""
A folder that has lost files or commits can be repaired.

What is lost is said, and comes back, once, with the logs.
"""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipeline.ingest.ingesting import NAMED, PLAIN, log

from quotascope.pipeline.columns import added
from quotascope.pipeline.errors import ChangedRows, MissingFile, NoHistory, UnreadableTable
from quotascope.pipeline.history import ROLLUP, History, store
from quotascope.pipeline.history.repair import Finding, repair
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.runs.ingest import ingest_logs


@pytest.fixture
def into(tmp_path: Path) -> str:
    folder = str(tmp_path / "usage")
    ingest_logs([log(tmp_path, *PLAIN[:400])], folder, NAMED)
    ingest_logs([log(tmp_path, *PLAIN[400:800], name="b.log")], folder, NAMED)
    return folder


def _findings(folder: str, *, write: bool) -> list[Finding]:
    return list(repair(folder, write=write))


def _sums(folder: str) -> pa.Table:
    key = ROLLUP.names[: ROLLUP.names.index("requests")]
    return added(History.open(folder).seconds.read(), key).sort_by([(name, "ascending") for name in key])


def _lose(folder: str, name: str) -> int:
    """Remove a file of a table; return its rows."""
    table = store.tables_of(folder)[name]
    (file, *_) = table.files()
    Path(table.storage.uri, file.path).unlink()
    return file.rows


def _whole(folder: str, tmp_path: Path) -> bool:
    """Return whether the tables equal those of a folder without a loss."""
    whole = str(tmp_path / "whole")
    ingest_logs([str(tmp_path / name) for name in ("a.log", "b.log")], whole, NAMED)
    counts = [
        {name: len(table.read()) for name, table in store.tables_of(path).items() if name in ("requests", "history")}
        for path in (folder, whole)
    ]
    return counts[0] == counts[1] and _sums(folder) == _sums(whole)


def test_nothing_is_found_where_nothing_is_lost(into: str, tmp_path: Path) -> None:
    """An intact folder has no findings, and is not changed."""
    assert _findings(into, write=True) == []
    assert _whole(into, tmp_path)
    with pytest.raises(NoHistory):
        _findings(str(tmp_path / "nowhere"), write=True)


@pytest.mark.parametrize("name", ["history", "seconds", "topics", "connections", "episodes"])
def test_what_is_made_of_other_tables_is_made_again(into: str, tmp_path: Path, name: str) -> None:
    """A lost table that derives from other tables is made again without any loss."""
    _lose(into, name)
    announced = _findings(into, write=False)
    findings = _findings(into, write=True)
    assert [(finding.table, finding.rows) for finding in findings] == [
        (announcement.table, announcement.rows) for announcement in announced
    ]
    assert findings[0].table == name
    assert all(finding.rows == 0 for finding in findings)
    assert _findings(into, write=True) == []
    assert _whole(into, tmp_path)


def test_lost_requests_are_said_and_come_back_with_their_logs(into: str, tmp_path: Path) -> None:
    """Lost requests are reported and removed from all tables, so that their logs add them once."""
    rows = _lose(into, "requests")
    with pytest.raises(MissingFile, match="history repair"):
        IngestTables.create(into).requests.read()
    findings = _findings(into, write=True)
    assert [finding.table for finding in findings] == [
        "requests",
        "history",
        "seconds",
        "topics",
        "connections",
        "episodes",
    ]
    assert findings[0].rows == rows
    assert findings[0].first_ms is not None
    assert len(IngestTables.create(into).requests.read()) == 800 - rows
    assert len(History.open(into).detail.read()) == 800 - rows
    report = ingest_logs([str(tmp_path / name) for name in ("a.log", "b.log")], into, NAMED)
    assert report.kept == rows
    assert _whole(into, tmp_path)


@pytest.fixture(params=["requests", "history", "seconds"])
def without_last_commit(request: pytest.FixtureRequest, into: str) -> Iterator[str]:
    name: str = request.param
    commit = max(Path(into, name, "_delta_log").glob("*.json"))
    commit.unlink()
    yield name
    assert commit.exists()


def test_a_lost_commit_is_put_back(into: str, tmp_path: Path, without_last_commit: str) -> None:
    """The commit comes from its copy; until then commands fail instead of leaving rows out."""
    with pytest.raises(UnreadableTable, match="history repair"):
        ingest_logs([str(tmp_path / "a.log")], into, NAMED)
    assert [finding.table for finding in _findings(into, write=False)] == [without_last_commit]
    assert [finding.table for finding in _findings(into, write=True)] == [without_last_commit]
    assert _whole(into, tmp_path)


@pytest.mark.parametrize("name", ["requests", "history", "seconds"])
def test_a_commit_that_is_lost_for_good_is_said(into: str, tmp_path: Path, name: str) -> None:
    """A commit that is lost with its copy is reported; its rows come back with the logs, or are made again."""
    table = Path(into, name)
    commit = max((table / "_delta_log").glob("*.json"))
    commit.write_bytes(b"")
    (copy,) = (table / "_commits").glob(f"{commit.stem}-*.json")
    copy.write_bytes(b"")
    findings = _findings(into, write=True)
    assert (findings[0].table, findings[0].rows) == (name, None if name == "requests" else 0)
    assert "is lost, and with it what it added" in findings[0].what
    ingest_logs([str(tmp_path / name) for name in ("a.log", "b.log")], into, NAMED)
    assert _whole(into, tmp_path)
    assert _findings(into, write=True) == []


def test_a_repair_that_was_killed_goes_on(into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that are made of a table that was made again follow in the next repair."""
    _lose(into, "history")
    findings = repair(into, write=True)
    assert next(findings).table == "history"
    findings.close()  # type: ignore[attr-defined]
    with pytest.raises(ChangedRows, match="history repair"):
        ingest_logs([log(tmp_path, PLAIN[800], name="c.log")], into, NAMED)
    monkeypatch.undo()
    assert [finding.table for finding in _findings(into, write=True)] == ["seconds", "episodes"]
    ingest_logs([log(tmp_path, PLAIN[800], name="c.log")], into, NAMED)
    assert len(History.open(into).detail.read()) == 801


def test_dropped_days_do_not_come_back(into: str) -> None:
    """Rows that were dropped from one of the tables stay dropped."""
    tables = store.tables_of(into)
    later = dt.date(2100, 1, 1)
    tables["history"].drop_before(later)
    assert [finding.table for finding in _findings(into, write=True)] == []
    tables["connections"].drop_before(later)
    tables["requests"].drop_before(later)
    lost = _lose(into, "topics")
    findings = _findings(into, write=True)
    assert [(finding.table, finding.rows) for finding in findings] == [("topics", lost)]
    assert "are lost for good" in findings[0].what
    rows_by_table = {name: len(table.read()) for name, table in store.tables_of(into).items()}
    assert (rows_by_table["history"], rows_by_table["connections"], rows_by_table["requests"]) == (0, 0, 0)
    assert rows_by_table["topics"] > 0
