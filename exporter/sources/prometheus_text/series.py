"""A series as Prometheus text writes it: its name and labels."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(.*)\})?", re.DOTALL)
_LABEL: Final = re.compile(
    r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*+)"[ \t]*(?:,|\Z)[ \t]*',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r'\\([\\n"])')


def parse_series(text: str) -> tuple[str, dict[str, str]]:
    """
    Return the name and the labels, these in their order and unescaped.

    >>> parse_series('up{job="a b",}')
    ('up', {'job': 'a b'})

    Raises ``ValueError`` when the text is not what the format allows. Names in quotes,
    which Prometheus 3 knows, come only to those who ask for them.
    """
    found = _NAME.fullmatch(text)
    if found is None:
        raise ValueError("no name of a metric")
    return found[1], _labels(found[2] or "")


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    position = 1 if text.startswith(",") else 0
    end = len(text.rstrip(" \t"))
    while position < end:
        found = _LABEL.match(text, position)
        if found is None or found[1] in labels:
            raise ValueError("its labels are malformed")
        labels[found[1]] = _unescaped(found[2])
        position = found.end()
    return labels


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
