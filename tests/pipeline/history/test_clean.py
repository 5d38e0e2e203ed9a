"""Cleaning of a folder beside an ingest: no table of it loses a file that another one still has to take over."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.ingesting import NAMED, PLAIN, log

from quotascope.pipeline.history import History, store
from quotascope.pipeline.ingest import IngestTables, ingest
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.table import Table


@pytest.mark.parametrize("table", ["requests", "history", "seconds"])
def test_clean_beside_an_ingest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    """A cleaning with an age of zero before any commit leaves the tables as an ingest without it does."""
    into = str(tmp_path / "usage")
    ingest_logs([log(tmp_path, *PLAIN[:300])], into, NAMED)
    advance = Table.advance

    def cleaned_before(self: Table, *arguments: Any, **options: Any) -> int:
        if self.storage.uri.endswith(table):
            store.clean(into, 0)
        return advance(self, *arguments, **options)

    monkeypatch.setattr(Table, "advance", cleaned_before)
    report = ingest_logs([log(tmp_path, *PLAIN[:600], name="b.log")], into, NAMED)
    assert (report.kept, report.duplicates) == (300, 300)
    assert len(IngestTables.create(into).requests.read()) == 600
    history = History.open(into)
    assert len(history.detail.read()) == 600
    assert len(history.seconds.read()) > 0


def test_what_was_merged_before_it_was_taken_over_stays(tmp_path: Path) -> None:
    """An ingest is killed before a compaction and a clean: the next ingest takes the rows over."""
    into = str(tmp_path / "usage")
    ingest_logs([log(tmp_path, *PLAIN[:300])], into, NAMED)
    ingest([log(tmp_path, *PLAIN[300:600], name="b.log")], into, NAMED)  # killed before its history
    requests = IngestTables.create(into).requests
    assert requests.compact() > 0
    store.clean(into, 0)
    ingest_logs([log(tmp_path, *PLAIN[600:700], name="c.log")], into, NAMED)
    assert len(History.open(into).detail.read()) == 700
    assert len(store.clean(into, 0)["requests"].deleted) > 0, "now they are"


def test_old_commits_go_once_they_are_taken_over(tmp_path: Path) -> None:
    """An interrupted ingest goes on after any time: nothing of the log expires before that."""
    into = str(tmp_path / "usage")
    ingest_logs([log(tmp_path, *PLAIN[:300])], into, NAMED)
    ingest([log(tmp_path, *PLAIN[300:600], name="b.log")], into, NAMED)
    commits = Path(into, "requests", "_delta_log")
    months_ago = time.time() - 100 * 86_400
    for commit in commits.iterdir():
        os.utime(commit, (months_ago, months_ago))
    commits_before = len(list(commits.glob("*.json")))
    store.clean(into)
    assert len(list(commits.glob("*.json"))) == commits_before
    ingest_logs([log(tmp_path, *PLAIN[600:700], name="c.log")], into, NAMED)
    assert len(History.open(into).detail.read()) == 700
    store.clean(into)
    assert len(list(commits.glob("*.json"))) < commits_before
    assert len(IngestTables.create(into).requests.read()) == 700
