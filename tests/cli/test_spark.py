from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.spark_listener.report.throttled import log


def test_files_are_written(tmp_path: Path, run: Run) -> None:
    """The command writes a page and a picture, beside the tables."""
    page, picture = tmp_path / "a.html", tmp_path / "a.svg"
    path = log(tmp_path / "app-1")
    code, out, err = run("spark", "report", path, "--html", page, "--svg", picture)
    assert (code, err) == (0, "")
    assert page.read_text().startswith("<!doctype html>")
    assert picture.read_text().startswith("<svg ")
    assert "billing" in out


def test_file_of_something_else_is_refused(tmp_path: Path, run: Run) -> None:
    """JSON lines of another program are no event log, and no report of nothing."""
    other_file = tmp_path / "other.json"
    other_file.write_text('{"level":"info"}\n' * 3)
    code, out, err = run("spark", "report", other_file)
    assert (code, out) == (1, "")
    assert "other.json is not an event log of Spark" in " ".join(err.split())


def test_zip_for_tasks_is_written(tmp_path: Path, run: Run) -> None:
    """The zip has the modules that tasks import."""
    assert run("spark", "py-files", tmp_path / "a.zip")[0] == 0
    names = zipfile.ZipFile(tmp_path / "a.zip").namelist()
    assert "quotascope/spark_listener/task/note.py" in names


@pytest.mark.slow
@pytest.mark.parametrize("command", ["py-files", "jar"])
def test_file_that_cannot_be_written(command: str, tmp_path: Path, run: Run) -> None:
    """A file that cannot be written is an error of one line with an exit code."""
    code, _, err = run("spark", command, tmp_path / "missing" / "a")
    assert code == 1
    assert err.startswith("quotascope: ")
    assert "missing" in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize("output", ["--html", "--svg"])
def test_output_that_cannot_be_written_is_reported_first(output: str, tmp_path: Path, run: Run) -> None:
    """An output that cannot be written is reported before the log is read; here there is none."""
    missing = tmp_path / "missing" / "a"
    code, _, err = run("spark", "report", tmp_path / "none", output, missing)
    assert code == 1
    assert "No such file or directory" in " ".join(err.split())
    assert not missing.parent.exists()


@pytest.mark.parametrize("command", ["runner", "submit-script"])
def test_script_is_where_it_says(run: Run, command: str) -> None:
    """The command prints the path of a script that exists, for spark-submit."""
    code, out, _ = run("spark", command)
    assert code == 0
    assert "def main" in Path(out.strip()).read_text()


def test_progress_is_beside_the_output(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is drawn on standard error if it is a terminal, and the output remains JSON."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, errors = run("spark", "report", log(tmp_path / "app-1"), "--json")
    assert out.startswith("{")
    assert "reading" in errors


def test_without_a_command_the_commands_are_reported(run: Run) -> None:
    """Without a command the message lists all commands with what each does."""
    _, out, err = run("spark")
    assert re.search(r"^.? *report  ", out + err, re.MULTILINE)
    assert "Missing command" not in out + err
