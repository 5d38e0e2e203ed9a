"""Writes the texts of successive snapshots, each by patching the last one; chooses a format, and compresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from threading import Lock
from typing import Final

from quotascope.metrics.catalog import Family, families

from ..snapshot import Layout, Snapshot
from .families import COLUMNS
from .lines import EntityLines, Names, RowLines, TeamLines
from .rows import TEAM_FAMILIES, Exposed

try:
    from isal import igzip as implementation
except ImportError:  # not built for every platform
    import gzip as implementation  # type: ignore[no-redef]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """One text format of Prometheus."""

    content_type: str
    end: bytes = b""
    """The last line, if the format has a line that marks the end."""


TEXT: Final = TextFormat(content_type="text/plain; version=0.0.4; charset=utf-8")
OPENMETRICS: Final = TextFormat(
    content_type="application/openmetrics-text; version=1.0.0; charset=utf-8", end=b"# EOF\n"
)


class Renderer:
    """
    Writes the texts of successive snapshots. Threads may share it.

    It keeps the last text and the positions of its lines. If only the end of the text changes, as ages do, only the end
    is written. Otherwise the next text is written into the memory of the text before the last one, if nothing else
    uses that any more, since new memory costs a page fault for each 4 KiB.

    Args:
        cluster: The value of a label ``cluster`` of every series; None for no such label.

    """

    def __init__(self, cluster: str | None = None) -> None:
        self._cluster = cluster
        self._lock = Lock()
        self._heads = {
            text_format: {family: _head(family, text_format) for family in families()}
            for text_format in (TEXT, OPENMETRICS)
        }
        self._forget()

    def _forget(self) -> None:
        """Forget the last text, so that the next one is written from scratch."""
        self._text = b""
        self._names: Names | None = None
        self._format: TextFormat | None = None
        self._buffers = [BytesIO(), BytesIO()]
        """The buffer of the last text, and the buffer of the next one."""
        self._lines: dict[object, EntityLines | RowLines | TeamLines] = {}
        for family in families():
            column = COLUMNS.get(family)
            if column is not None:
                self._lines[family] = EntityLines(family, column, self._cluster)
            elif family in TEAM_FAMILIES:
                self._lines[family] = TeamLines(family, self._cluster)
            else:
                self._lines[family] = RowLines(family, self._cluster)

    def render(self, snapshot: Snapshot, now_seconds: float, text_format: TextFormat = TEXT) -> bytes:
        """Return the text of a snapshot. ``now_seconds`` is the Unix time that ages refer to."""
        with self._lock:
            try:
                begin, written = self._written(Exposed(snapshot, now_seconds), text_format)
                self._format = text_format
                if written is self._buffers[1]:  # the whole text
                    self._buffers.reverse()
                    self._text = written.getvalue()
                elif written is not None:  # another end of the last text
                    self._text = b""  # only readers of the text may still hold the buffer
                    text = self._buffers[0]
                    text.seek(begin)
                    text.write(written.getbuffer())
                    text.truncate()
                    self._text = text.getvalue()
            except BaseException:
                self._forget()
                raise
            return self._text

    def _written(self, view: Exposed, text_format: TextFormat) -> tuple[int, BytesIO | None]:
        """
        Write the part of the text that has changed.

        Returns:
            The position from which the text differs from the last one, and a buffer with the text from there on; None
            if nothing differs. If most of the text differs, the position is 0 and the buffer is the second of
            ``_buffers``.

        """
        names = self._names_of(view.snapshot.columns.layout)
        last_text, text, begin, position = self._text, None, 0, 0
        for family, comments in self._heads[text_format].items():
            lines = self._lines[family]
            last_place = slice(lines.at, lines.at + lines.length)
            pieces = lines.pieces(view, names, last_text)
            changed = pieces is not None or text_format is not self._format
            if changed and text is None:  # the first family that has changed: the text is written from here on
                text, begin = BytesIO(), position
                if 2 * begin < len(last_text) or not last_text:  # most of the text: all of it goes into one buffer
                    text, begin = self._buffers[1], 0
                    text.seek(0)
                    text.write(memoryview(last_text)[:position])
            if not lines.length:
                continue
            if text is not None:
                text.write(comments)
                lines.at = begin + text.tell()
                text.writelines((memoryview(last_text)[last_place],) if pieces is None else pieces)
                text.write(b"\n")
            position = lines.at + lines.length + 1  # behind the line end
        if text is not None:
            text.write(text_format.end)
            text.truncate()
        return begin, text

    def _names_of(self, layout: Layout) -> Names:
        """Return the names of a layout, compared with the names of the last one."""
        previous = self._names
        if previous is not None and layout is previous.layout:
            previous.previous_rows = None
            return previous
        names = Names(layout, previous)
        if not names.in_order:  # lines cannot stay in their places
            self._forget()
            names = Names(layout)
        self._names = names
        return names


def _head(family: Family, text_format: TextFormat) -> bytes:
    """
    Return the comments before the series of a family, without the last line end.

    OpenMetrics names counters and infos without their suffix, and knows units.
    """
    name, kind, unit = family.name, family.type.value, ""
    if text_format is OPENMETRICS:
        name = name.removesuffix("_total").removesuffix("_info")
        kind = "info" if family.is_info else kind
        unit = family.declared_unit and f"\n# UNIT {name} {family.declared_unit}"
    return f"# HELP {name} {family.documentation}\n# TYPE {name} {kind}{unit}".encode()


def gzipped(text: bytes) -> bytes:
    """Return the text in gzip format: isal's level 1 is as small as zlib's level 6, in a tenth of the time."""
    return implementation.compress(text, 1, mtime=0)


def choose_format(accept: str) -> TextFormat:
    """
    Return the format that an ``Accept`` header prefers.

    It is OpenMetrics if the header prefers version 1.0.0 of it, or any version, and text 0.0.4 otherwise.
    """
    offers = {TEXT: 0.0, OPENMETRICS: 0.0}
    for media, quality, version in _ranges(accept):
        if media == "application/openmetrics-text" and version in {None, "1.0.0"}:
            offers[OPENMETRICS] = max(offers[OPENMETRICS], quality)
        elif media in {"text/plain", "text/*", "*/*"}:
            offers[TEXT] = max(offers[TEXT], quality)
    return OPENMETRICS if offers[OPENMETRICS] > offers[TEXT] else TEXT


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether an ``Accept-Encoding`` header allows gzip."""
    codings = {coding: quality for coding, quality, _ in _ranges(accept_encoding)}
    return codings.get("gzip", codings.get("*", 0.0)) > 0


def _ranges(header: str) -> Iterator[tuple[str, float, str | None]]:
    """
    Yield the name, the quality and the parameter ``version`` of each range of a header.

    The quality is 0 if it is not a number; the version is None without one.
    """
    for part in header.lower().split(","):
        name, *parameters = part.split(";")
        quality, version = 1.0, None
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "version":
                version = value.strip()
            elif key.strip() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
        yield name.strip(), quality, version
