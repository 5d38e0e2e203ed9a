"""Text from outside, as it may be put into a line of a log, a terminal or a page."""

from __future__ import annotations

LONGEST = 1_000
"""Characters of a name or text that are shown; client-ids and exception texts are untrusted."""
_LONGEST_REASON = 200
_LONGEST_LOOKED_AT = 2_000


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return the text with everything unprintable escaped, cut after ``longest`` characters."""
    short_text = text if len(text) <= longest else text[:longest] + "…"
    if short_text.isprintable():
        return short_text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in short_text)


def shown(text: object) -> str:
    """Return an untrusted text, such as a reason, as a part of a message: short, its line ends as blanks."""
    line = " ".join(str(text)[:_LONGEST_LOOKED_AT].split())
    printable = "".join(char if char.isprintable() else "?" for char in line)
    if len(printable) <= _LONGEST_REASON:
        return printable
    return f"{printable[: _LONGEST_REASON - 1]}…"
