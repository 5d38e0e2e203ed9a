"""The lines of one family and quota type, kept from scrape to scrape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import ne

from ..snapshot import EntityUsage, Snapshot
from .lines import LineStart, distinct
from .number_text import texts
from .per_entity import PerEntity
from .section import Section
from .splice import Splice


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
        self._lines: list[bytes] = []
        """One for each value, empty where it is not shown; none at all as long as there was no value."""
        self._text: bytes | None = b""
        """All lines, None unless they were the same twice."""
        self._changed = False

    def text(self, section: Section, snapshot: Snapshot) -> Sequence[bytes]:
        """
        The lines of a section of this snapshot, in pieces; each change of the section must be shown once.

        Lines that changed are the caller's to put together, once for all families; what remains as it is becomes one piece.
        """
        usages = section.usages
        if section.change is not None:
            self._rearrange(section.change)
        if not (self._family.fixed and section.detailed):
            self._update(self._family.values(usages, snapshot), usages)
        elif section.change is not None:
            self._add(section.change.fresh_places(), usages, snapshot)
        if self._changed:
            self._changed, self._text = False, None
            return self._shown(section)
        if self._text is None:
            self._text = b"".join(self._shown(section))
        return (self._text,)

    def _rearrange(self, change: Splice) -> None:
        nothing: list[float | None] = [None]
        if self._lines:
            self._values = change.apply(self._values, nothing * change.fresh)
            self._lines = change.apply(self._lines, [b""] * change.fresh)
            self._changed = True
        else:
            self._values = nothing * change.length

    def _add(
        self, places: list[int], usages: Sequence[EntityUsage], snapshot: Snapshot
    ) -> None:
        added = self._family.values([usages[place] for place in places], snapshot)
        for place, value in zip(places, added, strict=True):
            self._values[place] = value
        self._write(places, usages)

    def _update(
        self, values: list[float | None], usages: Sequence[EntityUsage]
    ) -> None:
        before, self._values = self._values, values
        if before != values:
            self._write(list(compress(count(), map(ne, before, values))), usages)

    def _write(self, places: list[int], usages: Sequence[EntityUsage]) -> None:
        values, lines = self._values, self._lines
        if not lines:
            lines = self._lines = [b""] * len(values)
        start, labels = self._start, self._family.labels
        written = texts([values[place] for place in places])
        for place, text in zip(places, written, strict=True):
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
