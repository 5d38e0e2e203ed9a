"""The text of one snapshot after the other, made of what the last one left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import chain, cycle
from threading import Lock

from quotascope.metrics.catalog import Family, families

from ..snapshot import Snapshot
from .collector import READERS
from .column import Column
from .lines import line_starts
from .order import Order
from .per_entity import PerEntity
from .rows import Rows
from .series import Reader, View
from .text import OPENMETRICS, TEXT, Format, head

_Lines = Callable[[View], list[Sequence[bytes]]]
"""The lines of a family, in pieces, by quota type."""


class Renderer:
    """
    Writes what ``exposition`` writes, to the byte, but much faster when it did so before.

    It keeps the start of each line as long as its entity stays the same object, the text of each
    number until it changes, and the text of each family that did not change; nothing of what is gone. The
    text before the last one gives its memory to the next, if nobody holds it any more: new memory is a page fault
    for each 4 KiB. Threads may share it.

    Args:
        cluster: One more label of every series.

    """

    def __init__(self, cluster: str | None = None) -> None:
        self._cluster = cluster
        self._lock = Lock()
        self._heads = {
            text_format: {family: head(family, text_format) for family in families()}
            for text_format in (TEXT, OPENMETRICS)
        }
        self._forget()

    def render(
        self, snapshot: Snapshot, now: float, text_format: Format = TEXT
    ) -> bytes:
        """The text of a snapshot. ``now`` is the Unix time in seconds that ages refer to."""
        with self._lock:
            try:
                return self._rendered(snapshot, now, text_format)
            except BaseException:
                self._forget()
                raise

    def _forget(self) -> None:
        self._order = Order()
        self._texts = cycle((BytesIO(), BytesIO()))
        self._lines = {
            family: self._lines_of(family, READERS[family]) for family in families()
        }

    def _lines_of(self, family: Family, reader: Reader) -> _Lines:
        if not isinstance(reader, PerEntity):
            rows = Rows(family, reader, self._cluster)
            return lambda view: [(rows.text(view),)]
        start = line_starts(family.name, family.labels, self._cluster)
        sections = [self._order.sections[kind] for kind in reader.types]
        columns = [(Column(reader, start), section) for section in sections]
        return lambda view: [column.text(of, view.snapshot) for column, of in columns]

    def _rendered(self, snapshot: Snapshot, now: float, text_format: Format) -> bytes:
        self._order.take(snapshot.entities)
        sections = self._order.sections
        by_type = {kind: section.usages for kind, section in sections.items()}
        view = View(snapshot, now, by_type)
        text = next(self._texts)
        text.seek(0)
        for family, above in self._heads[text_format].items():
            lines = self._lines[family](view)
            if any(map(any, lines)):
                text.writelines(chain((above,), *lines, (b"\n",)))
        text.write(text_format.end)
        text.truncate()
        return text.getvalue()
