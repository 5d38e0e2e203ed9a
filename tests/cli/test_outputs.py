"""Where commands write."""

import json
import os
import sys
from datetime import date
from math import inf, nan
from pathlib import Path

import pytest
from tests.pipeline.recommend.advices import advice, recommendation

from quotascope.cli import outputs
from quotascope.metrics import QuotaEntity
from quotascope.pipeline.errors import FileNotWritten
from quotascope.pipeline.report.documents import recommend_json
from quotascope.quotas import QuotaSet, kafka_configs

NAMES = 'user,rows\n"ali\x1b]0;x\x07ce\r\x9b2J",1\nJürgen 東京,2\n'


def test_a_terminal_gets_no_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Untrusted names are escaped; letters of any script and line ends stay."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    outputs.put(outputs.STDOUT, NAMES)
    escaped = r"ali\x1b]0;x\x07ce\r\x9b2J"
    assert capsys.readouterr().out == f'user,rows\n"{escaped}",1\nJürgen 東京,2\n'


def test_files_and_pipes_get_names_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What another program reads holds what the log held."""
    file = tmp_path / "rows.csv"
    outputs.put(file, NAMES)
    assert file.read_bytes().decode() == NAMES
    outputs.put(outputs.STDOUT, NAMES)
    assert capsys.readouterr().out == NAMES


def test_outputs_are_tried_before_any_work(tmp_path: Path) -> None:
    """A folder that is not there, a folder in place of a file, a file in place of a folder: each is named; one that can be written is left alone."""
    file, new = tmp_path / "there", tmp_path / "new"
    file.write_text("kept")
    outputs.check(None, outputs.STDOUT, file, new)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert file.read_text() == "kept"
    for wrong in (tmp_path / "no" / "page.html", tmp_path, file / "page.html"):
        with pytest.raises(FileNotWritten, match=str(wrong)):
            outputs.check(file, wrong)


def test_two_outputs_are_not_one_file(tmp_path: Path) -> None:
    """One would take the place of the other."""
    with pytest.raises(FileNotWritten, match="two outputs"):
        outputs.check(tmp_path / "x", None, tmp_path / "x")
    with pytest.raises(FileNotWritten, match="two outputs"):
        outputs.check(outputs.STDOUT, outputs.STDOUT)


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full, what was there before is still there, and nothing else; its mode stays."""
    file = tmp_path / "page.html"
    file.write_text("before")
    file.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(file)
    outputs.put(link, "after")
    assert link.is_symlink()
    assert file.read_text() == "after"
    assert file.stat().st_mode & 0o777 == 0o640

    def full(_descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileNotWritten, match="No space left"):
        outputs.put(file, "afterwards")
    assert file.read_text() == "after"
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "link"}


def test_a_bar_names_what_comes_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """While files are listed a terminal shows that, and then how much of them is read; what is no terminal shows nothing."""
    monkeypatch.setenv("TERM", "xterm")
    for terminal in (False, True):
        monkeypatch.setenv("FORCE_COLOR", "1" if terminal else "")
        with outputs.bar("reading", first="listing files") as progress:
            assert ("listing files" in capsys.readouterr().err) is terminal
            progress(1, 2)
        shown = capsys.readouterr().err
        assert ("reading" in shown, "1/2" in shown) == (terminal, terminal)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """What is no file is not replaced by one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    outputs.check(pipe)
    outputs.put(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)


def test_json_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    """An infinite number, such as a quota, is a text: null means none, or unknown. Dates are texts, and one line stays one."""
    document = {"rules": [{"value": inf, "used": (nan, -inf, 0.5)}], "day": date(2026, 1, 2), "name": "\N{SNOWMAN}"}
    outputs.put_json(document, indent=None)
    (line,) = capsys.readouterr().out.splitlines()
    known = {
        "rules": [{"value": "Infinity", "used": [None, "-Infinity", 0.5]}],
        "day": "2026-01-02",
        "name": "\N{SNOWMAN}",
    }
    assert json.loads(line, parse_constant=pytest.fail) == known


def test_reports_have_no_infinity_either(tmp_path: Path) -> None:
    """A recommendation for a cluster that stores an infinite quota, in a file."""
    made = advice([recommendation("alice")], QuotaSet({QuotaEntity("alice"): {"producer_byte_rate": inf}}))
    commands = kafka_configs(made.changes, bootstrap_servers="b:9092")
    outputs.put_json(recommend_json(made, commands), tmp_path / "advice.json")
    (limit,) = json.loads((tmp_path / "advice.json").read_text(), parse_constant=pytest.fail)["recommended"]
    assert (limit["now"], limit["now_state"]) == ("Infinity", "unlimited")
