"""A program in a real pseudo-terminal."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OF_TERMINALS = {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TERM"}
PLAIN = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
"""The environment without what it says of a terminal."""
ENVIRONMENT = {**PLAIN, "TERM": "xterm-256color"}


class Terminal:
    """A terminal of 100 columns and 20 lines with a program in it."""

    def __init__(self, *command: str | Path) -> None:
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self._before = termios.tcgetattr(self._theirs)
        self.program = subprocess.Popen(
            command,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        self.said = ""
        """All that was shown."""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def frame_with(self, *texts: str) -> str:
        """The first frame that holds all of these from now on, without colors."""
        while True:
            ready, _, _ = select.select([self._ours], [], [], 60)
            assert ready, f"no frame with {texts}: {self.said[-2000:]}"
            self.said += self._decode(os.read(self._ours, 65_536))
            *_, screen = self.said.split("\x1b[H")
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen)
            if all(text in plain for text in texts):
                return plain

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    @property
    def is_as_before(self) -> bool:
        """Decide whether echo and line editing are as at the beginning."""
        return termios.tcgetattr(self._theirs) == self._before

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self._theirs)
        os.close(self._ours)


@contextmanager
def terminal(*command: str | Path) -> Iterator[Terminal]:
    opened = Terminal(*command)
    try:
        yield opened
    finally:
        opened.close()
