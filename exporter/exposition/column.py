"""The lines of one family and quota type, kept from scrape to scrape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, count
from operator import ne

from ..snapshot import Snapshot
from .lines import LineStart, distinct
from .number_text import texts
from .per_entity import PerEntity
from .section import Section


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
        """Of the last scrape, in their order; of no use where they are fixed."""
        self._lines: list[bytes] = []
        """By slot, empty where nothing is shown; none at all as long as there was no value."""
        self._kept: list[float | None] = []
        """Values by slot, for when entities come or go."""
        self._text: bytes | None = b""

    def text(self, section: Section, snapshot: Snapshot) -> bytes:
        """The lines of a section of this snapshot; each change of the section must be shown once."""
        family, usages = self._family, section.usages
        if section.changed:
            self._rearrange(section)
        if not family.fixed:
            self._update(family.values(usages, snapshot), section)
        elif not section.detailed:
            everywhere = range(len(usages))
            self._write(everywhere, family.values(usages, snapshot), section)
        elif section.changed:
            added = [usages[place] for place in section.fresh]
            self._write(section.fresh, family.values(added, snapshot), section)
        if self._text is None:
            self._text = b"".join(self._shown(section))
        return self._text

    def _rearrange(self, section: Section) -> None:
        """Bring what there is into the new order."""
        slots = section.slots
        if section.anew or not self._lines:
            self._lines, self._text = [], b""
            self._values = [None] * len(slots.used)
            return
        self._lines = slots.follow(self._lines, b"")
        if not self._family.fixed:
            self._kept = slots.follow(self._kept, None)
            self._values = list(compress(self._kept, slots.entities))
        self._text = None

    def _update(self, values: list[float | None], section: Section) -> None:
        before, self._values = self._values, values
        if before != values:
            places = list(compress(count(), map(ne, before, values)))
            self._write(places, [values[place] for place in places], section)
            slots, kept = section.slots.used, self._kept
            for place in places:
                kept[slots[place]] = values[place]

    def _write(
        self, places: Sequence[int], values: Sequence[float | None], section: Section
    ) -> None:
        slots, usages = section.slots.used, section.usages
        if not self._lines:
            self._lines = [b""] * len(section.slots)
            self._kept = [None] * len(section.slots)
        lines = self._lines
        start, labels = self._start, self._family.labels
        for place, text in zip(places, texts(values), strict=True):
            slot = slots[place]
            line = lines[slot]
            if text and line:
                lines[slot] = line[: line.rindex(b" ") + 1] + text
            elif text:
                lines[slot] = start(labels(usages[place].entity)) + text
            else:
                lines[slot] = b""
        self._text = None

    def _shown(self, section: Section) -> Iterable[bytes]:
        shared = self._family.shared and section.many_nodes
        return distinct(self._lines) if shared or section.may_repeat else self._lines
