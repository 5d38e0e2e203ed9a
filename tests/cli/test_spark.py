from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.spark_listener.report.throttled import log

from quotascope.cli.main import main

QUOTASCOPE = Path(sys.executable).with_name("quotascope")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    """The exit code of a command in this process."""
    monkeypatch.setattr(sys, "argv", ["quotascope", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


def test_files_are_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A page and a picture, beside the tables."""
    page, picture = tmp_path / "a.html", tmp_path / "a.svg"
    path = log(tmp_path / "app-1")
    assert run(monkeypatch, "spark", "report", path, "--html", page, "--svg", picture) == 0  # fmt: skip
    assert page.read_text().startswith("<!doctype html>")
    assert picture.read_text().startswith("<svg ")
    out, err = capsys.readouterr()
    assert "billing" in out
    assert err == ""


def test_file_of_something_else_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """JSON lines of another program are no event log, and no report of nothing."""
    other = tmp_path / "other.json"
    other.write_text('{"level":"info"}\n' * 3)
    assert run(monkeypatch, "spark", "report", other) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "other.json is no event log of Spark" in " ".join(err.split())


def test_zip_for_tasks_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds what tasks import."""
    assert run(monkeypatch, "spark", "py-files", tmp_path / "a.zip") == 0
    names = zipfile.ZipFile(tmp_path / "a.zip").namelist()
    assert "quotascope/spark_listener/task/note.py" in names


@pytest.mark.slow
@pytest.mark.parametrize("command", ["py-files", "jar"])
def test_file_that_cannot_be_written(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is one line, and an exit code."""
    assert run(monkeypatch, "spark", command, tmp_path / "missing" / "a") == 1
    err = capsys.readouterr().err
    assert err.startswith("quotascope: ")
    assert "missing" in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize("output", ["--html", "--svg"])
def test_output_that_cannot_be_written_is_told_first(
    output: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before the log is read, which may take long; here there is none."""
    missing = tmp_path / "missing" / "a"
    assert run(monkeypatch, "spark", "report", tmp_path / "none", output, missing) == 1
    assert "No such file or directory" in " ".join(capsys.readouterr().err.split())
    assert not missing.parent.exists()


@pytest.mark.parametrize("command", ["report", "py-files", "jar"])
def test_help_has_examples(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks sees how the command is typed."""
    monkeypatch.setenv("COLUMNS", "200")
    assert run(monkeypatch, "spark", command, "--help") == 0
    assert f"quotascope spark {command} " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["runner", "submit-script"])
def test_script_is_where_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """spark-submit is given that file."""
    assert run(monkeypatch, "spark", command) == 0
    assert "def main" in Path(capsys.readouterr().out.strip()).read_text()


def test_progress_is_on_the_terminal_only(tmp_path: Path) -> None:
    """A bar is drawn where somebody sees it, and the output is JSON all the same."""
    path = log(tmp_path / "app-1")
    ours, theirs = pty.openpty()
    result = subprocess.run(
        [QUOTASCOPE, "spark", "report", path, "--json"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        check=True,
    )
    os.close(theirs)
    seen = os.read(ours, 10_000).decode()
    os.close(ours)
    assert result.stdout.startswith(b"{")
    assert "reading" in seen


def test_without_a_command_the_commands_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what each does, and not only that one is missing."""
    run(monkeypatch, "spark")
    out, err = capsys.readouterr()
    assert re.search(r"^.? *report  ", out + err, re.MULTILINE)
    assert "Missing command" not in out + err
