"""Keys of a terminal, one by one."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .choices import BACKSPACE, DOWN, END, ENTER, ESCAPE, HOME, PAGE_DOWN, PAGE_UP, UP

_SEQUENCE: Final = re.compile(r"\x1b(?:[\[O][0-9;]*[A-Za-z~])?|.", re.DOTALL)
_NAMES: Final = {
    "\x1b": ESCAPE,
    "\r": ENTER,
    "\n": ENTER,
    "\x7f": BACKSPACE,
    "\x08": BACKSPACE,
    "\x04": END,
    "\x1b[A": UP,
    "\x1bOA": UP,
    "\x1b[B": DOWN,
    "\x1bOB": DOWN,
    "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN,
    "\x1b[H": HOME,
    "\x1b[1~": HOME,
}
_MOST = 1024


def keys_in(text: str) -> list[str]:
    """Return the keys that a terminal sent: characters, and names of other keys; unknown ones are left out."""
    sequences = (match[0] for match in _SEQUENCE.finditer(text))
    keys = (_NAMES.get(key, key) for key in sequences)
    return [key for key in keys if not key.startswith("\x1b")]


@contextmanager
def listening(press: Callable[[str], None]) -> Iterator[None]:
    """Call `press` for each key of standard input until the block ends, if it is a terminal, then restore it."""
    if not sys.stdin.isatty():
        yield
        return
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read() -> None:
        data = os.read(descriptor, _MOST)
        if not data:  # the terminal is gone
            loop.remove_reader(descriptor)
            press(END)
        for key in keys_in(decoder.decode(data)):
            press(key)

    attributes = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, attributes)
