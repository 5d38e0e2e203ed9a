"""Origins of the samples in a table (addresses and selectors), and the search for selectors of different clusters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Final

_MATCHER: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\\n]|\\.)*)"\s*,?')
_LONGEST: Final = 200


def contradiction(origins: Iterable[Mapping[str, str]]) -> str | None:
    """
    Return an error message if the selectors of two origins match no common series, such as of two clusters; else None.

    The label that tells nodes apart may differ, as the nodes of a cluster may be read one after the other.
    """
    selectors = {
        (origin["selector"], origin.get("instance_label", "")): None for origin in origins if origin.get("selector")
    }
    for (first, node_label), (second, _) in combinations(selectors, 2):
        if label := _contradicting_label(first, second, node_label):
            return (
                f"the selectors {first[:_LONGEST]!r} and {second[:_LONGEST]!r} contradict each other in {label}: "
                "samples of two clusters in one table cannot be told apart. Take a table for each (--into)"
            )
    return None


def _contradicting_label(first: str, second: str, node_label: str) -> str | None:
    """Return a label, except that of nodes, for which two selectors match no common value; None without one."""
    for label, operator, text in _MATCHER.findall(first):
        for other_label, other_operator, other_text in _MATCHER.findall(second):
            if label != other_label or label == node_label:
                continue
            if operator == "=" and not _matches(text, other_operator, other_text):
                return str(label)
            if other_operator == "=" and not _matches(other_text, operator, text):
                return str(label)
    return None


def _matches(value: str, operator: str, text: str) -> bool:
    """Return whether a label's value matches an operator with a text or a regular expression."""
    if operator in {"=", "!="}:
        return (value == text) == (operator == "=")
    try:
        return (re.fullmatch(text, value) is not None) == (operator == "=~")
    except re.error:  # an expression that RE2 has and Python does not
        return True
