"""What a family exposes: label values with a number, ready for any format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from quotascope.metrics.catalog import Family

from ..snapshot import NodeUsage, Snapshot
from ..snapshot.layout import node_order

Series: TypeAlias = tuple[tuple[str, ...], float]
"""Label values in the family's order, and the value."""
Row: TypeAlias = tuple[tuple[str, ...], float | None]
"""The same with None for a value that is unknown."""


class View:
    """A snapshot, and the Unix time in seconds at which it is exposed."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.snapshot = snapshot
        self.now = now

    @cached_property
    def nodes(self) -> list[NodeUsage]:
        """The nodes by their id, 2 before 10."""
        return sorted(self.snapshot.nodes, key=lambda node: node_order(node.broker))


Reader: TypeAlias = Callable[[View], Iterable[Row]]
"""Returns the series of one family."""


def known(reader: Reader, view: View) -> Iterator[Series]:
    """The series of a family, each once: neither unknown nor infinite nor -0, labels in valid Unicode."""
    seen = set()
    for labels, value in reader(view):
        if value is None or not math.isfinite(value):
            continue
        valid = tuple(map(encodable, labels))
        if valid not in seen:
            seen.add(valid)
            yield valid, value + 0.0  # -0 becomes 0


def label_names(family: Family, snapshot: Snapshot) -> tuple[str, ...]:
    """The labels of a family's series: those of the catalog, then the tags of a custom quota callback where these belong to it."""
    if family.open_labels:
        return (*family.labels, *snapshot.callbacks.labels)
    return family.labels


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON may hold but UTF-8 may not, spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
