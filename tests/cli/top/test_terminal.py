"""`quotascope top` in a real pseudo-terminal, and without one."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Serve

COMMAND = Path(sys.executable).with_name("quotascope")
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "COLUMNS"},
    "TERM": "xterm-256color",
}


class Terminal:
    """A terminal of 100 columns and 20 lines with a program in it."""

    def __init__(self, *command: str | Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.program = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        self._said = ""

    def frame_with(self, *texts: str) -> str:
        """The first frame that holds all of these from now on, without colors."""
        while True:
            ready, _, _ = select.select([self._ours], [], [], 60)
            assert ready, f"no frame with {texts}: {self._said[-2000:]}"
            self._said += os.read(self._ours, 65_536).decode()
            *_, last = self._said.split("\x1b[H")
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", last)
            if all(text in plain for text in texts):
                return plain

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._ours, keys.encode())

    @property
    def is_as_before(self) -> bool:
        """Whether echo and line editing are those of the beginning."""
        return termios.tcgetattr(self._theirs) == self.before

    def close(self) -> None:
        """End it."""
        self.program.kill()
        self.program.wait()
        os.close(self._theirs)
        os.close(self._ours)


@contextmanager
def terminal(*command: str | Path) -> Iterator[Terminal]:
    """For the length of a `with` block."""
    opened = Terminal(*command)
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.slow
def test_keys_sort_filter_and_end(agent: Serve) -> None:
    """Drawn again and again; the terminal is as before in the end."""
    broker = agent("split/throttled.1.jolokia2.json")
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
    broker = agent("split/throttled.1.jolokia2.json")
    with terminal(COMMAND, "top", "--source", f"jolokia:1={broker.url}") as shown:
        shown.frame_with("s sort: used")
        shown.program.send_signal(signal.SIGINT)
        assert shown.program.wait(60) == 0
        assert shown.is_as_before


@pytest.mark.slow
def test_a_source_that_goes_away_is_told_and_the_last_numbers_stay(
    agent: Serve,
) -> None:
    """In place of the keys, which go on working."""
    broker = agent("split/throttled.1.jolokia2.json")
    with terminal(
        COMMAND, "top", "--source", f"jolokia:1={broker.url}", "--every", "0.2s"
    ) as shown:
        shown.frame_with("carol / spam")
        broker.close()
        shown.frame_with("sources up 0/1", "cannot be read")


def test_without_a_terminal_there_is_one_plain_table(agent: Serve) -> None:
    """For pipes and logs: no colors, no cursor, and it ends."""
    broker = agent("split/throttled.1.jolokia2.json")
    done = subprocess.run(
        [COMMAND, "top", "--source", f"jolokia:1={broker.url}", "--type", "produce"],
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
        [COMMAND, "top", "--exporter", url],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("quotascope: ")
    assert len(done.stderr.splitlines()) == 1
