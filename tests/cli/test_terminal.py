"""Drawing again and again without flicker, and what is shown during a wait."""

import io
import re
import sys

import pytest
from rich.console import Console
from rich.text import Text

from quotascope.cli.doctor import waiting
from quotascope.cli.terminal import can_redraw, full_screen


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Whether this is a terminal."""
        return True


def console(file: io.StringIO, **environment: str) -> Console:
    """A console of 20 columns and 5 lines."""
    return Console(file=file, width=20, height=5, _environ=environment)


def test_redraws_only_terminals() -> None:
    """A file or pipe is not drawn over, not even where colors are forced, nor is a terminal without a cursor."""
    assert can_redraw(console(Terminal(), TERM="xterm"))
    assert not can_redraw(console(Terminal(), TERM="dumb"))
    assert not can_redraw(console(io.StringIO(), FORCE_COLOR="1"))


def test_draws_in_place() -> None:
    """Each drawing starts at the top and covers the last one; nothing is erased in between, so nothing flickers."""
    file = Terminal()
    with full_screen(console(file, TERM="xterm")) as draw:
        draw(Text("one"))
        draw(Text("two"))
    sequences = set(re.findall(r"\x1b\[[0-9;?]*[A-Za-ln-z]", file.getvalue()))
    assert sequences == {f"\x1b[{each}" for each in ("?1049h", "H", "?25l", "?25h", "?1049l")}
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
    """On a terminal, on standard error; a log of a CI gets nothing of it."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with waiting() as progress:
        progress(["kafka", "agents"])
    assert ("waiting for kafka, agents" in stream.getvalue()) is stream.isatty()
