"""The text of one snapshot after the other, made of what the last one left."""

from __future__ import annotations

from io import BytesIO
from itertools import cycle
from threading import Lock

from quotascope.metrics.catalog import families

from ..snapshot import Layout, Snapshot
from .families import COLUMNS
from .lines import Change, EntityLines, Last, Names, RowLines
from .rows import View
from .text import OPENMETRICS, TEXT, Format, head


class Renderer:
    """
    Writes what ``exposition`` writes, to the byte, but much faster when it did so before.

    It keeps the last text, and where in it which line is; nothing of what is gone. The text before the last one gives its
    memory to the next, if no other holds it any more: new memory is a page fault for each 4 KiB. Threads may share it.

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
                return self._rendered(View(snapshot, now), text_format)
            except BaseException:
                self._forget()
                raise

    def _forget(self) -> None:
        self._text = b""
        self._layout: Layout | None = None
        self._names: Names | None = None
        self._buffers = cycle((BytesIO(), BytesIO()))
        self._lines: dict[object, EntityLines | RowLines] = {}
        for family in families():
            column = COLUMNS.get(family)
            self._lines[family] = (
                RowLines(family, self._cluster)
                if column is None
                else EntityLines(family, column, self._cluster)
            )

    def _rendered(self, view: View, text_format: Format) -> bytes:
        last = self._followed(view.snapshot.shown.layout)
        text = next(self._buffers)
        text.seek(0)
        for family, above in self._heads[text_format].items():
            lines = self._lines[family]
            pieces = lines.pieces(view, last)
            if lines.length:
                text.write(above)
                lines.at = text.tell()
                text.writelines(pieces)
                text.write(b"\n")
        text.write(text_format.end)
        text.truncate()
        self._text = text.getvalue()
        return self._text

    def _followed(self, layout: Layout) -> Last:
        """Go on to the entities of another snapshot."""
        change = None
        if self._layout is not None and layout is not self._layout:
            change = Change.between(self._layout, layout)
            if change is None:
                self._forget()
        if self._names is None or change is not None:
            self._names = Names(layout, self._names, change)
        self._layout = layout
        return Last(self._text, self._names, change)
