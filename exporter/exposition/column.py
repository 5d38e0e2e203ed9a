"""The lines of one family and quota type, kept from scrape to scrape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, count
from operator import ne

from ..snapshot import EntityUsage, Snapshot
from .lines import LineStart, distinct
from .number_text import texts
from .per_entity import PerEntity
from .section import Section

_Numbers = list[float | None]


class Column:
    """
    Writes what changed since the last scrape, and nothing else.

    Args:
        family: What the lines show.
        start: Makes the start of a line.

    """

    def __init__(self, family: PerEntity, start: LineStart) -> None:
        self._family = family
        self._start = start
        self._values: list[float | None] = []
        """Of the last snapshot, where they do not follow from the usages alone."""
        self._lines: list[bytes] = []
        """One for each entity, empty where it is not shown; none at all as long as there was no value."""
        self._text: bytes | None = b""
        """All lines, None unless they were the same twice."""
        self._changed = False

    def text(self, section: Section, snapshot: Snapshot) -> Sequence[bytes]:
        """
        The lines of a section of this snapshot, in pieces; each change of the section must be shown once.

        Lines that changed are the caller's to put together, once for all families; what remains as it is becomes one piece.
        """
        places, values = self._news(section, snapshot)
        if section.change is not None and self._lines:
            absent = [b""] * section.change.fresh
            self._lines = section.change.apply(self._lines, absent)
            self._changed = True
        if places:
            self._write(places, values, section.usages)
        if self._changed:
            self._changed, self._text = False, None
            return self._shown(section)
        if self._text is None:
            self._text = b"".join(self._shown(section))
        return (self._text,)

    def _news(
        self, section: Section, snapshot: Snapshot
    ) -> tuple[list[int], list[float | None]]:
        """Where there are other values than before, and these."""
        places, now, before = self._compared(section, snapshot)
        if before == now:
            return [], []
        differs = list(map(ne, before, now))
        return list(compress(places, differs)), list(compress(now, differs))

    def _compared(
        self, section: Section, snapshot: Snapshot
    ) -> tuple[Iterable[int], _Numbers, _Numbers]:
        """Where values may be others, what they are, and what they were."""
        read = self._family.values
        if self._family.of_snapshot:
            before, self._values = self._values, read(section.usages, snapshot)
            if section.change is not None:
                before = section.change.apply(before, [None] * section.change.fresh)
            return count(), self._values, before
        news = section.turns if self._family.fixed else section.news
        now = read(news.now, snapshot)
        if not self._lines:
            return news.places, now, [None] * len(now)
        fresh = len(news.now) - len(news.before)
        return news.places, now, [None] * fresh + read(news.before, snapshot)

    def _write(
        self,
        places: list[int],
        values: list[float | None],
        usages: Sequence[EntityUsage],
    ) -> None:
        lines = self._lines = self._lines or [b""] * len(usages)
        start, labels = self._start, self._family.labels
        for place, text in zip(places, texts(values), strict=True):
            line = lines[place]
            if text and line:
                lines[place] = line[: line.rindex(b" ") + 1] + text
            elif text:
                lines[place] = start(labels(usages[place].entity)) + text
            else:
                lines[place] = b""
        self._changed = True

    def _shown(self, section: Section) -> Sequence[bytes]:
        shared = self._family.shared and section.many_nodes
        return distinct(self._lines) if shared or section.may_repeat else self._lines
