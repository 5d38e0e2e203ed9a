"""`python -m quotascope.spark_listener`, which the small distribution has instead of `quotascope spark`."""

import zipfile
from pathlib import Path

import pytest

from quotascope.spark_listener import run
from quotascope.spark_listener.__main__ import main


@pytest.mark.parametrize(
    ("command", "member"),
    [
        ("jar", "io/quotascope/spark/ThrottlePlugin.class"),
        ("py-files", "quotascope/spark_listener/task/__init__.py"),
    ],
)
def test_files_of_jobs(command: str, member: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file for jobs is written to the path that the command prints."""
    path = tmp_path / "file"
    assert main([command, str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    with zipfile.ZipFile(path) as archive:
        assert member in archive.namelist()


def test_runner(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the path of the runner's script."""
    assert main(["runner"]) == 0
    assert capsys.readouterr().out == f"{run.__file__}\n"


@pytest.mark.parametrize("command", ["jar", "py-files"])
def test_file_that_cannot_be_written(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message is a sentence, with an exit code."""
    assert main([command, str(tmp_path / "no" / "file")]) == 1
    assert "quotascope: " in capsys.readouterr().err
