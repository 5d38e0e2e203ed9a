"""Outputs of commands: files, pipes, and terminals that are redrawn."""

import io
import json
import re
import sys
from datetime import date
from math import inf, nan
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text
from tests.pipeline.recommend.advices import advice, recommendation

from quotascope.cli import outputs
from quotascope.cli.doctor import show_running_checks
from quotascope.cli.errors import FileNotWritten
from quotascope.cli.terminal import can_redraw, full_screen
from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.pipeline.runs.recommend import document as recommend_json
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
    """Files and pipes, which programs read, have names unchanged."""
    file = tmp_path / "rows.csv"
    outputs.put(file, NAMES)
    assert file.read_bytes().decode() == NAMES
    outputs.put(outputs.STDOUT, NAMES)
    assert capsys.readouterr().out == NAMES


def test_outputs_are_tried_before_any_work(tmp_path: Path) -> None:
    """Missing folders, folders in place of files and the reverse are named; writable files are unchanged."""
    file, new = tmp_path / "there", tmp_path / "new"
    file.write_text("kept")
    outputs.check(None, outputs.STDOUT, file, new)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert file.read_text() == "kept"
    for wrong in (tmp_path / "no" / "page.html", tmp_path, file / "page.html"):
        with pytest.raises(FileNotWritten, match=str(wrong)):
            outputs.check(file, wrong)
        with pytest.raises(FileNotWritten, match=str(wrong)):
            outputs.put(wrong, "text")


def test_two_outputs_are_not_one_file(tmp_path: Path) -> None:
    """Two outputs to one file are refused: the second would overwrite the first."""
    with pytest.raises(FileNotWritten, match="two outputs"):
        outputs.check(tmp_path / "x", None, tmp_path / "x")
    with pytest.raises(FileNotWritten, match="two outputs"):
        outputs.check(outputs.STDOUT, outputs.STDOUT)


def test_a_bar_names_what_comes_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows that files are listed, and then how much is read; other outputs show nothing."""
    monkeypatch.setenv("TERM", "xterm")
    for terminal in (False, True):
        monkeypatch.setenv("FORCE_COLOR", "1" if terminal else "")
        with outputs.bar("reading", initial_name="listing files") as progress:
            assert ("listing files" in capsys.readouterr().err) is terminal
            progress(1, 2)
        output = capsys.readouterr().err
        assert ("reading" in output, "1/2" in output) == (terminal, terminal)


def test_json_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    """Infinite numbers, such as quotas, are texts, since null means none or unknown; dates are texts."""
    document = {"rules": [{"value": inf, "used": (nan, -inf, 0.5)}], "day": date(2026, 1, 2), "name": "\N{SNOWMAN}"}
    outputs.put_json(document, indent=None)
    (line,) = capsys.readouterr().out.splitlines()
    expected = {
        "rules": [{"value": "Infinity", "used": [None, "-Infinity", 0.5]}],
        "day": "2026-01-02",
        "name": "\N{SNOWMAN}",
    }
    assert json.loads(line, parse_constant=pytest.fail) == expected


def test_reports_have_no_infinity_either(tmp_path: Path) -> None:
    """A recommendation with an infinite quota of the cluster is valid JSON in a file."""
    answer = advice([recommendation("alice")], QuotaSet({QuotaEntity("alice"): {"producer_byte_rate": inf}}))
    commands = kafka_configs(answer.changes, bootstrap_servers="b:9092")
    outputs.put_json(recommend_json(answer, commands), tmp_path / "advice.json")
    (limit,) = json.loads((tmp_path / "advice.json").read_text(), parse_constant=pytest.fail)["recommended"]
    assert (limit["now"], limit["now_state"]) == ("Infinity", "unlimited")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def console(file: io.StringIO, **environment: str) -> Console:
    return Console(file=file, width=20, height=5, _environ=environment)


def test_redraws_only_terminals() -> None:
    """A file or pipe is not drawn over, not even where colors are forced, nor is a terminal without a cursor."""
    assert can_redraw(console(Terminal(), TERM="xterm"))
    assert not can_redraw(console(Terminal(), TERM="dumb"))
    assert not can_redraw(console(io.StringIO(), FORCE_COLOR="1"))


def test_draws_in_place() -> None:
    """Each drawing starts at the top and covers the last one; nothing flickers, since nothing is erased in between."""
    file = Terminal()
    with full_screen(console(file, TERM="xterm")) as draw:
        draw(Text("one"))
        draw(Text("two"))
    sequences = set(re.findall(r"\x1b\[[0-9;?]*[A-Za-ln-z]", file.getvalue()))
    assert sequences == {f"\x1b[{sequence}" for sequence in ("?1049h", "H", "?25l", "?25h", "?1049l")}
    assert f"\x1b[Htwo{' ' * 17}" in file.getvalue()


def test_gives_the_terminal_back_after_an_error() -> None:
    """Whatever ends the drawing, the cursor and the old contents come back."""
    file = Terminal()
    with pytest.raises(KeyboardInterrupt), full_screen(console(file, TERM="xterm")):
        raise KeyboardInterrupt
    assert "\x1b[?25h" in file.getvalue()
    assert "\x1b[?1049l" in file.getvalue()


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_terminal_shows_what_is_waited_for(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows on standard error what a command waits for; the log of a CI does not."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with show_running_checks() as progress:
        progress(["kafka", "agents"])
    assert ("waiting for kafka, agents" in stream.getvalue()) is stream.isatty()
