"""Runs of ingest that meet another, are killed, or find no space."""

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ingest.ingesting import LINES, NAMED, PLAIN, another_run, log, read, reported, tables

from quotascope.pipeline.columns import added
from quotascope.pipeline.errors import NotWritten
from quotascope.pipeline.history import ROLLUP, History
from quotascope.pipeline.ingest import IngestTables, ingest, local
from quotascope.pipeline.runs.ingest import ingest_logs
from quotascope.pipeline.table import Table


@pytest.mark.parametrize("earlier_are_forwarded", [True, False])
@pytest.mark.parametrize("other_brings", ["nothing", "the twins"])
def test_twins_of_two_runs_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other_brings: str, *, earlier_are_forwarded: bool
) -> None:
    """A request whose two lines are in two runs is charged once, also if one of the runs looks again."""
    named = [text for text in LINES[:400] if _names_topics(text)]
    controllers = [text for text in named if b'"isForwarded":true' in text]
    clients = [text for text in named if b'"isForwarded":false' in text]
    pair = (controllers, clients) if earlier_are_forwarded else (clients, controllers)
    earlier, later = log(tmp_path, *pair[0]), log(tmp_path, *pair[1], name="later.log")
    into = str(tmp_path / "tables")
    if other_brings == "nothing":
        ingest([earlier], into, NAMED)
    advance = Table.advance

    def late(table: Table, *arguments: Any, **options: Any) -> int:
        if not table.storage.uri.endswith("requests"):
            return advance(table, *arguments, **options)
        monkeypatch.setattr(Table, "advance", advance)
        if other_brings == "the twins":
            ingest([earlier], into, NAMED)
        else:
            another_run(table)
        return advance(table, *arguments, **options)

    monkeypatch.setattr(Table, "advance", late)
    ingest([later], into, NAMED)
    monkeypatch.undo()
    ingest([log(tmp_path, *named, name="whole.log")], str(tmp_path / "whole"), NAMED)
    whole = IngestTables.create(str(tmp_path / "whole")).requests.read()
    assert reported(tables(tmp_path)[0])[1:] == reported(whole)[1:]


def _names_topics(text: bytes) -> bool:
    return any(b'"requestApiKey":%d,' % key in text for key in (19, 20, 37))


def _killed_run(path: str, into: str, moment: str) -> None:
    local.CHUNK = 100  # type: ignore[misc]
    local.BLOCK = 100_000  # type: ignore[misc]
    advance = Table.advance
    chunks: list[str] = []

    def once(table: Table, *arguments: Any, **options: Any) -> int:
        name = Path(table.storage.uri).name
        chunks.append(name)
        if name == moment and chunks.count("requests") > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(table, *arguments, **options)

    setattr(Table, "advance", once)  # noqa: B010 - mypy has it that methods stay
    ingest_logs([path], into, NAMED)


@pytest.mark.parametrize("before", ["requests", "quarantine", "history", "seconds"])
def test_killed_run(tmp_path: Path, before: str) -> None:
    """
    A run that is killed before a commit leaves whole chunks.

    The next one adds the rest, and all of it to the history.
    """
    junk = [b"junk %d" % number for number in range(20)]
    lines = [
        text
        for number, each in enumerate(PLAIN[:1_000])
        for text in ([each] if number % 50 else [each, junk[number // 50]])
    ]
    path, into = log(tmp_path, *lines), str(tmp_path / "tables")
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_killed_run, args=(path, into, before))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    rows_left = [len(table) for table in tables(tmp_path)]
    assert rows_left[0] == 1_000 if before in {"history", "seconds"} else 0 < rows_left[0] < 1_000
    report = ingest_logs([path], into, NAMED)
    assert (report.duplicates, report.quarantined_before) == (rows_left[0], rows_left[1])
    assert [len(table) for table in tables(tmp_path)] == [1_000, 20]
    ingest_logs([path], f"{into} of one run", NAMED)
    history_found, expected = (History.open(folder) for folder in (into, f"{into} of one run"))
    assert len(history_found.detail.read()) == 1_000
    assert _sums(history_found) == _sums(expected)


def _sums(history: History) -> Any:
    key = ROLLUP.names[: ROLLUP.names.index("requests")]
    return added(history.seconds.read(), key).sort_by([(name, "ascending") for name in key])


def test_lines_that_cannot_be_staged_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are removed if the quarantine beside them cannot be written; the next run adds all."""
    path, stage = log(tmp_path, *PLAIN[:9], b"junk"), Table.stage

    def full(table: Table, rows: Any) -> Any:
        if table.storage.uri.endswith("quarantine"):
            raise NotWritten(table.storage.uri, "no space")
        return stage(table, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Table, "stage", full)
        with pytest.raises(NotWritten, match="no space"):
            read(tmp_path, path)
    assert not list(tmp_path.rglob("day=*/**/*.parquet"))
    assert read(tmp_path, path).kept == 9
