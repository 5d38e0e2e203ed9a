"""Where the samples of a table are from: addresses and selectors, and those that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Final

_MATCHER: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\\n]|\\.)*)"\s*,?')
_LONGEST: Final = 200


def contradiction(origins: Iterable[Mapping[str, str]]) -> str | None:
    """
    Return what is wrong where no series can match the selectors of two origins, such as of two clusters; else None.

    The label that tells nodes apart may differ, as the nodes of a cluster may be read one after the other.
    """
    of_selectors = {(one["selector"], one.get("instance_label", "")): None for one in origins if one.get("selector")}
    for (first, node_label), (second, _) in combinations(of_selectors, 2):
        if label := _contradicting(first, second, node_label):
            return (
                f"the selectors {first[:_LONGEST]!r} and {second[:_LONGEST]!r} contradict each other in {label}: "
                "samples of two clusters in one table cannot be told apart. Take a table for each (--into)"
            )
    return None


def _contradicting(first: str, second: str, node_label: str) -> str | None:
    """Return a label of which two selectors want different values."""
    others = _MATCHER.findall(second)
    for label, operator, value in _MATCHER.findall(first):
        for other_label, other_operator, other in others:
            if label == other_label != node_label and (
                (operator == "=" and not _matches(value, other_operator, other))
                or (other_operator == "=" and not _matches(other, operator, value))
            ):
                return str(label)
    return None


def _matches(value: str, operator: str, other: str) -> bool:
    if operator in {"=", "!="}:
        return (value == other) == (operator == "=")
    try:
        return (re.fullmatch(other, value) is not None) == (operator == "=~")
    except re.error:  # an expression of RE2, which Python has not
        return True
