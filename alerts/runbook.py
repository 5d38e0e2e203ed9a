"""The runbooks, one for each alert, and the blocks of commands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADINGS: Final = ("Meaning", "Impact", "Diagnosis", "Mitigation")


@dataclass(frozen=True, slots=True)
class Block:
    """Commands (``sh``) or queries (``promql``) of a runbook."""

    language: str
    text: str


def runbooks() -> Iterator[tuple[str, str]]:
    """The name of each alert that has one, and the text, in Markdown."""
    folder = files(__package__).joinpath("runbooks")
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if path.name.endswith(".md"):
            yield path.name.removesuffix(".md"), path.read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a runbook, in order."""
    for found in _BLOCK.finditer(text):
        yield Block(found[1], found[2])
