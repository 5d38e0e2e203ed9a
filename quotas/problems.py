"""Values of a YAML document, and the problems of those that cannot be used, each with its line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .yaml_file import Located

Content: TypeAlias = Mapping[str, Located]
"""Keys and values of a mapping."""


@dataclass(slots=True)
class Problems:
    """Reader of values that collects their problems."""

    sentences: list[str] = field(default_factory=list)
    """Sentences about problems, each beginning with its line."""

    def add(self, line: int, about: str) -> None:
        """Record a problem."""
        self.sentences.append(f"line {line}: {about}")

    def in_order(self) -> list[str]:
        """Return the sentences in the order of their lines."""
        return sorted(self.sentences, key=lambda sentence: int(sentence.split(":", 1)[0].removeprefix("line ")))

    def mapping(self, item: Located, allowed: Sequence[str], example: str) -> Content | None:
        """Return keys and values; record a problem and return None if the item is no mapping."""
        if item.mapping is None:
            self.add(item.line, f"expected keys and values, such as `{example}`")
        else:
            self.unknown_keys(item.mapping, allowed)
        return item.mapping

    def unknown_keys(self, content: Content, allowed: Sequence[str]) -> None:
        """Record a problem for each key that has no meaning."""
        for key, item in content.items():
            if key not in allowed:
                close = difflib.get_close_matches(key, allowed, n=1, cutoff=0.5)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(allowed)}"
                self.add(item.line, f"unknown key {key[:60]!r}; {hint}")

    def text(self, content: Content, key: str, line: int) -> str | None:
        """Return the text under a key; record a problem and return None if there is none."""
        item = content.get(key)
        if item is not None and isinstance(item.value, str) and item.value.strip():
            return item.value
        where = line if item is None else item.line
        self.add(where, f"`{key}` must be a text that is not empty")
        return None

    def number(self, content: Content, key: str, line: int) -> float | None:
        """Return the number under a key; record a problem and return None if there is none."""
        item = content.get(key)
        value = None if item is None else item.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            where = line if item is None else item.line
            self.add(where, f"`{key}` must be a plain number")
            return None
        return float(value)

    def items(self, content: Content, key: str) -> tuple[Located, ...]:
        """Return the list under a key, empty if there is none."""
        item = content.get(key)
        if item is None or item.value is None:
            return ()
        if item.items is None:
            self.add(item.line, f"`{key}` must be a list")
        return item.items or ()
