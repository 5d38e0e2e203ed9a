"""Text from outside, as it may be put into a message."""

from __future__ import annotations

_LONGEST = 200


def shown(text: object) -> str:
    """The text on one line, printable and of bounded length."""
    line = " ".join(str(text).split())
    printable = "".join(char if char.isprintable() else "?" for char in line)
    return printable if len(printable) <= _LONGEST else f"{printable[: _LONGEST - 1]}…"
