"""`quotascope top` in a real pseudo-terminal, and without one."""

import signal
import subprocess

import pytest
from tests.cli.conftest import Serve
from tests.cli.ptys import ENVIRONMENT, QUOTASCOPE, terminal


@pytest.mark.slow
def test_keys_sort_filter_and_end(agent: Serve) -> None:
    """Drawn again and again; the terminal is as before in the end."""
    broker = agent("split/throttled.1.jolokia2.json")
    source = f"jolokia:1={broker.url}"
    with terminal(QUOTASCOPE, "top", "--source", source, "--every", "0.2s") as shown:
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
    broker = agent("split/throttled.1.jolokia2.json")
    with terminal(QUOTASCOPE, "top", "--source", f"jolokia:1={broker.url}") as shown:
        shown.frame_with("s sort: used")
        shown.program.send_signal(signal.SIGINT)
        assert shown.program.wait(60) == 0
        assert shown.is_as_before


@pytest.mark.slow
def test_a_source_that_goes_away_is_reported_and_the_last_numbers_stay(agent: Serve) -> None:
    """In place of the keys, which go on working."""
    broker = agent("split/throttled.1.jolokia2.json")
    with terminal(QUOTASCOPE, "top", "--source", f"jolokia:1={broker.url}", "--every", "0.2s") as shown:
        shown.frame_with("carol / spam")
        broker.close()
        shown.frame_with("sources up 0/1", "cannot be read")


def test_without_a_terminal_there_is_one_plain_table(agent: Serve) -> None:
    """For pipes and logs: no colors, no cursor, and it ends."""
    broker = agent("split/throttled.1.jolokia2.json")
    done = subprocess.run(
        [QUOTASCOPE, "top", "--source", f"jolokia:1={broker.url}", "--type", "produce"],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "COLUMNS": "120"},
        timeout=120,
    )
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("sources up 1/1; ")
    assert any("carol / spam" in line for line in lines)
    assert not any(" fetch " in line for line in lines)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://x"])
def test_an_exporter_that_cannot_be_asked_is_an_error(url: str) -> None:
    """One line and exit code 1."""
    done = subprocess.run(
        [QUOTASCOPE, "top", "--exporter", url], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("quotascope: ")
    assert len(done.stderr.splitlines()) == 1
