"""`quotascope top` in a real pseudo-terminal, and without one."""

import signal

import pytest
from tests.cli.conftest import Run, Serve
from tests.cli.ptys import terminal
from tests.commands import COMMAND

CAPTURE = "split/throttled.1.jolokia2.json"


@pytest.mark.slow
def test_keys_sort_filter_and_end(agent: Serve) -> None:
    """Drawn again and again; the terminal is as before in the end."""
    broker = agent(CAPTURE)
    source = f"jolokia:1={broker.url}"
    with terminal(COMMAND, "top", "--source", source, "--every", "0.2s") as shown:
        shown.frame_with("s sort: used", "sources up 1/1")
        shown.press("s")
        shown.frame_with("s sort: delay")
        shown.press("/CAROL")
        shown.frame_with("filter: CAROL_")
        shown.press("\r")
        frame = shown.frame_with("/ filter: CAROL ", "carol / spam")
        assert "alice" not in frame
        assert not shown.is_as_before
        shown.press("q")
        assert shown.program.wait(60) == 0
        assert shown.is_as_before


def test_a_signal_gives_the_terminal_back(agent: Serve) -> None:
    """As Ctrl-C does."""
    broker = agent(CAPTURE)
    with terminal(COMMAND, "top", "--source", f"jolokia:1={broker.url}") as shown:
        shown.frame_with("s sort: used")
        shown.program.send_signal(signal.SIGINT)
        assert shown.program.wait(60) == 0
        assert shown.is_as_before


@pytest.mark.slow
def test_a_source_that_goes_away_is_reported_and_the_last_numbers_stay(agent: Serve) -> None:
    """In place of the keys, which go on working."""
    broker = agent(CAPTURE)
    with terminal(COMMAND, "top", "--source", f"jolokia:1={broker.url}", "--every", "0.2s") as shown:
        shown.frame_with("carol / spam")
        broker.close()
        shown.frame_with("sources up 0/1", "cannot be read")


def test_without_a_terminal_there_is_one_plain_table(agent: Serve, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """For pipes and logs: no colors, no cursor, and it ends."""
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = run("top", "--source", f"jolokia:1={agent(CAPTURE).url}", "--type", "produce")
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[0].startswith("sources up 1/1; ")
    assert any("carol / spam" in line for line in lines)
    assert not any(" fetch " in line for line in lines)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://x"])
def test_an_exporter_that_cannot_be_asked_is_an_error(run: Run, url: str) -> None:
    """One line and exit code 1."""
    code, out, err = run("top", "--exporter", url)
    assert (code, out) == (1, "")
    assert err.startswith("quotascope: ")
    assert len(err.splitlines()) == 1
