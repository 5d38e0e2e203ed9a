"""The parts of a runbook: its headings, and its blocks of commands and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

HEADINGS = ("Meaning", "Impact", "Diagnosis", "Mitigation")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """Commands (``sh``) or queries (``promql``)."""

    language: str
    text: str


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a runbook, in order."""
    for match in _BLOCK.finditer(text):
        yield Block(match[1], match[2])
