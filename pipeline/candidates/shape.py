"""What a file of candidates may look like, and what is wrong with one, told by its lines."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from quotascope.quotas import Located

NAMES: Final = ("user", "client-id", "ip")
"""The keys that say whom a quota is for."""


class Problems:
    """All that is wrong with a file."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        """One for each, beginning with its line."""

    def add(self, line: int, about: str) -> None:
        """Note something."""
        self.sentences.append(f"line {line}: {about}")

    def in_order(self) -> list[str]:
        """The sentences by their lines."""
        return sorted(self.sentences, key=_line_of)


def _line_of(sentence: str) -> int:
    return int(sentence.split(":", 1)[0].removeprefix("line "))


def unknown_keys(
    content: Mapping[str, Located], known: Sequence[str], problems: Problems
) -> None:
    """Note the keys that nobody reads."""
    for key, item in content.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            )
            problems.add(item.line, f"unknown key {key[:60]!r}; {hint}")


def text(
    content: Mapping[str, Located], key: str, line: int, problems: Problems
) -> str | None:
    """The text under a key, None with a problem noted if there is none."""
    item = content.get(key)
    if item is not None and isinstance(item.value, str) and item.value.strip():
        return item.value
    where = line if item is None else item.line
    problems.add(where, f"`{key}` must be a text that is not empty")
    return None


def number(
    content: Mapping[str, Located], key: str, line: int, problems: Problems
) -> float | None:
    """The finite number under a key, None with a problem noted if there is none."""
    item = content.get(key)
    value = None if item is None else item.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        where = line if item is None else item.line
        problems.add(where, f"`{key}` must be a plain number")
        return None
    return float(value)


def items_of(
    content: Mapping[str, Located], key: str, problems: Problems
) -> tuple[Located, ...]:
    """The list under a key, empty if there is none."""
    item = content.get(key)
    if item is None or item.value is None:
        return ()
    if item.items is None:
        problems.add(item.line, f"`{key}` must be a list")
        return ()
    return item.items
