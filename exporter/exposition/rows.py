"""The lines of a family with any labels."""

from __future__ import annotations

from quotascope.metrics.catalog import Family

from .lines import distinct, line_starts
from .number_text import texts
from .series import Reader, View, label_names


class Rows:
    """
    Keeps the start of each line for as long as its series is there.

    Args:
        family: What is shown.
        reader: Gives its series.
        cluster: One more label of every series.

    """

    def __init__(self, family: Family, reader: Reader, cluster: str | None) -> None:
        self._family = family
        self._reader = reader
        self._cluster = cluster
        self._names: tuple[str, ...] = ()
        self._labels: list[tuple[str, ...]] = []
        self._starts: list[bytes] = []
        self._values: list[float | None] = []
        self._text = b""

    def text(self, view: View) -> bytes:
        """The lines of all series; empty when there are none."""
        rows = list(self._reader(view))
        labels = [labels for labels, _ in rows]
        values = [value for _, value in rows]
        names = label_names(self._family, view.snapshot)
        if labels != self._labels or names != self._names:
            self._prepare(names, labels)
        elif values == self._values:
            return self._text
        lines = (
            start + text
            for start, text in zip(self._starts, texts(values), strict=True)
            if text
        )
        self._values = values
        self._text = b"".join(distinct(lines))
        return self._text

    def _prepare(self, names: tuple[str, ...], labels: list[tuple[str, ...]]) -> None:
        known: dict[tuple[str, ...], bytes] = {}
        if names == self._names:
            known = dict(zip(self._labels, self._starts, strict=True))
        start = line_starts(self._family.name, names, self._cluster)
        self._starts = [known.get(each) or start(each) for each in labels]
        self._names, self._labels = names, labels
