"""A series as Prometheus text writes it: its name and labels."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(.*)\})?", re.DOTALL)
_ONE: Final = r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*+)"[ \t]*'
_LABEL: Final = re.compile(_ONE, re.DOTALL)
_LABELS: Final = re.compile(rf",?(?:{_ONE}(?:,[ \t]*|\Z))*+[ \t]*", re.DOTALL)
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
    # first the whole, which takes time in proportion to its length whatever it holds
    well_formed = _LABELS.fullmatch(text) is not None
    pairs: list[tuple[str, str]] = _LABEL.findall(text) if well_formed else []
    labels = dict(pairs)
    if not well_formed or len(labels) < len(pairs):
        raise ValueError("its labels are malformed")
    if "\\" in text:
        return {label: _unescaped(value) for label, value in pairs}
    return labels


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
