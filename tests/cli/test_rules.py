"""`quotascope rules`."""

import sys
from pathlib import Path

import pytest
import yaml

from quotascope.cli.main import main
from quotascope.exporter.rules import jmx_exporter_rules


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of the command."""
    monkeypatch.setattr(sys, "argv", ["quotascope", "rules", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_rules_go_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they are, ready to be redirected."""
    assert run(monkeypatch, "jmx-exporter") == 0
    out = capsys.readouterr().out
    assert out == jmx_exporter_rules()
    assert yaml.safe_load(out)["rules"]


def test_rules_go_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its name is told."""
    file = tmp_path / "rules.yml"
    assert run(monkeypatch, "jmx-exporter", "--output", str(file)) == 0
    assert file.read_text("utf-8") == jmx_exporter_rules()
    assert capsys.readouterr().out == f"{file}\n"


def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason, and no traceback."""
    file = tmp_path / "nothing" / "rules.yml"
    assert run(monkeypatch, "jmx-exporter", "--output", str(file)) != 0
    error = capsys.readouterr().err
    assert "No such file or directory" in error
    assert "Traceback" not in error
